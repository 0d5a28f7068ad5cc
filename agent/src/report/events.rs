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
    time::{Duration, SystemTime},
};

use proto::MemberId;
use serde::Serialize;

use super::{board::Board, happening::Happening, names::printable, wait};
use crate::rollout::keys::RunId;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl Events {
    /// Opens the file to append to, and makes it where there is none. A pipe without a reader is an error, and
    /// one that is full later loses lines instead of holding up a rollout.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path, host: Arc<str>) -> io::Result<Self> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        let flags = i32::try_from(flags).map_err(io::Error::other)?;
        let file = OpenOptions::new().append(true).create(true).mode(0o644).custom_flags(flags).open(path)?;
        Ok(Self { file, path: path.to_owned(), host, seq: 0, is_broken: false })
    }

    /// Writes what happened; answers with a warning the first time that this fails.
    pub fn write(&mut self, happening: &Happening, board: &Board, now: SystemTime) -> Option<String> {
        let line = self.line(happening, board, now)?;
        let mut bytes = serde_json::to_vec(&line)
            .expect("all of it is numbers and texts, with texts for keys, which JSON can always hold");
        bytes.push(b'\n');
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

    fn line<'a>(&'a self, happening: &'a Happening, board: &Board, now: SystemTime) -> Option<Line<'a>> {
        let names = board.names();
        let member = happening.member();
        let mut line = Line {
            format: 1,
            time: rfc3339(now),
            run: board.run(),
            host: &self.host,
            seq: self.seq,
            event: happening.name()?,
            member: member.map(|member| names.short(member)),
            member_id: member,
            step: member.and(board.step()).map(|step| step.to_string()),
            to: None,
            hook: None,
            why: None,
            waiting_for: None,
            exit: None,
            reason: None,
        };
        match happening {
            Happening::HandedOver { to, .. } => line.to = Some(names.short(*to)),
            Happening::Failed { why, .. } | Happening::Warning(why) => line.why = Some(printable(why).to_string()),
            Happening::HookRan { hook, .. } => line.hook = Some(*hook),
            Happening::HookFailed { hook, why, .. } => {
                (line.hook, line.why) = (Some(*hook), Some(printable(why).to_string()));
            }
            Happening::Waiting(waited) => line.waiting_for = Some(wait::words(waited, names)),
            Happening::Ended { exit, reason } => (line.exit, line.reason) = (Some(*exit), Some(*reason)),
            _ => {}
        }
        Some(line)
    }
}

/// A moment as RFC 3339 has it, in UTC, with milliseconds.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// The Gregorian date so many days after 1970-01-01. Years are counted from March, so that a leap day is the
/// last of its year, in eras of 400 years, which all have 146097 days.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_rfc_3339() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_251_200_123, "2024-03-01T00:00:00.123Z"),
            (1_795_262_581_007, "2026-11-21T12:03:01.007Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds)), text);
        }
    }
}
