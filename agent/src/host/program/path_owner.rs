//! Who may change what a path leads to: the file, and every folder and link on the way to it.
//!
//! A program that anybody else may replace is that person's program, whoever owns it now. So before one is run the
//! whole way is looked at, as sshd(8) does with `StrictModes`. The rule is pure; the reader walks the path by hand, so that
//! the folder of each link is looked at too, and gives the very file that it judged.
//!
//! `guarded/` has a stricter rule for files that root writes or believes, and holds each folder on the way open. A program is
//! only executed, as a user who may own it: so that user may write here, and a group with nobody else in it.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fmt, fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use nix::unistd::{Gid, Group, Uid, User};
use rustix::fs::{Mode, OFlags};

use crate::{
    host::files::durable::{At, FileError},
    words::typed,
};

/// As many links are followed (path_resolution(7)).
const MOST_LINKS: usize = 40;
/// Where the system keeps a file's access control list (acl(5)).
const ACL: &str = "system.posix_acl_access";

/// Who may change a program without being a danger to the user that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writers(BTreeSet<u32>);

impl Writers {
    /// Root, and the user that this agent runs as.
    pub fn own() -> Self {
        Self([0, Uid::effective().as_raw()].into())
    }

    /// These, and one more user.
    pub fn and(mut self, uid: u32) -> Self {
        self.0.insert(uid);
        self
    }
}

impl fmt::Display for Writers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|uid| user_name(*uid)).collect();
        f.write_str(&names.join(" and "))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Folder,
    Link,
    File,
}

/// One part of a way: what its file system says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    kind: Kind,
    owner: u32,
    /// Permission bits with set-id and sticky bit, such as `0o1777`.
    mode: u32,
    /// Whether everybody in its group may change it anyway.
    group_is_trusted: bool,
    /// Whether an access control list gives more than the mode says.
    has_acl: bool,
    file: (u64, u64),
}

/// Why a path is not to be trusted.
#[derive(Debug, thiserror::Error)]
pub enum PathOwnerError {
    /// It could not be looked at.
    #[error(transparent)]
    File(#[from] FileError),
    /// Somebody else may change it.
    #[error(
        "{} (owner {owner}, mode {mode:04o}) can be changed by others than {writers}; type: {command}",
        path.display()
    )]
    Changeable { path: PathBuf, owner: String, mode: u32, writers: Writers, command: String },
    /// Another file has the name than a moment before.
    #[error("{} was replaced while it was looked at", .0.display())]
    Replaced(PathBuf),
}

/// Looks at the whole way to a file or folder.
///
/// # Errors
/// The first place on the way that others may change, or that could not be looked at.
pub fn check(path: &Path, writers: &Writers) -> Result<(), PathOwnerError> {
    judged(path, writers).map(drop)
}

/// As [`check`], and takes hold of what the way leads to (`O_PATH`): nothing that happens to the path changes it.
///
/// # Errors
/// As for [`check`].
pub fn open(path: &Path, writers: &Writers) -> Result<OwnedFd, PathOwnerError> {
    let last = judged(path, writers)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&last.path, flags, Mode::empty()).at("open", &last.path)?;
    let is_same = rustix::fs::fstat(&file).at("look at", path)?;
    match (is_same.st_dev, is_same.st_ino) == last.file {
        true => Ok(file),
        false => Err(PathOwnerError::Replaced(path.into())),
    }
}

/// Looks at the way to a folder or file, and at all that is in it: for what is to be copied.
///
/// # Errors
/// As for [`check`].
pub fn check_tree(path: &Path, writers: &Writers) -> Result<(), PathOwnerError> {
    let mut folders = Vec::from_iter(Some(judged(path, writers)?).filter(|place| place.kind == Kind::Folder));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder.path).at("read", &folder.path)? {
            let place = place(entry.at("read", &folder.path)?.path())?;
            judge(&place, writers)?;
            folders.extend(Some(place).filter(|place| place.kind == Kind::Folder));
        }
    }
    Ok(())
}

