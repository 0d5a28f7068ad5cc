//! What a node said last in its log: often why it ended.
//!
//! The log may be its user's, and what is found under its name that user's choice. So it is opened as it is for writing
//! (`log.rs`): by the agent where nobody else decides what is found there, else by a process that has become the user. What
//! it says goes into the run's mark, so it is short: a few lines, where they are.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::Duration,
};

use rustix::fs::OFlags;

use super::{log_end::end_of, log_lines::last_lines};
use crate::{
    guarded::{Content, FileError, Place},
    host::{
        blocking::blocking,
        program::trial::Trial,
        runtime::{command::CommandRuntime, process::ProcessRuntime},
    },
};

/// How long the agent waits for its end.
const LIMIT: Duration = Duration::from_secs(2);

impl ProcessRuntime {
    /// Its log, or what was opened instead of that, and what that says last, if anything can be read of it.
    pub(crate) async fn last_words(&self) -> String {
        let output = {
            let runtime = self.clone();
            blocking(move || runtime.output())
        };
        // The member waits meanwhile to be put back: a disk that hangs may be what it failed of.
        let Some((log, begins)) = tokio::time::timeout(LIMIT, output).await.ok().flatten() else {
            return format!("whether it wrote to its log {} is not known", self.command().log.display());
        };
        if self.is_silent_since_its_start(&log, begins).await {
            return format!("it has written nothing to its log {}", log.display());
        }
        match self.end_of_log(&log, begins.unwrap_or_default()).await {
            Some(words) => format!("its log {} says last: {words}", log.display()),
            None => format!("its log is {}", log.display()),
        }
    }

    /// Else what an earlier process said last would be taken for its word.
    async fn is_silent_since_its_start(&self, log: &Path, begins: Option<u64>) -> bool {
        let (log, started) = (log.to_owned(), self.started_file());
        // A device is not modified by what is written to it.
        let looked = blocking(move || {
            let log = fs::metadata(log)?;
            let is_silent = begins == Some(log.len()) || log.modified()? < fs::metadata(started)?.modified()?;
            Ok::<_, io::Error>(log.is_file() && is_silent)
        });
        matches!(tokio::time::timeout(LIMIT, looked).await, Ok(Ok(true)))
    }

    async fn end_of_log(&self, log: &Path, from: u64) -> Option<String> {
        let opened = {
            let log = log.to_owned();
            blocking(move || open(&log).map(|file| file.and_then(|file| end_of(file, from).ok())))
        };
        let opened = tokio::time::timeout(LIMIT, opened).await.ok()?;
        let end = match (opened, self.command().other_user()) {
            (Ok(end), _) => end?,
            (Err(_), Some(user)) => {
                let trial = Trial { user: Some(user), told: Some((log.to_owned(), from)), ..Trial::default() };
                trial.ask(self.launcher()).await.ok()?.into_bytes()
            }
            (Err(_), None) => return None,
        };
        last_lines(&String::from_utf8_lossy(&end))
    }
}

impl CommandRuntime {
    /// What its start command wrote, which is the agent's own file. The node's log is its supervisor's.
    pub(crate) async fn last_words(&self) -> String {
        let output = self.start_output();
        let read = {
            let output = output.clone();
            blocking(move || File::open(output).and_then(|file| end_of(file, 0)))
        };
        let end = tokio::time::timeout(LIMIT, read).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match end.map(|end| last_lines(&String::from_utf8_lossy(&end))) {
            Ok(Some(words)) => format!("its `start` said last, in {}: {words}", output.display()),
            Ok(None) => format!("its `start` said nothing in {}", output.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                format!("no agent has run its `start`: there is no {}", output.display())
            }
            Err(error) => format!("what its `start` said is not known: {} cannot be read ({error})", output.display()),
        }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::host::files::log_end::{READ, end_as_user};

    #[test]
    fn only_the_end_of_a_plain_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let written = format!("first\n{}\nlast\n", "x".repeat(1 << 20));
        fs::write(&log, &written).unwrap();
        let read = |path: &Path, from| open(path).ok().flatten().map(|file| end_of(file, from).unwrap());
        let end = written.len() as u64;
        for (from, expected) in
            [(0, "last\n"), (end - READ, &written[written.len() - READ as usize..]), (end - 5, "last\n"), (end, "")]
        {
            for read in [read(&log, from).unwrap(), end_as_user(&log, from).unwrap()] {
                assert_eq!(String::from_utf8(read).unwrap(), expected, "{from}");
            }
        }
        // It was emptied since, or is another file.
        fs::write(&log, "short\n").unwrap();
        assert_eq!(read(&log, end).unwrap(), b"short\n");
        let read = |path: &Path| read(path, 0);
        assert_eq!(read(&folder.path().join("absent")), None);
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let link = folder.path().join("link");
        symlink(&log, &link).unwrap();
        for path in [folder.path(), &pipe] {
            assert_eq!(read(path), None, "{}", path.display());
            end_as_user(path, 0).unwrap_err();
        }
        end_as_user(&link, 0).unwrap_err();
    }
}
