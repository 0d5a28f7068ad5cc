//! A clock that counts suspend: what decides whether a lease still holds must not stop while the host sleeps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since the host booted, suspended time included (`CLOCK_BOOTTIME`).
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back() {
        let earlier = now();
        assert!(now() >= earlier && earlier > Duration::ZERO);
    }
}