/// A user as a person knows it.
pub(crate) fn user_name(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| format!("uid {uid}"), |user| user.name)
}

fn judged(path: &Path, writers: &Writers) -> Result<Place, PathOwnerError> {
    let mut places = places(path)?;
    places.iter().try_for_each(|place| judge(place, writers))?;
    places.pop().ok_or_else(|| PathOwnerError::Replaced(path.into()))
}

/// An owner may give itself every right, so its mode protects a place only against others. In a sticky folder nobody
/// but a name's owner may take the name away, and that owner is judged as a place of its own.
fn judge(place: &Place, writers: &Writers) -> Result<(), PathOwnerError> {
    const GROUP: u32 = 0o020;
    const OTHERS: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let Place { path, kind, owner, mode, .. } = place;
    let is_open = *mode & OTHERS != 0 || (*mode & GROUP != 0 && (place.has_acl || !place.group_is_trusted));
    let is_kept = *kind == Kind::Link || (*kind == Kind::Folder && *mode & STICKY != 0);
    let name = typed(&path.to_string_lossy());
    let command = match (writers.0.contains(owner), is_open && !is_kept, place.has_acl) {
        (true, false, _) => return Ok(()),
        (false, _, _) if *kind == Kind::Link => format!("chown -h root {name}"),
        (false, ..) => format!("chown root {name}"),
        (true, true, true) => format!("setfacl -b {name} && chmod go-w {name}"),
        (true, true, false) => format!("chmod go-w {name}"),
    };
    let (path, mode, writers) = (path.clone(), *mode, writers.clone());
    Err(PathOwnerError::Changeable { path, owner: user_name(*owner), mode, writers, command })
}

/// Every place on the way, the last one being what the path leads to.
fn places(path: &Path) -> Result<Vec<Place>, FileError> {
    let whole = std::path::absolute(path).at("find", path)?;
    let mut rest = parts(&whole);
    let mut at = PathBuf::from("/");
    let mut places = vec![place(at.clone())?];
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let here = at.join(&part);
        let place = place(here.clone())?;
        let is_link = place.kind == Kind::Link;
        places.push(place);
        if !is_link {
            at = here;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            Err(io::Error::from(rustix::io::Errno::LOOP)).at("follow", path)?;
        }
        let target = fs::read_link(&here).at("read", &here)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        rest.extend(parts(&target));
    }
    // A way that goes back up with `..` ends at a place that it has passed before.
    places.push(self::place(at)?);
    Ok(places)
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(part).collect()
}

fn place(path: PathBuf) -> Result<Place, FileError> {
    let seen = fs::symlink_metadata(&path).at("look at", &path)?;
    let kind = match seen.file_type() {
        kind if kind.is_dir() => Kind::Folder,
        kind if kind.is_symlink() => Kind::Link,
        _ => Kind::File,
    };
    let group_may = seen.mode() & 0o020 != 0;
    Ok(Place {
        kind,
        owner: seen.uid(),
        mode: seen.mode() & 0o7777,
        group_is_trusted: group_may && is_private(seen.gid(), seen.uid()),
        // Where there is a list, the group's bits are the most that it gives.
        has_acl: group_may && rustix::fs::lgetxattr_query(&path, ACL).is_ok(),
        file: (seen.dev(), seen.ino()),
        path,
    })
}

