//! For how long the cluster's gate has been open to be decided, and when it was reset last, as this process has seen it.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Noted by whoever applies.
#[derive(Debug)]
pub struct GateTimes(Mutex<Times>);

#[derive(Debug)]
struct Times {
    /// None while it is decided.
    undecided_since: Option<Instant>,
    /// All the time before that.
    undecided_before: Duration,
    last_reset: Option<Instant>,
}

/// What a page of metrics shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateReading {
    pub undecided: Duration,
    /// None where this process has seen no reset.
    pub since_reset: Option<Duration>,
}

impl GateTimes {
    /// Of a gate that nobody has decided yet.
    pub(super) fn begin() -> Self {
        let (undecided_since, undecided_before) = (Some(Instant::now()), Duration::ZERO);
        Self(Mutex::new(Times { undecided_since, undecided_before, last_reset: None }))
    }

    pub(super) fn is_undecided(&self) -> bool {
        self.times().undecided_since.is_some()
    }

    /// How the gate is now.
    pub(super) fn note(&self, is_undecided: bool) {
        let mut times = self.times();
        match (is_undecided, mem::take(&mut times.undecided_since)) {
            (true, Some(since)) => times.undecided_since = Some(since),
            (true, None) => {
                let now = Instant::now();
                (times.undecided_since, times.last_reset) = (Some(now), Some(now));
            }
            (false, since) => times.undecided_before += since.map_or(Duration::ZERO, |since| since.elapsed()),
        }
    }

    pub fn read(&self) -> GateReading {
        let times = self.times();
        let now = times.undecided_since.map_or(Duration::ZERO, |since| since.elapsed());
        let since_reset = times.last_reset.map(|reset| reset.elapsed());
        GateReading { undecided: times.undecided_before + now, since_reset }
    }

    /// Nothing panics with the lock held, so what a poisoned lock guards is whole.
    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_without_a_decision_is_summed_and_a_reset_is_remembered() {
        let times = GateTimes::begin();
        // Seconds that pass, how the gate is then, and what a page shows.
        for (passed, is_undecided, undecided, since_reset) in [
            (3, true, 3, None),
            (2, false, 5, None), // the first decision is after no reset
            (10, false, 5, None),
            (0, true, 5, Some(0)),
            (4, true, 9, Some(4)), // the same news again is no other reset
            (1, false, 10, Some(5)),
            (7, false, 10, Some(12)),
            (0, true, 10, Some(0)),
        ] {
            advance(Duration::from_secs(passed)).await;
            times.note(is_undecided);
            let expected = GateReading {
                undecided: Duration::from_secs(undecided),
                since_reset: since_reset.map(Duration::from_secs),
            };
            assert_eq!(times.read(), expected, "{passed} s, {is_undecided}");
        }
    }
}
