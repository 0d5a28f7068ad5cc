//! Waiting for a condition, with a deadline and a reason: never a sleep in its place.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Long enough for anything that happens at all, on a loaded machine.
pub const GENEROUS: Duration = Duration::from_secs(60);

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
#[error("waited {waited:?} for {what}: {last}")]
pub struct TimedOut {
    pub what: String,
    pub waited: Duration,
    /// What the last look found instead.
    pub last: String,
}

/// Looks until it finds something; a look that finds nothing says what is missing.
///
/// # Errors
/// The deadline passed, with what the last look said.
pub async fn until<T, L>(what: &str, deadline: Duration, mut look: impl FnMut() -> L) -> Result<T, TimedOut>
where
    L: Future<Output = Result<T, String>>,
{
    let start = Instant::now();
    loop {
        match look().await {
            Ok(found) => return Ok(found),
            Err(last) if start.elapsed() >= deadline => {
                return Err(TimedOut { what: what.into(), waited: start.elapsed(), last });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// [`until`] for a look that does not wait itself.
///
/// # Errors
/// The deadline passed, with what the last look said.
pub fn until_blocking<T>(
    what: &str,
    deadline: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, TimedOut> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(last) if start.elapsed() >= deadline => {
                return Err(TimedOut { what: what.into(), waited: start.elapsed(), last });
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_ends_with_what_it_found_or_what_was_missing() {
        let mut looks = 0;
        let found = until("a third look", GENEROUS, || {
            looks += 1;
            std::future::ready(if looks == 3 { Ok(looks) } else { Err("not yet".into()) })
        });
        assert_eq!(found.await.expect("found"), 3);

        let never = until_blocking::<()>("nothing", Duration::ZERO, || Err("still none".into()));
        assert_eq!(never.expect_err("timed out").last, "still none");
    }
}
