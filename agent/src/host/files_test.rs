use std::os::unix::fs::{chown, symlink};

use tempfile::TempDir;

use super::*;

struct Case {
    folder: TempDir,
    saved: Saved,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let saved = Saved::new(folder.path().join("state/files/step-1"));
        Self { folder, saved }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        fs::write(self.at(name), content).unwrap();
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
        self.at(name)
    }

    fn new_content(&self, name: &str) -> NewContent {
        let source = self.write(&format!("{name}.new"), &format!("new {name}"), 0o600);
        NewContent { path: self.at(name), source, owner: None }
    }

    fn content(&self, name: &str) -> Option<(String, u32)> {
        let path = self.at(name);
        Some((fs::read_to_string(&path).ok()?, fs::metadata(&path).unwrap().mode() & 0o7777))
    }
}

fn of(content: &str, mode: u32) -> Option<(String, u32)> {
    Some((content.into(), mode))
}

#[test]
fn files_are_switched_and_put_back_however_often() {
    let case = Case::new();
    case.write("conf", "old conf", 0o640);
    let files = [case.new_content("conf"), case.new_content("extra")];
    check(&files).unwrap();
    assert!(!is_switched(&files[0]).unwrap() && !is_switched(&files[1]).unwrap());
    for _ in 0..2 {
        for _ in 0..2 {
            case.saved.switch(&files).unwrap();
            assert_eq!((case.content("conf"), case.content("extra")), (of("new conf", 0o640), of("new extra", 0o600)));
            assert!(is_switched(&files[0]).unwrap() && is_switched(&files[1]).unwrap());
        }
        for _ in 0..2 {
            case.saved.put_back().unwrap();
            assert_eq!((case.content("conf"), case.content("extra")), (of("old conf", 0o640), None));
        }
    }
    case.saved.forget().unwrap();
    case.saved.forget().unwrap();
    case.saved.put_back().unwrap();
    assert_eq!(case.content("conf"), of("old conf", 0o640));
}

#[test]
fn the_owner_comes_back_too() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: only root can give files away");
    }
    let case = Case::new();
    chown(case.write("conf", "old", 0o600), Some(1234), Some(4321)).unwrap();
    let owner = || fs::metadata(case.at("conf")).map(|metadata| (metadata.uid(), metadata.gid())).unwrap();
    case.saved.switch(&[case.new_content("conf")]).unwrap();
    assert_eq!((case.content("conf"), owner()), (of("new conf", 0o600), (1234, 4321)));
    case.saved.put_back().unwrap();
    assert_eq!((case.content("conf"), owner()), (of("old", 0o600), (1234, 4321)));
}

#[test]
fn a_new_file_belongs_to_its_nodes_user() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: only root can give files away");
    }
    let case = Case::new();
    case.write("conf", "old", 0o600);
    let files = ["conf", "extra"].map(|name| NewContent { owner: Some((1234, 4321)), ..case.new_content(name) });
    rehearse(&files).unwrap();
    let owner = |name| fs::metadata(case.at(name)).map(|metadata| (metadata.uid(), metadata.gid())).ok();
    for _ in 0..2 {
        case.saved.switch(&files).unwrap();
        assert_eq!((owner("conf"), owner("extra")), (Some((0, 0)), Some((1234, 4321))));
        assert_eq!(case.content("extra"), of("new extra", 0o600));
    }
    case.saved.put_back().unwrap();
    assert_eq!((owner("conf"), owner("extra")), (Some((0, 0)), None));
}

#[test]
fn a_link_stays_a_link() {
    let case = Case::new();
    case.write("real", "old", 0o644);
    symlink("real", case.at("conf")).unwrap();
    case.saved.switch(&[case.new_content("conf")]).unwrap();
    assert_eq!(case.content("real"), of("new conf", 0o644));
    assert_eq!(fs::read_link(case.at("conf")).unwrap(), Path::new("real"));
    case.saved.put_back().unwrap();
    assert_eq!(case.content("real"), of("old", 0o644));
}

#[test]
fn what_was_saved_first_is_what_comes_back() {
    // Killed after the first file was switched: the second run must not take its new content for the old one.
    let case = Case::new();
    case.write("a", "old a", 0o644);
    case.write("b", "old b", 0o644);
    let files = [case.new_content("a"), case.new_content("b")];
    case.saved.switch(&files[..1]).unwrap();
    Saved::new(case.saved.folder.clone()).switch(&files).unwrap();
    Saved::new(case.saved.folder.clone()).put_back().unwrap();
    assert_eq!((case.content("a"), case.content("b")), (of("old a", 0o644), of("old b", 0o644)));
}

