use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use tempfile::TempDir;

use super::*;

pub(crate) struct Case {
    folder: TempDir,
    pub(crate) saved: Saved,
}

impl Case {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let saved = Saved::new(folder.path().join("state/files/step-1"));
        Self { folder, saved }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        fs::write(self.at(name), content).unwrap();
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
        self.at(name)
    }

    pub(crate) fn new_content(&self, name: &str) -> NewContent {
        let source = self.write(&format!("{name}.new"), &format!("new {name}"), 0o600);
        NewContent { path: self.at(name), source, owner: None }
    }

    pub(crate) fn content(&self, name: &str) -> Option<(String, u32)> {
        let path = self.at(name);
        Some((fs::read_to_string(&path).ok()?, fs::metadata(&path).unwrap().mode() & 0o7777))
    }

    pub(crate) fn put_back(&self) {
        let wrong: Vec<_> = self.saved.put_back().iter().map(|error| crate::words::with_causes(error)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

/// With somebody who tries at once.
fn rehearse(
    files: &[NewContent],
    tried: impl Fn(Option<&Path>, &Path) -> Result<(), NotReadable>,
) -> Result<(), SwitchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(super::rehearse(files, async |old, new| tried(old, new)))
}

fn untried(_: Option<&Path>, _: &Path) -> Result<(), NotReadable> {
    Ok(())
}

pub(crate) fn of(content: &str, mode: u32) -> Option<(String, u32)> {
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
            case.put_back();
            assert_eq!((case.content("conf"), case.content("extra")), (of("old conf", 0o640), None));
        }
    }
    case.saved.forget().unwrap();
    case.saved.forget().unwrap();
    case.put_back();
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
    case.put_back();
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
    rehearse(&files, untried).unwrap();
    let owner = |name| fs::metadata(case.at(name)).map(|metadata| (metadata.uid(), metadata.gid())).ok();
    for _ in 0..2 {
        case.saved.switch(&files).unwrap();
        assert_eq!((owner("conf"), owner("extra")), (Some((0, 0)), Some((1234, 4321))));
        assert_eq!(case.content("extra"), of("new extra", 0o600));
    }
    case.put_back();
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
    case.put_back();
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
    assert!(Saved::new(case.saved.folder.clone()).put_back().is_empty());
    assert_eq!((case.content("a"), case.content("b")), (of("old a", 0o644), of("old b", 0o644)));
}

#[test]
fn a_description_that_was_never_written_means_that_nothing_was_changed() {
    let case = Case::new();
    let conf = case.write("conf", "old", 0o644);
    fs::create_dir_all(&case.saved.folder).unwrap();
    fs::write(case.saved.content_of(&conf.canonicalize().unwrap()), "half a co").unwrap();
    case.put_back();
    assert_eq!(case.content("conf"), of("old", 0o644));
    case.saved.switch(&[case.new_content("conf")]).unwrap();
    case.put_back();
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
        (no_folder, "cannot open"),
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
    case.saved.save(&Place::of(&conf).unwrap()).unwrap();
    case.put_back();
    assert_eq!(inode(), first, "saved, never switched");
    case.saved.switch(&[case.new_content("conf")]).unwrap();
    let second = inode();
    case.saved.switch(&[case.new_content("conf")]).unwrap();
    assert_eq!(inode(), second, "switched already");
    fs::set_permissions(&conf, fs::Permissions::from_mode(0o600)).unwrap();
    case.put_back();
    fs::set_permissions(&conf, fs::Permissions::from_mode(0o600)).unwrap();
    case.put_back();
    assert_eq!(case.content("conf"), of("old", 0o640), "its mode comes back where only that had changed");
}

#[test]
fn a_folder_that_takes_no_file_is_named_before_anything_changes() {
    let case = Case::new();
    // Nobody may make files there, root neither.
    let sys = NewContent { path: "/sys/conf".into(), ..case.new_content("conf") };
    let error = crate::words::with_causes(&rehearse(&[sys], untried).unwrap_err());
    assert!(error.contains("/sys"), "{error}");
    rehearse(&[case.new_content("conf")], untried).unwrap();
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
            for refused in [check(&files), rehearse(&files, untried)] {
                let error = crate::words::with_causes(&refused.unwrap_err());
                assert!(error.contains(&*path.to_string_lossy()), "{error}");
            }
            case.saved.switch(&files).unwrap_err();
            case.put_back();
        });
        if tried.is_none() {
            return eprintln!("skipped: nothing can be made immutable here");
        }
        assert_eq!(case.content("etc/conf"), of("old", 0o644));
    }
    fs::write(&files[0].path, "new").unwrap();
    immutable(&case.at("etc"), || rehearse(&files, untried).unwrap()).unwrap();
}

