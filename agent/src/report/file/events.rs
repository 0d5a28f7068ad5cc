//! The events file: what happens, as it happens, one JSON object a line.
//!
//! Each line is one write, so that several agents may append to one file. A write that fails is told once and
//! never changes a run; neither does a pipe that nobody reads.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use super::{
    event_line::{Line, line},
    seen::Seen,
};
use crate::{
    calendar::rfc3339,
    event::RunEvent,
    guarded::{At, FileError, Place},
    report::{live::progress::Progress, shown::gates::GatesLine},
    visible,
};

/// How many bytes are kept for a report at most. The end of a run is kept all the same.
const MOST_KEPT: usize = 32 << 20;

/// What happens, as lines: written to a file, kept for a report, or both.
#[derive(Debug)]
pub struct Events {
    host: Arc<str>,
    seq: u64,
    /// What the look before has shown.
    seen: Option<(Seen, Option<GatesLine>)>,
    file: Option<EventsFile>,
    kept: Option<String>,
}

/// An events file that is open.
#[derive(Debug)]
struct EventsFile {
    file: File,
    path: PathBuf,
    is_broken: bool,
}

impl Events {
    /// Written nowhere so far.
    pub fn new(host: Arc<str>) -> Self {
        Self { host, seq: 0, seen: None, file: None, kept: None }
    }

    /// Opens the file to append to, and makes it where there is none, for the agent's user alone. It must not be
    /// another user's to say which file that is (`guarded/`). A pipe without a reader is an error, and one that is
    /// full later loses lines instead of holding up a rollout.
    ///
    /// # Errors
    /// The system's, or why another user could decide what is written to.
    pub fn open(path: &Path, host: Arc<str>) -> Result<Self, FileError> {
        let file = match is_inherited(path) {
            true => open_inherited(path).at("open", path)?,
            false => Place::to_append(path)?.append(Some(0o600))?,
        };
        let file = EventsFile { file, path: path.to_owned(), is_broken: false };
        Ok(Self { file: Some(file), ..Self::new(host) })
    }

    /// Keeps every line from now on.
    pub fn keep(self) -> Self {
        Self { kept: Some(String::new()), ..self }
    }

    /// What was kept.
    pub fn kept(&mut self) -> String {
        self.kept.take().unwrap_or_default()
    }

    /// Writes what happened; answers with a warning the first time that this fails.
    pub fn write(&mut self, event: &RunEvent, progress: &Progress, now: SystemTime) -> Option<String> {
        let line = line(event, progress).filter(|line| self.is_news(line))?;
        let line = line.told(rfc3339(now), &self.host, self.seq);
        let text = serde_json::to_string(&line)
            .expect("all of it is numbers and texts, with texts for keys, which JSON can always hold");
        let text = visible::json(text) + "\n";
        self.seq += 1;
        let is_last = matches!(event, RunEvent::Ended { .. });
        if let Some(kept) = self.kept.as_mut().filter(|kept| is_last || kept.len() + text.len() <= MOST_KEPT) {
            kept.push_str(&text);
        }
        self.file.as_mut()?.write(text.as_bytes())
    }

    /// A look that shows what the one before has shown is no news.
    fn is_news(&mut self, line: &Line) -> bool {
        let Some((seen, gates)) = line.seen() else { return true };
        let seen = Some((seen.clone(), gates.cloned()));
        let is_news = self.seen != seen;
        self.seen = seen;
        is_news
    }
}

impl EventsFile {
    fn write(&mut self, line: &[u8]) -> Option<String> {
        match self.file.write(line) {
            Ok(written) if written == line.len() => None,
            Ok(_) => self.broke("the line was cut"),
            Err(error) => self.broke(&error.to_string()),
        }
    }

    fn broke(&mut self, why: &str) -> Option<String> {
        let first = !std::mem::replace(&mut self.is_broken, true);
        first.then(|| format!("events are lost: {}: {why}", self.path.display()))
    }
}

/// Whether a path is one of the names that a process has for what it was started with (`/dev/stdout`, `/dev/fd/3`, as in
/// `--events >(program)`): whoever started it opened that.
fn is_inherited(path: &Path) -> bool {
    let of_a_number = |folder| path.strip_prefix(folder).is_ok_and(|rest| rest.to_str().is_some_and(is_number));
    path == Path::new("/dev/stdout")
        || path == Path::new("/dev/stderr")
        || of_a_number("/dev/fd")
        || of_a_number("/proc/self/fd")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn open_inherited(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let flags = i32::try_from(flags).map_err(io::Error::other)?;
    OpenOptions::new().append(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_was_started_with_is_told_by_its_name() {
        for (path, expected) in [
            ("/dev/stdout", true),
            ("/dev/stderr", true),
            ("/dev/fd/63", true),
            ("/proc/self/fd/3", true),
            ("/dev/fd/../../tmp/x", false),
            ("/dev/fd/3/x", false),
            ("/dev/fd", false),
            ("/dev/null", false),
            ("dev/stdout", false),
        ] {
            assert_eq!(is_inherited(Path::new(path)), expected, "{path}");
        }
    }
}
