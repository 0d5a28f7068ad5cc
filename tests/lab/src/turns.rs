//! Whose turn it is: clients go round the members, and leave out for a moment who refuses them.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    Error,
    client::{Access, Client},
};

/// A member that refuses connections is asked again after this, if others are there. etcd's own client leaves it out for
/// a second (grpc-go, `backoff.DefaultConfig`); here it is asked while it comes back, which is when things go wrong.
const REST: Duration = Duration::from_millis(100);

/// The members as all workers have them, who share one connection to each, as the parts of a program do.
pub(crate) struct Turns {
    pub(crate) clients: Vec<Client>,
    /// Until when each is left alone.
    resting: Vec<AtomicU64>,
}

impl Turns {
    pub(crate) fn new(endpoints: &[String], access: &Access) -> Result<Self, Error> {
        let clients = endpoints.iter().map(|url| Client::new(url, access)).collect::<Result<Vec<_>, _>>()?;
        let resting = clients.iter().map(|_| AtomicU64::default()).collect();
        Ok(Self { clients, resting })
    }

    /// The next member that is not left alone, or just the next.
    pub(crate) fn after(&self, turn: usize, now: u64) -> usize {
        let count = self.clients.len();
        let mut others = (1..=count).map(|step| (turn + step) % count);
        others.find(|member| self.resting[*member].load(Ordering::Relaxed) <= now).unwrap_or((turn + 1) % count)
    }

    pub(crate) fn has_refused(&self, member: usize, now: u64) {
        self.resting[member].store(now + REST.as_nanos() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_refuses_is_left_out_for_a_moment_and_nobody_when_all_refuse() {
        let urls = [1, 2, 3].map(|port| format!("http://127.0.0.1:{port}"));
        let turns = Turns::new(&urls, &Access::default()).unwrap();
        let (now, later) = (1, 1 + REST.as_nanos() as u64);
        assert_eq!([7, 0, 1].map(|turn| turns.after(turn, now)), [2, 1, 2]);
        turns.has_refused(1, now);
        assert_eq!([0, 1, 2].map(|turn| turns.after(turn, now)), [2, 2, 0]);
        assert_eq!(turns.after(0, later), 1);
        [0, 2].iter().for_each(|member| turns.has_refused(*member, now));
        assert_eq!(turns.after(0, now), 1);
    }
}