/// Whether a group has nobody in it but root and this user, as the groups that each user has for itself.
fn is_private(gid: u32, owner: u32) -> bool {
    if gid == 0 {
        return true;
    }
    let trusted = |uid: u32| uid == 0 || uid == owner;
    let Some(group) = Group::from_gid(Gid::from_raw(gid)).ok().flatten() else { return false };
    let is_trusted = |name: &String| User::from_name(name).ok().flatten().is_none_or(|user| trusted(user.uid.as_raw()));
    // Whose first group it is stands with the users.
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let first_of = |line: &str| {
        let mut fields = line.split(':').skip(2).map(|field| field.parse::<u32>().ok());
        (fields.next().flatten(), fields.next().flatten())
    };
    let mut others = users.lines().map(first_of).filter(|(_, first)| *first == Some(gid));
    group.mem.iter().all(is_trusted) && others.all(|(uid, _)| uid.is_some_and(trusted))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    const NOBODY: u32 = 65534;

    #[test]
    fn a_place_is_changed_by_its_owner_and_by_whom_its_mode_lets() {
        use Kind::{File, Folder, Link};
        let (root, with_nobody) = (Writers([0].into()), Writers([0, NOBODY].into()));
        for (kind, owner, mode, group_is_trusted, has_acl, by_root, by_both) in [
            (File, 0, 0o755, false, false, true, true),
            (File, 0, 0o775, false, false, false, false),
            (File, 0, 0o775, true, false, true, true),
            (File, 0, 0o775, true, true, false, false), // a list hides behind the group's bits
            (File, 0, 0o757, true, false, false, false),
            (File, 0, 0o1757, true, false, false, false), // sticky says nothing of a file
            (File, NOBODY, 0o755, false, false, false, true),
            (File, 1000, 0o555, false, false, false, false), // its owner may give itself the right
            (Folder, 0, 0o755, false, false, true, true),
            (Folder, 0, 0o1777, false, false, true, true),
            (Folder, 0, 0o777, false, false, false, false),
            (Folder, NOBODY, 0o1777, false, false, false, true),
            (Folder, NOBODY, 0o700, false, false, false, true),
            (Link, 0, 0o777, false, false, true, true), // a link's mode means nothing
            (Link, NOBODY, 0o777, false, false, false, true),
        ] {
            let path = PathBuf::from("/opt/etcd");
            let place = Place { path, kind, owner, mode, group_is_trusted, has_acl, file: (0, 0) };
            assert_eq!(judge(&place, &root).is_ok(), by_root, "{place:?}");
            assert_eq!(judge(&place, &with_nobody).is_ok(), by_both, "{place:?}");
        }
    }

    /// The command that an error gives is typed until there is no error any more.
    #[test]
    fn what_is_found_on_a_real_way_is_made_safe_by_what_is_said() {
        if !Uid::effective().is_root() {
            return eprintln!("skipped: files of another user take root");
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("real/bin")).unwrap();
        fs::write(at("real/bin/etcd"), "").unwrap();
        symlink("real", at("alias")).unwrap();
        symlink("../alias/bin/../bin/etcd", at("real/current")).unwrap();
        fs::set_permissions(at("real/bin"), fs::Permissions::from_mode(0o777)).unwrap();
        chown(at("real/bin/etcd"), Some(NOBODY), Some(NOBODY)).unwrap();
        std::os::unix::fs::lchown(at("alias"), Some(NOBODY), None).unwrap();
        let mut typed = Vec::new();
        while let Err(error) = check(&at("real/current"), &Writers::own()) {
            let PathOwnerError::Changeable { command, .. } = &error else { panic!("{error}") };
            assert!(error.to_string().ends_with(&format!("; type: {command}")), "{error}");
            assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
            assert!(!typed.contains(command), "{command} did not help");
            typed.push(command.clone());
        }
        assert_eq!(typed.len(), 3, "{typed:?}");
        open(&at("real/current"), &Writers::own()).unwrap();
        chown(at("real/bin/etcd"), Some(NOBODY), Some(NOBODY)).unwrap();
        assert!(check(&at("real/current"), &Writers::own()).is_err());
        check(&at("real/current"), &Writers::own().and(NOBODY)).unwrap();
        assert!(check_tree(&at("real"), &Writers::own()).is_err());
    }

    #[test]
    fn a_way_that_leads_nowhere_is_said() {
        let folder = tempfile::tempdir().unwrap();
        symlink("itself", folder.path().join("itself")).unwrap();
        for name in ["itself", "absent", "absent/file"] {
            let error = check(&folder.path().join(name), &Writers::own()).unwrap_err();
            assert!(matches!(error, PathOwnerError::File(_)), "{error}");
        }
    }
}