#[test]
fn a_description_that_was_never_written_means_that_nothing_was_changed() {
    let case = Case::new();
    let conf = case.write("conf", "old", 0o644);
    fs::create_dir_all(&case.saved.folder).unwrap();
    fs::write(case.saved.content_of(&conf.canonicalize().unwrap()), "half a co").unwrap();
    case.saved.put_back().unwrap();
    assert_eq!(case.content("conf"), of("old", 0o644));
    case.saved.switch(&[case.new_content("conf")]).unwrap();
    case.saved.put_back().unwrap();
    assert_eq!(case.content("conf"), of("old", 0o644));
}

#[test]
fn what_cannot_be_switched_is_named_before_anything_changes() {
    let case = Case::new();
    fs::create_dir(case.at("folder")).unwrap();
    symlink("nothing", case.at("dangling")).unwrap();
    let conf = NewContent { path: case.at("conf"), source: case.at("absent"), owner: None };
    let no_folder = NewContent { path: case.at("no/such/conf"), ..case.new_content("conf") };
    for (file, expected) in [
        (case.new_content("folder"), "is no plain file"),
        (case.new_content("dangling"), "is a link to nothing"),
        (conf, "cannot read"),
        (no_folder, "cannot read"),
    ] {
        let error = check(&[file]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_file_that_is_as_it_was_is_not_written_again() {
    let case = Case::new();
    let conf = case.write("conf", "old", 0o640);
    case.write("conf.new", "new", 0o600);
    let inode = || fs::metadata(&conf).unwrap().ino();
    let first = inode();
    fs::create_dir_all(&case.saved.folder).unwrap();
    case.saved.save(&conf.canonicalize().unwrap()).unwrap();
    case.saved.put_back().unwrap();
    assert_eq!(inode(), first, "saved, never switched");
    case.saved.switch(&[case.new_content("conf")]).unwrap();
    let second = inode();
    case.saved.switch(&[case.new_content("conf")]).unwrap();
    assert_eq!(inode(), second, "switched already");
    fs::set_permissions(&conf, fs::Permissions::from_mode(0o600)).unwrap();
    case.saved.put_back().unwrap();
    fs::set_permissions(&conf, fs::Permissions::from_mode(0o600)).unwrap();
    case.saved.put_back().unwrap();
    assert_eq!(case.content("conf"), of("old", 0o640), "its mode comes back where only that had changed");
}

#[test]
fn a_folder_that_takes_no_file_is_named_before_anything_changes() {
    let case = Case::new();
    // Nobody may make files there, root neither.
    let sys = NewContent { path: "/sys/conf".into(), ..case.new_content("conf") };
    let error = crate::words::with_causes(&rehearse(&[sys]).unwrap_err());
    assert!(error.contains("/sys"), "{error}");
    rehearse(&[case.new_content("conf")]).unwrap();
    assert_eq!(case.content("conf"), None);
    assert_eq!(fs::read_dir(case.folder.path()).unwrap().count(), 1, "only the source");
}

/// With chattr(1) +i for as long as `done` takes; `None` where this file system has no such mark.
fn immutable<T>(path: &Path, done: impl FnOnce() -> T) -> Option<T> {
    let chattr = |mark: &str| std::process::Command::new("chattr").arg(mark).arg(path).output();
    chattr("+i").is_ok_and(|output| output.status.success()).then(|| {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(done));
        chattr("-i").unwrap();
        done.unwrap()
    })
}

#[test]
fn what_is_immutable_is_refused_and_does_not_keep_a_node_down() {
    let case = Case::new();
    fs::create_dir(case.at("etc")).unwrap();
    let conf = case.write("etc/conf", "old", 0o644);
    let source = case.write("new", "new", 0o644);
    let files = [NewContent { path: conf.clone(), source, owner: None }];
    for path in [case.at("etc"), conf] {
        let tried = immutable(&path, || {
            for refused in [check(&files), rehearse(&files)] {
                let error = crate::words::with_causes(&refused.unwrap_err());
                assert!(error.contains(&*path.to_string_lossy()), "{error}");
            }
            case.saved.switch(&files).unwrap_err();
            case.saved.put_back().unwrap();
        });
        if tried.is_none() {
            return eprintln!("skipped: nothing can be made immutable here");
        }
        assert_eq!(case.content("etc/conf"), of("old", 0o644));
    }
    fs::write(&files[0].path, "new").unwrap();
    immutable(&case.at("etc"), || rehearse(&files).unwrap()).unwrap();
}
