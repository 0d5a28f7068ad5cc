//! What another user of the host may try, as root sees it. Each needs two users, and so root.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::PathBuf,
};

use rustix::fs::{CWD, Mode, OFlags};
use tempfile::TempDir;

use super::*;
use crate::words::with_causes;

/// `nobody`, who attacks.
const NOBODY: u32 = 65534;

/// A folder of root's, in it one of nobody's, and a file that nobody may not read.
struct Host {
    folder: TempDir,
}

impl Host {
    /// `None` is a skip.
    fn new() -> Option<Self> {
        if !nix::unistd::Uid::effective().is_root() {
            eprintln!("skipped: two users take root");
            return None;
        }
        let host = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(host.at("theirs")).unwrap();
        chown(host.at("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
        fs::write(host.at("secret"), "secret").unwrap();
        fs::set_permissions(host.at("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        Some(host)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn folder(&self, name: &str, mode: u32) -> PathBuf {
        fs::create_dir(self.at(name)).unwrap();
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
        self.at(name)
    }

    fn secret(&self) -> String {
        fs::read_to_string(self.at("secret")).unwrap()
    }
}

fn lock(path: &std::path::Path) -> Result<fs::File, FileError> {
    Place::named(path)?.open(OFlags::RDWR | OFlags::CREATE, 0o600, Content::Believed)
}

fn uses(path: &std::path::Path) -> Vec<(&'static str, Result<(), FileError>)> {
    vec![
        ("append", Place::of(path).and_then(|place| place.append(Some(0o600))).map(drop)),
        ("lock", lock(path).map(drop)),
        ("read", Place::of(path).and_then(|place| place.read(Content::Believed)).map(drop)),
        ("write", Place::named(path).and_then(|place| place.write(b"chosen", &Access::PRIVATE))),
        ("write through", Place::of(path).and_then(|place| place.write(b"chosen", &Access::PRIVATE))),
        ("link", Place::named(path).and_then(|place| place.write_link("/chosen".as_ref()))),
        ("make", Folder::make(path, 0o700).map(drop)),
    ]
}

#[test]
fn nothing_is_used_below_a_folder_that_another_may_change() {
    let Some(host) = Host::new() else { return };
    symlink(host.at("secret"), host.at("theirs/link")).unwrap();
    fs::hard_link(host.at("secret"), host.at("theirs/hard")).unwrap();
    symlink(host.at("theirs"), host.at("way")).unwrap();
    host.folder("open", 0o777);
    host.folder("group", 0o770);
    for (path, at_fault) in [
        ("theirs/link", "theirs"),
        ("theirs/hard", "theirs"),
        ("theirs/new", "theirs"),
        ("theirs/../secret", "theirs"), // whoever has the folder may move it
        ("way/link", "theirs"),
        ("open/new", "open"),
        ("group/new", "group"),
    ] {
        for (used, result) in uses(&host.at(path)) {
            let error = result.expect_err(&format!("{used} {path}"));
            assert!(error.is_unguarded(), "{used} {path}: {error:?}");
            let said = with_causes(&error);
            assert!(said.contains(&format!("{} ", host.at(at_fault).display())), "{used} {path}: {said}");
        }
    }
    assert_eq!(host.secret(), "secret");
    assert_eq!(fs::read_dir(host.at("theirs")).unwrap().count(), 2, "and nothing was made there");
}

#[test]
fn in_a_folder_for_all_only_what_is_ours_is_used() {
    let Some(host) = Host::new() else { return };
    let shared = host.folder("shared", 0o1777);
    let theirs = |name: &str| {
        let path = shared.join(name);
        std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        path
    };
    symlink(host.at("secret"), shared.join("link")).unwrap();
    fs::write(shared.join("file"), "theirs").unwrap();
    fs::create_dir(shared.join("folder")).unwrap();
    for path in [theirs("link"), theirs("file"), theirs("folder").join("x")] {
        for (used, result) in uses(&path) {
            assert!(result.is_err_and(|error| error.is_unguarded()), "{used} {}", path.display());
        }
    }
    assert_eq!(host.secret(), "secret");
    // What is made there is ours, and found again.
    for _ in 0..2 {
        drop(Folder::make(&shared.join("ours/state"), 0o700).unwrap());
        drop(lock(&shared.join("ours/state/lock")).unwrap());
        drop(Place::of(&shared.join("events")).unwrap().append(Some(0o600)).unwrap());
    }
    assert_eq!(fs::metadata(shared.join("events")).unwrap().mode() & 0o777, 0o600);
    Folder::open(&shared).unwrap_err();
}

#[test]
fn what_is_believed_is_a_plain_file_of_our_own_with_one_name() {
    let Some(host) = Host::new() else { return };
    fs::write(host.at("theirs.json"), "{}").unwrap();
    chown(host.at("theirs.json"), Some(NOBODY), None).unwrap();
    fs::write(host.at("open"), "{}").unwrap();
    fs::set_permissions(host.at("open"), fs::Permissions::from_mode(0o666)).unwrap();
    symlink("secret", host.at("link")).unwrap();
    fs::hard_link(host.at("secret"), host.at("hard")).unwrap();
    rustix::fs::mkfifoat(CWD, host.at("pipe"), Mode::RUSR).unwrap();
    host.folder("folder", 0o755);
    for name in ["theirs.json", "open", "link", "hard", "pipe", "folder"] {
        let read = Place::named(&host.at(name)).and_then(|place| place.read(Content::Believed));
        assert!(read.as_ref().is_err_and(FileError::is_unguarded), "{name}: {read:?}");
    }
    // The link is root's: followed where that is asked for, it is fine; but not to a file with two names.
    fs::remove_file(host.at("hard")).unwrap();
    assert_eq!(Place::of(&host.at("link")).unwrap().read(Content::Believed).unwrap().unwrap(), b"secret");
    let theirs = Place::of(&host.at("theirs.json")).unwrap();
    assert_eq!(theirs.read(Content::Anybodys).unwrap().unwrap(), b"{}");
}

#[test]
fn what_an_earlier_crash_left_is_not_written_through() {
    let Some(host) = Host::new() else { return };
    symlink("secret", host.at(".conf.baton-new")).unwrap();
    Place::of(&host.at("conf")).unwrap().write(b"new", &Access::PRIVATE).unwrap();
    assert_eq!((host.secret(), fs::read(host.at("conf")).unwrap()), ("secret".into(), b"new".to_vec()));
    symlink(host.at("secret"), host.at(".conf.baton-new")).unwrap();
    Place::of(&host.at("conf")).unwrap().rehearse(b"new", &Access::PRIVATE).unwrap().end().unwrap();
    assert_eq!(host.secret(), "secret");
    fs::symlink_metadata(host.at(".conf.baton-new")).unwrap_err();
}

#[test]
fn a_tree_is_removed_without_its_links() {
    let Some(host) = Host::new() else { return };
    for link in ["files", "state/m1"] {
        fs::create_dir_all(host.at("state")).unwrap();
        symlink(host.at("theirs"), host.at(link)).unwrap();
        fs::write(host.at("theirs/kept"), "kept").unwrap();
        crate::host::files::durable::remove_tree(&host.at(link)).unwrap();
        assert!(fs::symlink_metadata(host.at(link)).is_err() && host.at("theirs/kept").exists(), "{link}");
    }
    let error = crate::host::files::durable::remove_tree(&host.at("theirs/kept")).unwrap_err();
    assert!(error.is_unguarded() && host.at("theirs/kept").exists(), "{error:?}");
}

#[test]
fn a_way_that_leads_in_circles_or_nowhere_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    assert!(with_causes(&Place::of(&at("a")).unwrap_err()).contains("symbolic links"));
    assert!(Place::of(&at("no/such")).unwrap_err().is_absent());
    fs::write(at("file"), "").unwrap();
    assert!(with_causes(&Place::of(&at("file/x")).unwrap_err()).to_lowercase().contains("not a directory"));
    for folder in ["/", "/.."] {
        assert!(with_causes(&Place::of(folder.as_ref()).unwrap_err()).contains("it is a folder"), "{folder}");
    }
    let place = Place::of(&at("../../../../../../../../proc/self/../../etc/./hostname")).unwrap();
    assert_eq!(place.path(), PathBuf::from("/etc/hostname"));
}