/// The ACL `u::rw-,u:65534:r--,g::---,m::r--,o::---` as the kernel has it (acl(5), `posix_acl_xattr.h`).
fn acl_for_nobody() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(0x01, 6, u32::MAX), (0x02, 4, 65534), (0x04, 0, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let entry =
        |(tag, bits, id): (u16, u16, u32)| [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat();
    [2_u32.to_le_bytes().to_vec(), entries.map(entry).concat()].concat()
}

/// `cap_net_bind_service=ep` (capabilities(7), `VFS_CAP_REVISION_2`).
fn capability() -> Vec<u8> {
    [0x0200_0001_u32, 1 << 10, 0, 0, 0].map(u32::to_le_bytes).concat()
}

#[test]
fn what_the_system_keeps_with_a_file_goes_along_both_ways() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: only root can give files capabilities");
    }
    let kept = [("system.posix_acl_access", acl_for_nobody()), ("security.capability", capability())];
    let found = |path: &Path, name: &str| {
        let mut value = vec![0; 256];
        let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
        value.truncate(length);
        Some(value)
    };
    let case = Case::new();
    let conf = case.write("conf", "old", 0o600);
    for (name, value) in &kept {
        if rustix::fs::setxattr(&conf, *name, value, rustix::fs::XattrFlags::empty()).is_err() {
            return eprintln!("skipped: this file system keeps no {name}");
        }
    }
    let files = [case.new_content("conf"), case.new_content("extra")];
    let seen = std::cell::RefCell::new(Vec::new());
    let tried = |old: Option<&Path>, new: &Path| {
        let all = kept.iter().all(|(name, value)| found(new, name).as_ref() == Some(value));
        seen.borrow_mut().push((old.map(Path::to_owned), all, fs::read_to_string(new).unwrap()));
        Ok(())
    };
    rehearse(&files, tried).unwrap();
    let conf_alone = conf.canonicalize().unwrap();
    assert_eq!(seen.take(), [(Some(conf_alone), true, "new conf".into()), (None, false, "new extra".into())]);
    let are_kept = |when: &str| {
        kept.iter().for_each(|(name, value)| assert_eq!(found(&conf, name).as_ref(), Some(value), "{name}, {when}"));
        assert_eq!(found(&case.at("extra"), "system.posix_acl_access"), None, "{when}");
    };
    case.saved.switch(&files).unwrap();
    are_kept("switched");
    rustix::fs::removexattr(&conf, "system.posix_acl_access").unwrap();
    case.put_back();
    are_kept("put back");
    install(&files).unwrap();
    are_kept("installed");
    // A file without one does not get the one that its folder gives to new files.
    let source = case.write("plain.new", "new", 0o600);
    let plain = case.write("plain", "old", 0o640);
    let default = acl_for_nobody();
    rustix::fs::setxattr(case.folder.path(), "system.posix_acl_default", &default, rustix::fs::XattrFlags::empty())
        .unwrap();
    case.saved.switch(&[NewContent { path: plain.clone(), source, owner: None }]).unwrap();
    assert_eq!((found(&plain, "system.posix_acl_access"), case.content("plain")), (None, of("new", 0o640)));
}

#[test]
fn what_its_node_could_not_read_any_more_is_not_switched() {
    let case = Case::new();
    case.write("conf", "old", 0o600);
    let refused = |_: Option<&Path>, _: &Path| Err(NotReadable { user: "etcd".into(), said: "cannot read it".into() });
    let error = rehearse(&[case.new_content("conf")], refused).unwrap_err();
    assert!(std::error::Error::source(&error).is_some_and(|source| source.is::<NotReadable>()), "{error:?}");
    let error = crate::words::with_causes(&error);
    assert!(error.contains("/conf could not be read any more by its node once it is switched: etcd cannot"), "{error}");
    assert_eq!(fs::read_dir(case.folder.path()).unwrap().count(), 2, "nothing is left beside it");
}

