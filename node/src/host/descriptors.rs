//! How many files and connections the process may have open, and what of that is whose. Connections alone must not take what the
//! log, snapshots and other members need (etcd keeps 150 back, `NewLimitListener` in server/embed/etcd.go).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Semaphore;

/// Kept back from clients, where there are twice as many.
const KEPT_BACK: usize = 150;

/// With fewer, what is kept back is not enough for the log. etcd refuses 150 and less.
const LEAST: usize = 128;

/// The process may have too few files and connections open.
#[derive(Debug, thiserror::Error)]
#[error(
    "this process may have {0} files and connections open, and a member needs {LEAST}: start it with more, by `ulimit -n` or \
     by `LimitNOFILE=` in its unit"
)]
pub struct TooFewDescriptors(usize);

/// The limit of this process, divided.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    limit: usize,
}

impl Descriptors {
    /// Raises the limit to the highest that this process may have, as Go's runtime does for etcd.
    ///
    /// # Errors
    /// They are too few all the same.
    pub fn claim() -> Result<Self, TooFewDescriptors> {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let is_raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
        let limit = if is_raised { maximum } else { current };
        Self::of(limit.and_then(|limit| limit.try_into().ok()).unwrap_or(usize::MAX))
    }

    fn of(limit: usize) -> Result<Self, TooFewDescriptors> {
        match limit {
            ..LEAST => Err(TooFewDescriptors(limit)),
            _ => Ok(Self { limit: limit.min(Semaphore::MAX_PERMITS) }),
        }
    }

    fn kept_back(&self) -> usize {
        KEPT_BACK.min(self.limit / 2)
    }

    /// As many connections of clients are taken in at once.
    pub fn for_clients(&self) -> usize {
        self.limit - self.kept_back()
    }

    /// As many connections of other members are taken in at once; the rest of what is kept back is for files, and for
    /// connections that this member makes.
    pub fn for_peers(&self) -> usize {
        self.kept_back() / 2
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn something_is_kept_back_or_nothing_is_begun() {
        for (limit, clients, peers) in [(65_536, 65_386, 75), (1_024, 874, 75), (128, 64, 32)] {
            let descriptors = Descriptors::of(limit).unwrap();
            assert_eq!((descriptors.for_clients(), descriptors.for_peers()), (clients, peers), "{limit}");
        }
        assert!(Descriptors::of(127).unwrap_err().to_string().contains("127 files"));
        assert!(Descriptors::of(usize::MAX).unwrap().for_clients() <= Semaphore::MAX_PERMITS);
    }
}
