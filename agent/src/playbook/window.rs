//! `strategy.window`: when a host may begin a step, as `Sat 01:00-05:00 Europe/Berlin`.
//!
//! Pure: the moment is given. Time zones are those of the IANA database that the agent has with it, as a host may have none. A window
//! that begins before midnight may end after it; the day is the one on which it begins.

use std::time::SystemTime;

use jiff::{
    Timestamp, Zoned,
    civil::{Date, Time, Weekday},
    tz::TimeZone,
};

/// How many days are looked ahead: whatever day it is on comes within a week, and one may fall out where clocks are changed.
const DAYS_AHEAD: i64 = 15;
const NAMES: [(&str, Weekday); 7] = [
    ("Mon", Weekday::Monday),
    ("Tue", Weekday::Tuesday),
    ("Wed", Weekday::Wednesday),
    ("Thu", Weekday::Thursday),
    ("Fri", Weekday::Friday),
    ("Sat", Weekday::Saturday),
    ("Sun", Weekday::Sunday),
];
/// How one is written.
pub const EXPECTED: &str = "days, times and a time zone, such as `Sat 01:00-05:00 Europe/Berlin`, `Mon-Fri 22:00-04:00 UTC` or `daily 01:00-05:00 UTC`";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// As it was written.
    text: String,
    days: Vec<Weekday>,
    from: Time,
    /// The next midnight, where there is none.
    to: Option<Time>,
    zone: TimeZone,
}

impl Window {
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let [days, times, zone] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("`{text}` has not three words"));
        };
        let (from, to) = times.split_once('-').ok_or_else(|| format!("`{times}` is no span of time"))?;
        let to = if to == "24:00" { None } else { Some(time(to)?) };
        let from = time(from)?;
        if Some(from) == to {
            return Err("a window that never opens; a whole day is `00:00-24:00`".to_owned());
        }
        let zone = TimeZone::get(zone).map_err(|_| format!("`{zone}` is no time zone of the IANA database"))?;
        Ok(Self { text: text.to_owned(), days: days_of(days)?, from, to, zone })
    }

    /// When it opens, in its own time; `None` while it is open.
    pub fn closed_until(&self, now: SystemTime) -> Option<String> {
        let now = Timestamp::try_from(now).unwrap_or(Timestamp::MAX);
        let today = now.to_zoned(self.zone.clone()).date();
        // One that began yesterday may be open yet.
        let dates = (-1..DAYS_AHEAD).filter_map(|days| today.checked_add(jiff::Span::new().days(days)).ok());
        let spans = dates.filter(|date| self.days.contains(&date.weekday())).filter_map(|date| self.on(date));
        // Where clocks are put forward, a short one may fall out.
        let next = spans.filter(|(from, to)| from < to).find(|(_, to)| to.timestamp() > now)?;
        (next.0.timestamp() > now).then(|| next.0.strftime("%a %Y-%m-%d %H:%M %Z").to_string())
    }

    fn on(&self, date: Date) -> Option<(Zoned, Zoned)> {
        let is_same_day = self.to.is_some_and(|to| to > self.from);
        let ends = if is_same_day { date } else { date.tomorrow().ok()? };
        let at = |date: Date, time: Time| date.to_datetime(time).to_zoned(self.zone.clone()).ok();
        Some((at(date, self.from)?, at(ends, self.to.unwrap_or(Time::midnight()))?))
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// `daily`, `Sat`, `Mon-Fri`, `Sat,Sun`, `Fri-Mon`
fn days_of(text: &str) -> Result<Vec<Weekday>, String> {
    if text == "daily" {
        return Ok(NAMES.map(|(_, day)| day).to_vec());
    }
    let mut days = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (place(first)?, place(last)?);
        let count = (last + 7 - first) % 7;
        days.extend((0..=count).map(|on| NAMES[(first + on) % 7].1));
    }
    Ok(days)
}

fn place(name: &str) -> Result<usize, String> {
    NAMES.iter().position(|(known, _)| *known == name).ok_or_else(|| format!("`{name}` is no day"))
}

