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

use proto::MemberId;
use serde::Serialize;

use crate::{
    calendar::rfc3339,
    event::RunEvent,
    guarded::{At, FileError, Place},
    keys::RunId,
    report::{live::progress::Progress, names::printable, settling, shown::gates::GatesLine, wait},
    visible,
};

/// An events file that is open.
#[derive(Debug)]
pub struct Events {
    file: File,
    path: PathBuf,
    host: Arc<str>,
    seq: u64,
    is_broken: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    format: u32,
    time: String,
    run: Option<RunId>,
    host: &'a str,
    seq: u64,
    event: &'static str,
    member: Option<String>,
    member_id: Option<MemberId>,
    step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<&'a str>,
    /// The program of a guarded command.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gates: Option<GatesLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
    /// How much of a backup is had.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl Events {
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
        Ok(Self { file, path: path.to_owned(), host, seq: 0, is_broken: false })
    }

    /// Writes what happened; answers with a warning the first time that this fails.
    pub fn write(&mut self, event: &RunEvent, progress: &Progress, now: SystemTime) -> Option<String> {
        let line = self.line(event, progress, now)?;
        let text = serde_json::to_string(&line)
            .expect("all of it is numbers and texts, with texts for keys, which JSON can always hold");
        let bytes = (visible::json(text) + "\n").into_bytes();
        self.seq += 1;
        match self.file.write(&bytes) {
            Ok(written) if written == bytes.len() => None,
            Ok(_) => self.broke("the line was cut"),
            Err(error) => self.broke(&error.to_string()),
        }
    }

    fn broke(&mut self, why: &str) -> Option<String> {
        let first = !std::mem::replace(&mut self.is_broken, true);
        first.then(|| format!("events are lost: {}: {why}", self.path.display()))
    }

    fn line<'a>(&'a self, event: &'a RunEvent, progress: &Progress, now: SystemTime) -> Option<Line<'a>> {
        let names = progress.names();
        let member = event.member();
        let mut line = Line {
            format: 1,
            time: rfc3339(now),
            run: progress.run(),
            host: &self.host,
            seq: self.seq,
            event: event.name()?,
            member: member.map(|member| names.short(member)),
            member_id: member,
            step: member.and(progress.step()).map(|step| step.to_string()),
            to: None,
            hook: None,
            command: None,
            why: None,
            waiting_for: None,
            gates: None,
            seconds: None,
            percent: None,
            exit: None,
            reason: None,
        };
        match event {
            RunEvent::HandedOver { to, .. } => line.to = Some(names.short(*to)),
            RunEvent::Lowering { to } => line.to = to.map(|to| to.to_string()),
            RunEvent::Failed { why, .. } | RunEvent::Warning(why) => line.why = Some(printable(why).to_string()),
            RunEvent::LettingPollsEnd { seconds, .. } => line.seconds = Some(*seconds),
            RunEvent::DataPutAside { node, path } => {
                (line.member, line.to) = (Some((*node).to_owned()), Some(printable(path).to_string()));
            }
            RunEvent::BackingUp { percent } => line.percent = Some(*percent),
            RunEvent::BackedUp { path, .. } => line.to = Some(printable(path).to_string()),
            RunEvent::NewcomerAdded { node } => line.member = Some((*node).to_owned()),
            RunEvent::NodeStarted { node } => line.member = Some((*node).to_owned()),
            RunEvent::HookRan { hook, .. } => line.hook = Some(*hook),
            RunEvent::HookFailed { hook, why, .. } => {
                (line.hook, line.why) = (Some(*hook), Some(printable(why).to_string()));
            }
            RunEvent::CommandBegun { command, .. } => line.command = Some(*command),
            RunEvent::CommandEnded { command, failed, .. } => {
                (line.command, line.why) = (Some(*command), failed.map(|how| printable(how).to_string()));
            }
            RunEvent::Hop { change, .. } => line.to = change.to().map(ToString::to_string),
            RunEvent::Preparing { what } => line.waiting_for = Some(printable(what).to_string()),
            RunEvent::Unsettled(missing) => {
                (line.waiting_for, line.gates) = (Some(settling::words(missing, names)), progress.gates());
            }
            RunEvent::GatesSettled => line.gates = progress.gates(),
            RunEvent::Waiting(waited) => line.waiting_for = Some(wait::words(waited, names)),
            RunEvent::Ended { exit, reason } => (line.exit, line.reason) = (Some(*exit), Some(*reason)),
            _ => {}
        }
        Some(line)
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
