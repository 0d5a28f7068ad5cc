//! Durations and sizes as a person writes them: a number and a unit, always. And how they, and the other
//! values that YAML has no type for, are written out again.

use std::{fmt::Display, time::Duration};

use serde::{Serializer, ser::SerializeMap};

pub const DURATION: &str = "a duration with its unit, such as `500ms`, `10s`, `1m30s` or `2h`";
pub const SIZE: &str = "a size with its unit, such as `512B`, `64KiB`, `256MiB` or `2GiB`";
/// Long enough for any wait, and short enough that adding it to a clock cannot overflow.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

const TIME_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Why a text is no duration or size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error("`{text}` has no unit")]
    NoUnit { text: String, expected: &'static str },
    /// Another unit, a fraction, a sign, units out of order, or no number at all.
    #[error("`{text}` cannot be read")]
    Unreadable { text: String, expected: &'static str },
    /// More than the agent can work with.
    #[error("`{text}` is too much")]
    TooMuch { text: String, expected: &'static str },
}

impl UnitError {
    /// What should have been written.
    pub fn expected(&self) -> &'static str {
        match self {
            Self::NoUnit { expected, .. } | Self::Unreadable { expected, .. } | Self::TooMuch { expected, .. } => {
                expected
            }
        }
    }
}

/// Reads `500ms`, `10s`, `2m`, `1h` or several of them from large to small, such as `1m30s`; 30 days at most.
///
/// # Errors
/// [`UnitError`] says what is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let too_much = || UnitError::TooMuch { text: text.into(), expected: "at most 30 days, which is `720h`" };
    let parts = parts(text, &TIME_UNITS, DURATION)?;
    let millis = total(&parts).ok_or_else(too_much)?;
    Some(Duration::from_millis(millis)).filter(|duration| *duration <= LONGEST).ok_or_else(too_much)
}

/// Reads a number of bytes: `512B`, `64KiB`, `256MiB`, `2GiB`.
///
/// # Errors
/// [`UnitError`] says what is wrong with the text.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let parts = parts(text, &SIZE_UNITS, SIZE)?;
    let [_] = parts[..] else { return Err(UnitError::Unreadable { text: text.into(), expected: SIZE }) };
    total(&parts).ok_or(UnitError::TooMuch { text: text.into(), expected: "at most 17179869183GiB" })
}

/// The numbers in a text with what their units stand for, from large to small; at least one.
fn parts(text: &str, units: &[(&str, u64)], expected: &'static str) -> Result<Vec<(u64, u64)>, UnitError> {
    let unreadable = || UnitError::Unreadable { text: text.into(), expected };
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(UnitError::NoUnit { text: text.into(), expected });
    }
    let mut parts: Vec<(u64, u64)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, |c| !c.is_ascii_digit());
        let &(_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(unreadable)?;
        if parts.last().is_some_and(|&(_, larger)| larger <= factor) {
            return Err(unreadable());
        }
        parts.push((number.parse().map_err(|_| unreadable())?, factor));
        rest = after;
    }
    if parts.is_empty() { Err(unreadable()) } else { Ok(parts) }
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn total(parts: &[(u64, u64)]) -> Option<u64> {
    parts.iter().try_fold(0u64, |sum, &(number, factor)| sum.checked_add(number.checked_mul(factor)?))
}

/// A duration as [`parse_duration`] reads it.
pub fn format_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, factor) in TIME_UNITS {
        if rest >= factor {
            text.push_str(&format!("{}{unit}", rest / factor));
            rest %= factor;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// A number of bytes as [`parse_size`] reads it, in the largest unit that loses nothing.
pub fn format_size(bytes: u64) -> String {
    let whole = |&(_, factor): &(&str, u64)| bytes != 0 && bytes.is_multiple_of(factor);
    let (unit, factor) = SIZE_UNITS.into_iter().find(whole).unwrap_or(("B", 1));
    format!("{}{unit}", bytes / factor)
}

pub(super) fn duration<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_duration(*duration))
}

/// `{ timeout: 2m }`
pub(super) fn timeout<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("timeout", &format_duration(*duration))?;
    map.end()
}

pub(super) fn size<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_size(*bytes))
}

pub(super) fn optional_text<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// `{ id: … }`
pub(super) fn restart_id<S: Serializer>(id: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("id", id)?;
    map.end()
}

/// `replace: { member: …, by: … }`
pub(super) fn replace<S: Serializer>(member: &str, by: &str, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(serde::Serialize)]
    struct Pair<'a> {
        member: &'a str,
        by: &'a str,
    }
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("replace", &Pair { member, by })?;
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_number_and_a_unit() {
        for (text, millis) in [
            ("0s", 0),
            ("500ms", 500),
            ("10s", 10_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1m30s", 90_000),
            ("1h1m1s1ms", 3_661_001),
            ("90s", 90_000),
            ("720h", 2_592_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "s", "1.5s", "-1s", "10 s", "1d", "1m1m", "1s1m", "10S", "1m30", "ten", "٣s"] {
            assert!(matches!(parse_duration(bad), Err(UnitError::Unreadable { .. })), "{bad}");
        }
        assert!(matches!(parse_duration("10"), Err(UnitError::NoUnit { .. })));
        for much in ["721h", "720h1ms", "18446744073709551615h", "18446744073709551615ms"] {
            assert!(matches!(parse_duration(much), Err(UnitError::TooMuch { .. })), "{much}");
        }
    }

    #[test]
    fn a_size_has_a_number_and_a_unit() {
        for (text, bytes) in [("0B", 0), ("1B", 1), ("64KiB", 65_536), ("256MiB", 268_435_456), ("2GiB", 1 << 31)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "MiB", "1MB", "1GiB1B", "1.5GiB", "-1B", "1 MiB"] {
            assert!(matches!(parse_size(bad), Err(UnitError::Unreadable { .. })), "{bad}");
        }
        assert!(matches!(parse_size("268435456"), Err(UnitError::NoUnit { .. })));
        assert!(matches!(parse_size("17179869184GiB"), Err(UnitError::TooMuch { .. })));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for millis in [0, 1, 999, 1_000, 60_000, 61_001, 3_600_000, 90_061_007] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration), "{millis}");
        }
        for bytes in [0, 1, 1023, 1024, 1025, 256 << 20, u64::MAX] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes), "{bytes}");
        }
        assert_eq!(format_duration(Duration::from_secs(90)), "1m30s");
        assert_eq!(format_size(256 << 20), "256MiB");
    }
}