fn time(text: &str) -> Result<Time, String> {
    let wrong = || format!("`{text}` is no time of day");
    let (hour, minute) =
        text.split_once(':').filter(|(hour, minute)| hour.len() == 2 && minute.len() == 2).ok_or_else(wrong)?;
    let number =
        |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i8>().ok()).flatten();
    let (hour, minute) = number(hour).zip(number(minute)).ok_or_else(wrong)?;
    Time::new(hour, minute, 0, 0).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SystemTime {
        text.parse::<Timestamp>().unwrap().into()
    }

    #[test]
    fn a_window_is_open_between_its_times_on_its_days() {
        for (window, now, opens) in [
            ("Sat 01:00-05:00 Europe/Berlin", "2026-12-05T00:00:00Z", None), // one o'clock there
            ("Sat 01:00-05:00 Europe/Berlin", "2026-12-05T03:59:59Z", None),
            ("Sat 01:00-05:00 Europe/Berlin", "2026-12-05T04:00:00Z", Some("Sat 2026-12-12 01:00 CET")),
            ("Sat 01:00-05:00 Europe/Berlin", "2026-12-04T23:59:59Z", Some("Sat 2026-12-05 01:00 CET")),
            ("Sat 01:00-05:00 Europe/Berlin", "2026-07-01T12:00:00Z", Some("Sat 2026-07-04 01:00 CEST")),
            ("Mon-Fri 22:00-04:00 UTC", "2026-12-05T03:00:00Z", None), // since Friday
            ("Mon-Fri 22:00-04:00 UTC", "2026-12-06T03:00:00Z", Some("Mon 2026-12-07 22:00 UTC")),
            ("Fri-Mon 00:00-01:00 UTC", "2026-12-06T00:30:00Z", None),
            ("Sat,Sun 08:00-09:00 UTC", "2026-12-05T09:30:00Z", Some("Sun 2026-12-06 08:00 UTC")),
            ("daily 01:00-05:00 UTC", "2026-12-06T05:00:00Z", Some("Mon 2026-12-07 01:00 UTC")),
            ("daily 00:00-23:59 UTC", "2026-12-06T12:00:00Z", None),
            ("Sat,Sun 00:00-24:00 UTC", "2026-12-05T23:59:59Z", None),
            ("Sat,Sun 00:00-24:00 UTC", "2026-12-06T00:00:00Z", None),
            ("Sat,Sun 00:00-24:00 UTC", "2026-12-07T00:00:00Z", Some("Sat 2026-12-12 00:00 UTC")),
            // Clocks are put forward from 02:00 to 03:00 on this Sunday, and back from 03:00 to 02:00 on the other.
            ("Sun 02:15-02:45 Europe/Berlin", "2026-03-29T00:00:00Z", Some("Sun 2026-03-29 03:15 CEST")),
            ("Sun 01:30-02:30 Europe/Berlin", "2026-10-25T00:45:00Z", Some("Sun 2026-11-01 01:30 CET")),
        ] {
            let found = Window::parse(window).unwrap().closed_until(at(now));
            assert_eq!(found.as_deref(), opens, "{window} at {now}");
        }
    }

    #[test]
    fn what_is_no_window_says_why() {
        for (text, why) in [
            ("Sat 01:00-01:00 UTC", "a window that never opens; a whole day is `00:00-24:00`"),
            ("Sat 01:00-05:00", "`Sat 01:00-05:00` has not three words"),
            ("Saturday 01:00-05:00 UTC", "`Saturday` is no day"),
            ("Sat- 01:00-05:00 UTC", "`` is no day"),
            ("Sat 1:00-05:00 UTC", "`1:00` is no time of day"),
            ("Sat 24:00-01:00 UTC", "`24:00` is no time of day"),
            ("Sat 01:00-+5:00 UTC", "`+5:00` is no time of day"),
            ("Sat 01:00 UTC", "`01:00` is no span of time"),
            ("Sat 01:00-05:00 Europe/Berln", "`Europe/Berln` is no time zone of the IANA database"),
        ] {
            assert_eq!(Window::parse(text).unwrap_err(), why);
        }
    }
}
