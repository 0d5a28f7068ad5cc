//! What takes longer than it should: how long that is, and how often it is said. A flood of it must not fill a disk.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// As many lines in a second. Whatever comes then is counted, and the next line says how much there was.
const MOST_LINES: u32 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// What may take so long.
#[derive(Debug)]
pub struct Slow {
    after: Duration,
    said: Mutex<Said>,
}

#[derive(Debug)]
struct Said {
    since: Instant,
    lines: u32,
    not_said: u64,
}

impl Slow {
    /// Longer than this is too long.
    pub fn after(after: Duration) -> Self {
        Self { after, said: Mutex::new(Said { since: Instant::now(), lines: 0, not_said: 0 }) }
    }

    /// What is not too long yet.
    pub fn limit(&self) -> Duration {
        self.after
    }

    /// Whether that was too long.
    pub fn is_slow(&self, took: Duration) -> bool {
        took > self.after
    }

    /// Whether it may be said now; then, how many were not since the last one that was.
    pub fn may_say(&self) -> Option<u64> {
        let (mut said, now) = (self.said.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if now.saturating_duration_since(said.since) >= PERIOD {
            (said.since, said.lines) = (now, 0);
        }
        if said.lines == MOST_LINES {
            said.not_said += 1;
            return None;
        }
        said.lines += 1;
        Some(std::mem::take(&mut said.not_said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_counted_and_not_said() {
        let slow = Slow::after(Duration::from_millis(100));
        assert!(!slow.is_slow(Duration::from_millis(100)) && slow.is_slow(Duration::from_millis(101)));
        let said = |count: u32| (0..count).filter_map(|_| slow.may_say()).collect::<Vec<_>>();
        assert_eq!(said(1000), [0; MOST_LINES as usize]);
        tokio::time::advance(PERIOD).await;
        assert_eq!(said(2), [990, 0], "the next one says how many there were");
    }
}
