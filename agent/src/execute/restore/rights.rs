//! File system work in a folder that another user may change, with that user's rights: so that no name there, which he may make lead
//! anywhere, is worth more to the agent than to him.

use std::{io, thread};

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

/// With whose rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Nobody else may change the folder.
    Own,
    /// User and group, who may.
    Of(u32, u32),
}

impl Rights {
    /// Does this work with them, on a thread of its own: the kernel keeps them by thread (setfsuid(2)).
    ///
    /// # Errors
    /// They are not to be had, or the work's own.
    pub fn with<T: Send>(self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let Self::Of(user, group) = self else { return work() };
        thread::scope(|scope| {
            let as_user = scope.spawn(|| {
                let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
                // The group first: without root's rights it could not be changed. They say what was before, and so are asked twice.
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
    use std::{fs, os::unix::fs::MetadataExt as _};

    use super::*;

    const NOBODY: u32 = 65_534;

    #[test]
    fn work_is_done_with_another_users_rights_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let write = |rights: Rights| rights.with(|| fs::write(&path, "x"));
        write(Rights::Own).unwrap();
        if !Uid::effective().is_root() {
            eprintln!("skipped: only root has another user's rights");
            return;
        }
        assert_eq!(write(Rights::Of(NOBODY, NOBODY)).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let other = folder.path().join("other");
        Rights::Of(NOBODY, NOBODY).with(|| fs::write(&other, "x")).unwrap();
        let seen = fs::metadata(&other).unwrap();
        assert_eq!((seen.uid(), seen.gid()), (NOBODY, NOBODY));
        // The rest of the process keeps its own.
        fs::write(&path, "y").unwrap();
    }
}
