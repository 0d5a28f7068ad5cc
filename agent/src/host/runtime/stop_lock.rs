//! The lock that a stop command has as its stdin, so that one which outlives its agent is known to be under way.
//!
//! A stop may drain for a while before it ends its node, and goes on when its agent is killed. The next agent finds the
//! node running then, and would take it for one that was never stopped. flock(2) belongs to the open file and not to who
//! took it: so it is held until the last process that inherited it has ended. The file is empty, and reads as
//! `/dev/null` does.
//!
//! A command may become the member's user, whose other processes can take the open file over (pidfd_getfd(2)) and lock it
//! for ever. So once the command has ended, another file takes the name of the lock.

use std::{fs::File, io, path::Path, process::Stdio};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};

use crate::host::files::durable::{self, Access, At, FileError};

/// The lock, in the hand of the agent that runs the command, too.
#[derive(Debug)]
pub(super) struct StopLock(File);

impl StopLock {
    /// One try; `None` while a stop command holds it.
    pub(super) fn try_take(path: &Path) -> Result<Option<Self>, FileError> {
        // For writing only to be made: what the command gets cannot be written to.
        durable::open_lock(path)?;
        Self::lock(durable::open(path, OFlags::RDONLY, 0)?, path)
    }

    /// Whether a stop command holds it; where there is no file, none ever did.
    pub(super) fn is_held(path: &Path) -> Result<bool, FileError> {
        match durable::open_if_there(path, OFlags::RDONLY)? {
            Some(file) => Ok(Self::lock(file, path)?.is_none()),
            None => Ok(false),
        }
    }

    fn lock(file: File, path: &Path) -> Result<Option<Self>, FileError> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).at("lock", path),
        }
    }

    pub(super) fn stdin(&self) -> io::Result<Stdio> {
        Ok(self.0.try_clone()?.into())
    }

    /// Takes it from all that still hold it: the command has ended, and what it left running is not the stop. To drop
    /// the lock does not do that. Another file comes in its place: whoever has this one open may lock it again.
    pub(super) fn release(self, path: &Path) {
        let _ = flock(&self.0, FlockOperation::Unlock);
        // On a disk that takes no file the lock is as good as whoever had it lets it be.
        let _ = durable::write(path, b"", &Access::PRIVATE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_released_cannot_be_taken_again_by_who_has_it_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.stop");
        let lock = StopLock::try_take(&path).unwrap().unwrap();
        let thief = lock.0.try_clone().unwrap();
        assert!(StopLock::is_held(&path).unwrap());
        lock.release(&path);
        flock(&thief, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(!StopLock::is_held(&path).unwrap());
        let lock = StopLock::try_take(&path).unwrap().unwrap();
        assert!(StopLock::is_held(&path).unwrap() && StopLock::try_take(&path).unwrap().is_none());
        drop(lock);
    }
}
