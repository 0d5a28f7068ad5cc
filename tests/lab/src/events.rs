//! What agents wrote with `--events`: the only place that knows the names of their events.

use std::{fs, path::Path};

use serde::Deserialize;

use crate::Error;

/// The names that figures are taken from.
mod name {
    /// The take-down record of a step was put.
    pub(super) const RECORD_PUT: &str = "step_locked";
    /// The member of a step was seen healthy on its new binary.
    pub(super) const MEMBER_READY: &str = "member_ready";
    /// A look showed something else than the one before.
    pub(super) const SEEN: &str = "seen";
}

/// One line of an events file; what it says beyond this is not needed here.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Event {
    /// When, RFC 3339 in UTC.
    pub time: String,
    pub event: String,
    #[serde(default)]
    pub member: Option<String>,
    #[serde(default)]
    pub step: Option<serde_json::Value>,
    #[serde(default)]
    pub why: Option<String>,
    #[serde(default)]
    pub waiting_for: Option<String>,
    #[serde(default)]
    pub seconds: Option<u64>,
}

/// The span of a rollout, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first step lock was put.
    pub first_record: u64,
    /// The last member was healthy.
    pub last_healthy: u64,
}

impl Span {
    /// How long it is, in seconds.
    pub fn seconds(&self) -> f64 {
        (self.last_healthy - self.first_record) as f64 / 1_000.0
    }
}

/// The complete lines of an events file; one that is not there yet has none. Looks are left out: when one is made is nobody's to say,
/// and what is counted here is what an agent did.
///
/// # Errors
/// A line is no event.
pub fn read(file: &Path) -> Result<Vec<Event>, Error> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let event = |line: &str| serde_json::from_str(line).map_err(|error| format!("{}: {line}: {error}", file.display()));
    let mut events: Vec<Event> = whole.lines().map(event).collect::<Result<_, _>>()?;
    events.retain(|event| event.event != name::SEEN);
    Ok(events)
}

/// When the rollout that these events tell of began and ended; `None` if it did not.
///
/// # Errors
/// A time is none.
pub fn span(events: &[Event]) -> Result<Option<Span>, Error> {
    let times = |name| events.iter().filter(move |event| event.event == name).map(|event| millis(&event.time));
    let first = times(name::RECORD_PUT).collect::<Result<Vec<_>, _>>()?.into_iter().min();
    let last = times(name::MEMBER_READY).collect::<Result<Vec<_>, _>>()?.into_iter().max();
    Ok(first.zip(last).map(|(first_record, last_healthy)| Span { first_record, last_healthy }))
}

/// `2026-11-21T11:53:00.123Z` in milliseconds since 1970.
///
/// # Errors
/// It is no such time.
pub fn millis(time: &str) -> Result<u64, Error> {
    let bad = || format!("`{time}` is no time such as 2026-11-21T11:53:00.123Z");
    let (seconds, fraction) = time.strip_suffix('Z').ok_or_else(bad)?.split_once('.').unwrap_or((time, "0"));
    let fields: Vec<u64> = seconds
        .trim_end_matches('Z')
        .split(['-', 'T', ':'])
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| bad())?;
    let [year, month, day, hour, minute, second] = fields[..] else { return Err(bad().into()) };
    let thousandths: u64 = format!("{fraction:0<3}")[..3].parse().map_err(|_| bad())?;
    Ok((((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + thousandths)
}

/// Days from 1970-01-01, counting years from March so that the leap day is the last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_milliseconds_since_1970() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:01.5Z", 1_500),
            ("2000-02-29T12:00:00.001Z", 951_825_600_001),
            ("2026-11-21T11:53:00.123Z", 1_795_261_980_123),
            ("2026-11-21T11:53:00.123456Z", 1_795_261_980_123),
        ] {
            assert_eq!(millis(text).expect(text), expected, "{text}");
        }
        for bad in ["", "yesterday", "2026-11-21", "2026-11-21T11:53:00", "2026-11-21T11:53:xxZ"] {
            assert!(millis(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_span_reaches_from_the_first_record_to_the_last_healthy_member() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("events");
        assert_eq!(read(&file).expect("no file, no events"), []);
        fs::write(
            &file,
            concat!(
                r#"{"format":1,"time":"2026-11-21T11:53:01.000Z","event":"step_locked","member":"m2"}"#,
                "\n",
                r#"{"format":1,"time":"2026-11-21T11:53:00.000Z","event":"step_locked","member":"m1"}"#,
                "\n",
                r#"{"format":1,"time":"2026-11-21T11:53:02.000Z","event":"member_ready","member":"m2","step":2}"#,
                "\n",
                r#"{"format":1,"time":"2026-11-21T11:53:03.000Z","event":"seen","members":[]}"#,
                "\n",
                r#"{"format":1,"time":"2026-11-21T11:5"#,
            ),
        )
        .expect("written");
        let events = read(&file).expect("three whole lines");
        assert_eq!(events.len(), 3);
        let span = span(&events).expect("times").expect("began and ended");
        assert_eq!(span.seconds(), 2.0);
    }
}
