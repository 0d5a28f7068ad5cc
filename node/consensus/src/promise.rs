//! What a member owes to a leader that it does not know of any more.
//!
//! Who hears a leader votes for nobody else for a lease's time: a leader may answer reads by that alone
//! ([`ReadMode::Lease`](crate::ReadMode)). openraft remembers it no longer than the process. So who was started again keeps still for
//! as long as it may have promised. It costs nothing: whoever stands for election has waited longer for the leader.

use std::time::Duration;

use tokio::time::Instant;

use crate::types::VoteRequest;

/// Whether this member may vote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    until: Instant,
}

impl Promise {
    /// Of a member that starts now. One that has never voted has heard no leader.
    pub(crate) fn of_start(has_voted: bool, lease: Duration) -> Self {
        Self { until: Instant::now() + if has_voted { lease } else { Duration::ZERO } }
    }

    /// Whether it forbids this vote. Who was asked by the leader itself to take over breaks none.
    pub(crate) fn forbids(self, request: &VoteRequest) -> bool {
        Instant::now() < self.until && !request.leadership_transfer
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{
        io::{self, BufRead},
        sync::Arc,
    };

    use bytes::Bytes;
    use futures_util::future::{BoxFuture, pending};
    use wal::{Options, Wal};

    use super::*;
    use crate::{
        Applier, Frozen, Group, Lane, Machine, Outgoing, Peer, PeerError, Peers, Pipe, Question, ReadMode, Restored,
        Settings, Snapshots, Stop,
        format::{Ballot, Wire, decode, message},
        types::{LeaderId, Vote},
    };

    /// Longer than any test takes.
    const ELECTION: Duration = Duration::from_secs(3600);

    struct Nothing;

    impl Machine for Nothing {
        fn apply(&self, _: &[(u64, Option<Bytes>)]) -> Result<(), Stop> {
            Ok(())
        }

        fn freeze(&self) -> Frozen {
            Box::new(|_: &mut dyn io::Write| Ok(()))
        }

        fn read_state(self: Arc<Self>, _: &mut dyn BufRead) -> Result<Restored, Stop> {
            Ok(Box::new(|| Ok(())))
        }
    }

    struct Nobody;

    impl Peers for Nobody {
        fn pipe(&self, _: Peer, _: Lane) -> BoxFuture<'static, Result<Pipe, PeerError>> {
            Box::pin(pending())
        }

        fn ask(&self, _: Peer, _: Question, _: Duration) -> BoxFuture<'static, Result<Bytes, PeerError>> {
            Box::pin(pending())
        }

        fn send_snapshot(&self, _: Peer, _: Outgoing) -> BoxFuture<'static, Result<Bytes, PeerError>> {
            Box::pin(pending())
        }
    }

    async fn member(folder: &std::path::Path) -> Group {
        let wal = Wal::open(&folder.join("wal"), Options::default()).unwrap();
        let snapshots = Snapshots::open(disk::real(&folder.join("snap")).unwrap()).unwrap();
        let applier = Applier::open(Arc::new(Nothing), snapshots).unwrap();
        let settings = Settings {
            heartbeat: Duration::from_millis(100),
            election: ELECTION,
            snapshot_count: 1000,
            catchup_entries: 1000,
            reads: ReadMode::Quorum,
        };
        Group::open(1, settings, wal, applier, Arc::new(Nobody)).await.unwrap()
    }

    fn request(term: u64, leadership_transfer: bool) -> VoteRequest {
        let vote = Vote { leader_id: LeaderId { term, voted_for: 2 }, committed: false };
        let mut request = VoteRequest::new(vote, None);
        request.leadership_transfer = leadership_transfer;
        request
    }

    async fn votes(group: &Group, request: VoteRequest, is_pre_vote: bool) -> bool {
        let question = Question::Vote(Ballot { request, is_pre_vote }.encode());
        let answer = group.answer(2, question).await.unwrap();
        decode::<message::VoteResponse>(answer).unwrap().granted
    }

    #[tokio::test]
    async fn who_was_started_again_votes_for_nobody_while_a_leader_may_count_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = member(folder.path()).await;
        assert!(votes(&first, request(5, false), true).await, "it has promised nothing yet");
        assert!(votes(&first, request(5, false), false).await);
        first.shutdown().await;
        drop(first);
        let again = member(folder.path()).await;
        assert!(!votes(&again, request(6, false), true).await, "it does not know what it has promised");
        assert!(!votes(&again, request(6, false), false).await);
        assert!(votes(&again, request(6, true), false).await, "the leader itself has asked for it");
        assert!(!votes(&again, request(7, false), false).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_promise_ends_with_the_lease_that_it_may_have_been_for() {
        let lease = Duration::from_millis(600);
        let promise = Promise::of_start(true, lease);
        tokio::time::advance(lease - Duration::from_millis(1)).await;
        assert!(promise.forbids(&request(6, false)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!promise.forbids(&request(6, false)));
    }
}
