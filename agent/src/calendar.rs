//! Moments as people and scripts read them, in UTC.

use std::time::{Duration, SystemTime};

/// A moment as RFC 3339 has it, in UTC, with milliseconds.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// The milliseconds from 1970 to such a moment; `None` for any other text, and before 1970.
pub fn millis(rfc3339: &str) -> Option<u64> {
    let bytes = rfc3339.as_bytes();
    let has = |at: usize, c: u8| bytes.get(at) == Some(&c);
    let number = |from: usize, to: usize| {
        let digits = rfc3339.get(from..to).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse::<u64>().ok()
    };
    let is_shaped = has(4, b'-') && has(7, b'-') && has(10, b'T') && has(13, b':') && has(16, b':') && has(19, b'.');
    if bytes.len() != "1970-01-01T00:00:00.000Z".len() || !is_shaped || !has(23, b'Z') {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second, thousandths) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
    // A day that the month does not have is the beginning of the next one.
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60
    {
        return None;
    }
    Some((((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1000 + thousandths)
}

/// The days from 1970-01-01 to a date, counting years from March so that the leap day is the last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
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
            assert_eq!(millis(text), Some(milliseconds), "{text}");
        }
        for no_moment in [
            "",
            "yesterday",
            "2026-11-21",
            "2026-11-21T12:03:01Z",
            "2026-11-21T12:03:01.007+01:00",
            "1969-12-31T23:59:59.999Z",
            "2026-13-21T12:03:01.007Z",
            "2026-11-00T12:03:01.007Z",
            "2026-11-21T12:0é:01.007Z",
            "+026-11-21T12:03:01.007Z",
        ] {
            assert_eq!(millis(no_moment), None, "{no_moment}");
        }
    }
}