#[test]
fn what_another_may_change_is_neither_switched_nor_put_back() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: two users take root");
    }
    let case = Case::new();
    let theirs = |name: &str| std::os::unix::fs::lchown(case.at(name), Some(65534), Some(65534)).unwrap();
    fs::create_dir(case.at("conf")).unwrap();
    let conf = case.write("conf/etcd.yaml", "old", 0o640);
    let source = case.write("new.yaml", "new", 0o600);
    let secret = case.write("secret", "secret", 0o600);
    let files = [NewContent { path: conf.clone(), source: source.clone(), owner: None }];
    let refused = |when: &str| {
        for result in [check(&files), rehearse(&files, untried), case.saved.switch(&files), install(&files)] {
            let error = crate::words::with_causes(&result.expect_err(when));
            assert!(error.contains("belongs to uid 65534"), "{when}: {error}");
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret", "{when}");
    };
    theirs("conf");
    fs::remove_file(&conf).unwrap();
    symlink(&secret, &conf).unwrap();
    refused("the file is a link");
    fs::remove_file(&conf).unwrap();
    fs::write(&conf, "old").unwrap();
    chown(case.at("conf"), Some(0), Some(0)).unwrap();
    theirs("new.yaml");
    refused("the source is another's");
    chown(&source, Some(0), Some(0)).unwrap();
    case.saved.switch(&files).unwrap();
    // Its folder becomes another's, who puts a link in its place: what was saved would go wherever that leads.
    fs::rename(case.at("conf"), case.at("away")).unwrap();
    fs::create_dir(case.at("theirs")).unwrap();
    fs::create_dir(case.at("root")).unwrap();
    symlink("../root", case.at("theirs/conf")).unwrap();
    symlink("theirs/conf", case.at("conf")).unwrap();
    theirs("theirs");
    let error = crate::words::with_causes(&case.saved.put_back()[0]);
    assert!(error.contains("belongs to uid 65534"), "{error}");
    assert_eq!(fs::read_dir(case.at("root")).unwrap().count(), 0, "nothing was written there");
    // A link of root's is another matter.
    fs::remove_file(case.at("conf")).unwrap();
    symlink("root", case.at("conf")).unwrap();
    case.put_back();
    assert_eq!(case.content("root/etcd.yaml").map(|(content, _)| content), Some("old".into()));
}

/// The user of a node may give its file another name at any moment, and so between preflight and switch.
#[test]
fn a_file_with_a_second_name_is_not_switched_and_put_back_all_the_same() {
    let case = Case::new();
    let conf = case.write("conf", "old", 0o640);
    let files = [case.new_content("conf")];
    let refused = || {
        for result in [check(&files), case.saved.switch(&files)] {
            let error = crate::words::with_causes(&result.unwrap_err());
            assert!(error.contains("names"), "{error}");
        }
    };
    fs::hard_link(&conf, case.at("other")).unwrap();
    refused();
    assert_eq!(case.saved.lost(&files).unwrap(), []);
    case.put_back();
    assert_eq!(case.content("conf"), of("old", 0o640));

    fs::remove_file(case.at("other")).unwrap();
    case.saved.switch(&files).unwrap();
    fs::hard_link(&conf, case.at("other")).unwrap();
    case.put_back();
    assert_eq!((case.content("conf"), case.content("other")), (of("old", 0o640), of("new conf", 0o640)));
    // What was saved is lost: it is the new one all the same.
    case.saved.forget().unwrap();
    fs::rename(case.at("other"), &conf).unwrap();
    fs::hard_link(&conf, case.at("other")).unwrap();
    assert_eq!(case.saved.lost(&files).unwrap(), files);
}

/// The kernel takes any bytes for a name but NUL.
#[test]
fn an_attribute_whose_name_is_no_text_comes_back() {
    let case = Case::new();
    let conf = case.write("conf", "old", 0o640);
    let name = c"user.\xff";
    if rustix::fs::setxattr(&conf, name, b"value", rustix::fs::XattrFlags::empty()).is_err() {
        return eprintln!("skipped: this file system keeps no attributes of users");
    }
    let value = || {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&conf, name, &mut value[..]).unwrap();
        value[..length].to_vec()
    };
    let files = [case.new_content("conf")];
    case.saved.switch(&files).unwrap();
    assert_eq!((case.content("conf"), value()), (of("new conf", 0o640), b"value".to_vec()));
    case.put_back();
    assert_eq!((case.content("conf"), value()), (of("old", 0o640), b"value".to_vec()));
}
