//! Moments and spans of time, as a page has them. In UTC.

use std::time::{Duration, SystemTime};

use crate::{calendar::rfc3339, report::lasted::lasted};

/// As RFC 3339 has it.
pub(super) fn whole(at: u64) -> String {
    rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(at))
}

/// The date alone.
pub(super) fn date(at: u64) -> String {
    whole(at).chars().take(10).collect()
}

/// The time of day, to the thousandth.
pub(super) fn clock(at: u64) -> String {
    whole(at).chars().skip(11).take(12).collect()
}

/// How long something took.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 if millis < 10 => format!("{millis} ms"),
        0..10 => format!("{}.{:02} s", seconds, millis % 1000 / 10),
        10..60 => format!("{}.{} s", seconds, millis % 1000 / 100),
        _ => lasted(Duration::from_millis(millis)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_two_units_at_most() {
        for (millis, expected) in [
            (0, "0 ms"),
            (9, "9 ms"),
            (87, "0.08 s"),
            (1_234, "1.23 s"),
            (12_345, "12.3 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(span(millis), expected);
        }
        assert_eq!((date(0), clock(1_001)), ("1970-01-01".into(), "00:00:01.001".into()));
    }
}
