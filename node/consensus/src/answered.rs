//! What members have answered to this one as their leader: what its reads rest on.
//!
//! openraft counts an answer for every request whose entries it covers (`InflightAppendQueue::drain_acked`), also for one that was sent
//! after it: what tells of a commit carries no entries of its own. A leader that stood still would take an old answer for one to
//! what it has sent just now. Here an answer counts for the request that it answers, and for no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::acknowledged::Acknowledged;

/// When a request was sent, or a read began. Two of them can have the same time, and never the same turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    at: Instant,
    turn: u64,
}

/// Of all members. Every clone is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    turns: Arc<AtomicU64>,
    members: Arc<Mutex<BTreeMap<u64, OfMember>>>,
}

/// Of one member, for as long as it is one and this one leads. Every clone is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfMember {
    pub(crate) acknowledged: Acknowledged,
    /// When the newest request was sent that it has answered.
    newest: Arc<Mutex<Option<Moment>>>,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answered {
    pub(crate) fn of(&self, member: u64) -> OfMember {
        lock(&self.members).entry(member).or_default().clone()
    }

    /// It begins anew: with what it answered before, it has answered another leadership, or was another member.
    pub(crate) fn forget(&self, member: u64) {
        lock(&self.members).remove(&member);
    }

    pub(crate) fn now(&self) -> Moment {
        Moment { at: Instant::now(), turn: self.turns.fetch_add(1, Ordering::Relaxed) }
    }

    /// Whether this member has answered what was sent after this moment.
    pub(crate) fn has_answered_since(&self, member: u64, moment: Moment) -> bool {
        lock(&self.members).get(&member).and_then(|of| *lock(&of.newest)).is_some_and(|sent| sent.turn > moment.turn)
    }

    /// Whether a majority of each of these sets of voters has answered what was sent after this moment, or no longer than this time
    /// before it. This member has, always.
    pub(crate) fn by_majorities(
        &self,
        voters: &[BTreeSet<u64>],
        own: u64,
        (moment, before): (Moment, Duration),
    ) -> bool {
        let members = lock(&self.members);
        let is_fresh = |sent: Moment| sent.turn > moment.turn || sent.at + before > moment.at;
        let has = |id: &u64| *id == own || members.get(id).and_then(|of| *lock(&of.newest)).is_some_and(is_fresh);
        voters.iter().all(|voters| 2 * voters.iter().filter(|id| has(id)).count() > voters.len())
    }
}

impl OfMember {
    /// It has answered what was sent at this moment.
    pub(crate) fn note(&self, sent: Moment) {
        let mut newest = lock(&self.newest);
        if newest.is_none_or(|newest| sent.turn > newest.turn) {
            *newest = Some(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_millis(450);

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_what_it_answers() {
        let (answered, voters) = (Answered::default(), [BTreeSet::from([1, 2, 3])]);
        let holds = |since| answered.by_majorities(&voters, 1, since);
        let before = answered.now();
        assert!(!holds((before, LEASE)), "nobody has answered anything");
        let read = answered.now();
        answered.of(2).note(before);
        assert!(!holds((read, Duration::ZERO)), "sent before the read, at the same time");
        assert!(holds((read, LEASE)));
        tokio::time::advance(LEASE).await;
        assert!(!holds((answered.now(), LEASE)), "too old");
        let sent = answered.now();
        answered.of(2).note(sent);
        answered.of(2).note(before);
        assert!(holds((read, Duration::ZERO)), "an answer to something older takes nothing back");
        answered.forget(2);
        assert!(!holds((read, LEASE)), "it answered another leadership");
    }

    #[tokio::test]
    async fn while_voters_change_both_sets_must_have_answered() {
        let answered = Answered::default();
        let (read, sent) = (answered.now(), answered.now());
        answered.of(2).note(sent);
        let holds = |voters: &[&[u64]]| {
            let voters: Vec<_> = voters.iter().map(|voters| voters.iter().copied().collect()).collect();
            answered.by_majorities(&voters, 1, (read, Duration::ZERO))
        };
        for (voters, is_majority) in [
            (&[&[1][..]][..], true),
            (&[&[1, 2]], true),
            (&[&[1, 3]], false),
            (&[&[1, 2, 3, 4]], false),
            (&[&[1, 2, 3], &[1, 2, 4]], true),
            (&[&[1, 2, 3], &[1, 3, 4]], false),
            (&[&[2, 3]], false), // this one leads until it is out
        ] {
            assert_eq!(holds(voters), is_majority, "{voters:?}");
        }
    }
}
