//! What a node said last in its log: often why it ended.
//!
//! The log may be its user's, and what is found under its name that user's choice. So it is opened as it is for writing
//! (`log.rs`): by the agent where nobody else decides what is found there, else by a process that has become the user. What
//! it says goes into the run's mark, so it is one short line.

use std::{fs::File, path::Path, time::Duration};

use rustix::fs::OFlags;

use super::log_end::end_of;
use crate::{
    guarded::{Content, FileError, Place},
    host::{blocking::blocking, program::trial::Trial, runtime::process::ProcessRuntime},
    words::said,
};

/// How long the agent waits for its end.
const LIMIT: Duration = Duration::from_secs(2);

impl ProcessRuntime {
    /// Its log, and what that says last, if anything can be read of it.
    pub(crate) async fn last_words(&self) -> String {
        let log = &self.command().log;
        match self.last_line().await {
            Some(line) => format!("its log {} says last: {line}", log.display()),
            None => format!("its log is {}", log.display()),
        }
    }

    async fn last_line(&self) -> Option<String> {
        let log = self.command().log.clone();
        let opened = {
            let log = log.clone();
            blocking(move || open(&log).map(|file| file.and_then(|file| end_of(file).ok())))
        };
        // The member waits meanwhile to be put back: a disk that hangs may be what it failed of.
        let opened = tokio::time::timeout(LIMIT, opened).await.ok()?;
        let end = match (opened, self.command().other_user()) {
            (Ok(end), _) => end?,
            (Err(_), Some(user)) => {
                let trial = Trial { user: Some(user), told: Some(log), ..Trial::default() };
                trial.ask(self.launcher()).await.ok()?.into_bytes()
            }
            (Err(_), None) => return None,
        };
        last_line(&end)
    }
}

/// By the agent; `None` where there is none.
fn open(path: &Path) -> Result<Option<File>, FileError> {
    let place = Place::to_append(path)?;
    match place.look()? {
        // To open a pipe may wake who waits at its other end.
        Some(found) if found.is_file() => place.open(OFlags::RDONLY, 0, Content::Anybodys).map(Some),
        _ => Ok(None),
    }
}

/// The last line that says something, its beginning.
fn last_line(end: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(end);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(said(line).to_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::host::files::log_end::{READ, end_as_user};

    #[test]
    fn the_last_line_that_says_something_is_taken_and_cut() {
        for (end, expected) in [
            (&b""[..], None),
            (b"\n \n\n", None),
            (b"one\ntwo\n", Some("two")),
            (b"one\ntwo", Some("two")),
            (b"one\ntwo\n\n  \r\n", Some("two")),
            (b"gone\xff\n", Some("gone\u{fffd}")),
        ] {
            assert_eq!(last_line(end).as_deref(), expected, "{end:?}");
        }
        assert_eq!(last_line(&[b'x'; 4096]).unwrap().len(), crate::words::MAX_SAID);
    }

    #[test]
    fn only_the_end_of_a_plain_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, format!("{}\nlast\n", "x".repeat(1 << 20))).unwrap();
        let read = |path: &Path| open(path).ok().flatten().map(|file| end_of(file).unwrap());
        for end in [read(&log).unwrap(), end_as_user(&log).unwrap()] {
            assert_eq!((end.len() as u64, last_line(&end).as_deref()), (READ, Some("last")));
        }
        assert_eq!(read(&folder.path().join("absent")), None);
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let link = folder.path().join("link");
        symlink(&log, &link).unwrap();
        for path in [folder.path(), &pipe] {
            assert_eq!(read(path), None, "{}", path.display());
            end_as_user(path).unwrap_err();
        }
        end_as_user(&link).unwrap_err();
    }
}
