//! What a member may have promised before it was started.
//!
//! Who hears a leader votes for nobody else for a lease's time, itself included: a leader may answer reads by that alone
//! ([`ReadMode`](crate::ReadMode)). openraft remembers it no longer than the process. So who was started again votes for nobody, and
//! does not stand for election, for as long as it may have promised. After all were started again, that costs a fifth of an election
//! timeout.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::{settings::Settings, types::VoteRequest};

/// Whether this member may vote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    until: Instant,
    /// As far as elections of members that start together lie apart.
    apart: Duration,
}

impl Promise {
    /// Of a member that starts now. One that has never voted has heard no leader.
    pub(crate) fn of_start(has_voted: bool, settings: Settings) -> Self {
        let lease = if has_voted { settings.lease() } else { Duration::ZERO };
        Self { until: Instant::now() + lease, apart: settings.elections_apart() }
    }

    /// Whether it forbids this vote. Who was asked by the leader itself to take over breaks none.
    pub(crate) fn forbids(self, request: &VoteRequest) -> bool {
        Instant::now() < self.until && !request.leadership_transfer
    }

    /// Returns once it does not forbid this member's own: others would refuse it until then, too, where all have started together. So
    /// it waits, and no shorter than others do that were to ask later.
    pub(crate) async fn is_over_for(self, own: &VoteRequest) {
        if self.forbids(own) {
            sleep_until(self.until.max(Instant::now() + self.apart)).await;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use futures_util::future::{BoxFuture, pending};

    use super::*;
    use crate::{
        Group, Lane, Outgoing, Peer, PeerError, Peers, Pipe, Question, bare,
        format::{Ballot, Wire, decode, message},
        types::{LeaderId, Vote},
    };

    /// Longer than any test takes.
    const LONG: Settings = Settings { election: Duration::from_secs(3600), ..bare::SETTINGS };

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
        bare::member(folder, LONG, Arc::new(Nobody)).await
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
        let (promise, lease) = (Promise::of_start(true, bare::SETTINGS), bare::SETTINGS.lease());
        tokio::time::advance(lease - Duration::from_millis(1)).await;
        assert!(promise.forbids(&request(6, false)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!promise.forbids(&request(6, false)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_started_again_stands_for_election_only_after_its_promise_and_not_all_at_once() {
        for (stands, transfer, asks) in [(400, false, 600), (500, false, 700), (600, false, 600), (100, true, 100)] {
            let (began, promise) = (Instant::now(), Promise::of_start(true, bare::SETTINGS));
            tokio::time::advance(Duration::from_millis(stands)).await;
            promise.is_over_for(&request(6, transfer)).await;
            assert_eq!(began.elapsed(), Duration::from_millis(asks), "{stands}");
        }
    }
}
