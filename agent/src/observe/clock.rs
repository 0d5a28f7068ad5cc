//! How far a member's clock is from this host's, by the date of an answer (RFC 9110, 6.6.1), which has no parts of a second.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// Less is not told.
const LEAST: Duration = Duration::from_secs(2);

/// By so many seconds at least it is apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Apart {
    Ahead(u64),
    Behind(u64),
}

pub(super) fn date(text: &str) -> Option<SystemTime> {
    let stamp = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(stamp.into())
}

/// `date` was said between the two times here.
pub(super) fn apart(date: SystemTime, (asked, answered): (SystemTime, SystemTime)) -> Option<Apart> {
    let later = |one: SystemTime, other: SystemTime| one.duration_since(other).ok().filter(|by| *by >= LEAST);
    let ahead = later(date, answered).map(|by| Apart::Ahead(by.as_secs()));
    ahead.or_else(|| later(asked, date + Duration::from_secs(1)).map(|by| Apart::Behind(by.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_apart_by_what_no_delay_explains() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        for (said, asked, answered, expected) in [
            (100, 100_500, 100_600, None),
            (100, 98_001, 98_100, None), // the answer may have been made at its end
            (100, 97_000, 98_000, Some(Apart::Ahead(2))),
            (100, 90_000, 99_000, None), // a slow answer
            (100, 103_000, 103_001, Some(Apart::Behind(2))),
            (100, 102_999, 103_001, None),
            (100, 160_000, 160_001, Some(Apart::Behind(59))),
        ] {
            assert_eq!(
                apart(at(said * 1000), (at(asked), at(answered))),
                expected,
                "{said} between {asked} and {answered}"
            );
        }
    }

    #[test]
    fn a_date_is_read_as_servers_write_it() {
        let seconds = |text| date(text).map(|date| date.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for rubbish in ["", "now", "Sun, 06 Nov 99999999 08:49:37 GMT", "784111777"] {
            assert_eq!(seconds(rubbish), None, "{rubbish}");
        }
    }
}
