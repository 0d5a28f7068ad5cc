//! What the owner of a switched file may do to it at any moment, and so between the stop of its node and its start: none of it
//! keeps the file from being switched or put back.

use std::os::unix::fs::symlink;

use rustix::fs::OFlags;

use super::{
    tests::{Case, of},
    *,
};
use crate::words::with_causes;

/// Nobody reads a file of this length.
const HUGE: u64 = 65 << 20;

fn grow(path: &Path) {
    fs::File::options().write(true).open(path).unwrap().set_len(HUGE).unwrap();
}

/// A write lease (fcntl(2)) of another process, until it is dropped: who would open the file without waiting cannot.
struct Lease(std::process::Child);

impl Lease {
    /// `None` where this file system has none.
    fn on(path: &Path) -> Option<Self> {
        let script = "import fcntl, signal, sys, time\n\
                      signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
                      file = open(sys.argv[1], 'r+')\n\
                      fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
                      time.sleep(600)";
        let mut child = std::process::Command::new("python3").arg("-c").arg(script).arg(path).spawn().ok()?;
        for _ in 0..1000 {
            if Place::of(path).unwrap().open(OFlags::RDONLY, 0, Content::Anybodys).is_err() {
                return Some(Self(child));
            }
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("no lease and no end");
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// As a switch does it first.
fn save(case: &Case, path: &Path) {
    durable::create_folder(&case.saved.folder, 0o700).unwrap();
    case.saved.save(&Place::of(path).unwrap()).unwrap();
}

#[test]
fn one_that_grows_once_it_was_saved_is_switched_and_put_back() {
    let case = Case::new();
    let conf = case.write("conf", "old", 0o640);
    let files = [case.new_content("conf")];
    save(&case, &conf);
    grow(&conf);
    case.saved.switch(&files).unwrap();
    assert_eq!(case.content("conf"), of("new conf", 0o640));
    grow(&conf);
    case.put_back();
    assert_eq!(case.content("conf"), of("old", 0o640));
}

#[test]
fn one_with_a_lease_is_switched_once_it_was_saved_and_put_back() {
    let case = Case::new();
    let conf = case.write("conf", "old", 0o640);
    let files = [case.new_content("conf")];
    save(&case, &conf);
    let Some(lease) = Lease::on(&conf) else { return eprintln!("skipped: no leases here, or no python3") };
    case.saved.switch(&files).unwrap();
    drop(lease);
    assert_eq!(case.content("conf"), of("new conf", 0o640));
    let lease = Lease::on(&conf).unwrap();
    case.put_back();
    drop(lease);
    assert_eq!(case.content("conf"), of("old", 0o640));
}

/// It could not be saved, so it was not switched.
#[test]
fn one_that_cannot_be_read_was_not_switched_and_its_old_content_is_not_lost() {
    let case = Case::new();
    let conf = case.write("conf", "old", 0o640);
    let files = [case.new_content("conf")];
    let unchanged = || {
        let error = with_causes(&case.saved.switch(&files).unwrap_err());
        assert!(error.contains("/conf"), "{error}");
        case.put_back();
        assert_eq!(case.saved.lost(&files).unwrap(), []);
        assert!(!is_switched(&files[0]).unwrap());
    };
    if let Some(_lease) = Lease::on(&conf) {
        unchanged();
    }
    grow(&conf);
    unchanged();
    assert_eq!(fs::metadata(&conf).unwrap().len(), HUGE);
}

#[test]
fn one_that_cannot_be_put_back_is_named_with_its_old_content_and_keeps_no_other_back() {
    let case = Case::new();
    let names = ["a", "b", "c"];
    let files = names.map(|name| {
        case.write(name, "old", 0o640);
        case.new_content(name)
    });
    case.saved.switch(&files).unwrap();
    for name in ["a", "b"] {
        fs::remove_file(case.at(name)).unwrap();
    }
    // Nobody renames a file over a folder, and a link that leads to itself leads nowhere.
    fs::create_dir(case.at("a")).unwrap();
    symlink("b", case.at("b")).unwrap();
    let wrong: Vec<_> = case.saved.put_back().iter().map(|error| with_causes(error)).collect();
    for name in ["a", "b"] {
        let path = case.at(name).display().to_string();
        let said = wrong.iter().find(|wrong| wrong.starts_with(&format!("{path} was not put back"))).expect("said");
        let saved = said.split("its old content is in ").nth(1).and_then(|rest| rest.split(": ").next()).unwrap();
        assert_eq!(fs::read_to_string(saved).unwrap(), "old", "{said}");
    }
    assert_eq!((wrong.len(), case.content("c")), (2, of("old", 0o640)), "{wrong:?}");
}

/// What is saved is the only copy then, and a step forward would forget it.
#[test]
fn a_file_that_could_not_be_put_back_is_in_the_way_of_the_next_switch() {
    for was_there in [true, false] {
        let case = Case::new();
        let path = case.at("etc/conf");
        fs::create_dir(case.at("etc")).unwrap();
        if was_there {
            fs::write(&path, "old").unwrap();
        }
        let files = [NewContent { path: path.clone(), ..case.new_content("conf") }];
        case.saved.switch(&files).unwrap();
        assert!(case.saved.not_put_back(&files).unwrap().is_none(), "nobody tried to");
        fs::rename(case.at("etc"), case.at("away")).unwrap();
        fs::write(case.at("etc"), "no folder").unwrap();
        assert_eq!(case.saved.put_back().len(), 1);
        fs::remove_file(case.at("etc")).unwrap();
        fs::rename(case.at("away"), case.at("etc")).unwrap();
        let said = case.saved.not_put_back(&files).unwrap().unwrap().to_string();
        assert!(said.contains(if was_there { "give it the content of" } else { "remove it" }), "{said}");
        // By the agent or by a person.
        case.put_back();
        assert!(case.saved.not_put_back(&files).unwrap().is_none());
    }
}
