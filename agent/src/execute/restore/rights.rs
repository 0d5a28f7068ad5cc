//! File system work in a folder that another user may change, with that user's rights: so that no name there, which he may make lead
//! anywhere, is worth more to the agent than to him. Root's further groups are rights, too, and are left behind.

use std::{io, thread};

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::thread::set_thread_groups;

use crate::host::process::credentials::Credentials;

/// With whose rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Nobody else may change the folder.
    Own,
    /// He may.
    Of(Credentials),
}

impl Rights {
    /// Does this work with them, on a thread of its own: the kernel keeps them by thread (setfsuid(2)).
    ///
    /// # Errors
    /// They are not to be had, or the work's own.
    pub fn with<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let Self::Of(user) = self else { return work() };
        thread::scope(|scope| {
            let as_user = scope.spawn(|| {
                // Of this thread alone, as the kernel has it; the C library would change them all (setgroups(2)).
                let groups: Vec<_> = user.groups.iter().map(|group| rustix::process::Gid::from_raw(*group)).collect();
                let (user, group) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
                // The groups first: without root's rights they could not be changed. The other two say what was before, and so are asked
                // twice.
                set_thread_groups(&groups)?;
                setfsgid(group);
                setfsuid(user);
                match (setfsgid(group), setfsuid(user)) == (group, user) {
                    true => work(),
                    false => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
                }
            });
            as_user.join().unwrap_or_else(|_| Err(io::Error::other("the work on its files panicked")))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    };

    use super::*;

    fn nobody(groups: &[u32]) -> Rights {
        Rights::Of(Credentials { uid: 65_534, gid: 65_534, groups: groups.to_vec() })
    }

    fn is_root() -> bool {
        let is_root = Uid::effective().is_root();
        if !is_root {
            eprintln!("skipped: only root has another user's rights");
        }
        is_root
    }

    #[test]
    fn work_is_done_with_another_users_rights_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let write = |rights: Rights| rights.with(|| fs::write(&path, "x"));
        write(Rights::Own).unwrap();
        if !is_root() {
            return;
        }
        assert_eq!(write(nobody(&[])).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        chown(folder.path(), Some(65_534), Some(65_534)).unwrap();
        let other = folder.path().join("other");
        nobody(&[]).with(|| fs::write(&other, "x")).unwrap();
        let seen = fs::metadata(&other).unwrap();
        assert_eq!((seen.uid(), seen.gid()), (65_534, 65_534));
        // The rest of the process keeps its own.
        fs::write(&path, "y").unwrap();
    }

    #[test]
    fn what_a_group_of_roots_may_change_is_not_changed_for_another_user() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o770)).unwrap();
        for (group, has) in [(0, &[][..]), (4_242, &[]), (4_242, &[4_242])] {
            chown(folder.path(), Some(0), Some(group)).unwrap();
            let write = || nobody(has).with(|| fs::write(folder.path().join("file"), "x"));
            // As root has many groups where a person has typed.
            let with_groups = || {
                set_thread_groups(&[0, 4_242].map(rustix::process::Gid::from_raw)).unwrap();
                write().is_ok()
            };
            let written = thread::scope(|scope| scope.spawn(with_groups).join().unwrap());
            assert_eq!(written, has.contains(&group), "group {group}, and his are {has:?}");
        }
    }
}
