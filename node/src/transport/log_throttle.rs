//! What is wrong with somebody else, said once and not at each try: there are many in a second.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Before the same is said again, for those who look at the end of a log.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// As many are remembered: strangers can make up any number.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct LogThrottle {
    said: Mutex<BTreeMap<String, Instant>>,
}

impl LogThrottle {
    /// Says it, unless it was just said.
    pub(crate) fn say(&self, what: &'static str, why: &str) {
        if self.is_news(why) {
            tracing::warn!(why, "{what}");
        }
    }

    /// Whether it was not just said; from now on it was.
    pub(crate) fn is_news(&self, why: &str) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(why).is_some_and(|at| at.elapsed() < RETRY_INTERVAL) {
            return false;
        }
        if said.len() == MOST {
            said.clear();
        }
        said.insert(why.to_owned(), Instant::now());
        true
    }
}
