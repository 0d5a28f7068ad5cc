//! How long something has lasted, for people: two units at most.

use std::time::Duration;

/// To the nearest second.
pub fn lasted(time: Duration) -> String {
    let seconds = (time + Duration::from_millis(500)).as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_two_units_at_most() {
        for (millis, expected) in
            [(499, "0 s"), (59_400, "59 s"), (130_000, "2 min 10 s"), (3_660_000, "1 h 1 min"), (90_000_000, "1 d 1 h")]
        {
            assert_eq!(lasted(Duration::from_millis(millis)), expected);
        }
    }
}
