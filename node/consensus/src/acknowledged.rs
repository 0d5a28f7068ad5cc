//! What a member has acknowledged to this one as its leader: one that lacks some of it afterwards has lost it.
//!
//! Nothing else explains that, and it must not, as the member is ended for it:
//!
//! - A member acknowledges an entry when its log is its leader's up to there, on disk (raft paper, section 5.3).
//! - While a leader leads, its log only grows; and whoever follows it takes out of its own log nothing but what differs
//!   from the leader's, which lies behind that entry. What a snapshot stands for counts as there. One that has gone on to
//!   a newer vote says so, and does not say what it lacks.
//! - Only what had been heard before a request was sent is held against its answer. So the member has looked at the
//!   request after it had acknowledged, however late an answer comes, and on whichever stream.
//! - A member that is removed and added again is another, and begins with nothing (`Network`).
//!
//! What answers a snapshot is left out: it may come before older entries are on disk. A new leader knows nothing yet, and
//! gives a member what it lacks without a word, as etcd's does.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    format::Lost,
    types::{LogId, Vote},
};

/// What one member has acknowledged while it was a member and this one its leader. Every clone is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledged {
    known: Arc<Mutex<Known>>,
}

/// The same as it was at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    upto: Option<(Vote, LogId)>,
}

impl Acknowledged {
    /// It has acknowledged all up to this entry to the leader of this vote.
    pub(crate) fn note(&self, vote: Vote, upto: LogId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.covers(vote, upto) {
            known.upto = Some((vote, upto));
        }
    }

    /// As it is known now.
    pub(crate) fn known(&self) -> Known {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// What the member has lost, if it had acknowledged the entry that it says it lacks.
    pub(crate) fn lost(self, vote: Vote, lacks: LogId) -> Option<Lost> {
        let (leader, acknowledged) = self.upto?;
        self.covers(vote, lacks).then_some(Lost { leader, acknowledged })
    }

    fn covers(self, vote: Vote, id: LogId) -> bool {
        self.upto.is_some_and(|(to, upto)| to == vote && id.index <= upto.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{format::log_id, types::LeaderId};

    fn vote(term: u64) -> Vote {
        Vote { leader_id: LeaderId { term, voted_for: 1 }, committed: true }
    }

    #[test]
    fn what_was_acknowledged_to_this_leader_and_is_not_there_is_lost() {
        let acknowledged = Acknowledged::default();
        let before = acknowledged.known();
        acknowledged.note(vote(7), log_id(7, 10));
        acknowledged.note(vote(7), log_id(6, 4)); // a heartbeat that went out before, answered on a stream of its own
        let known = acknowledged.known();
        acknowledged.note(vote(8), log_id(6, 5)); // the next leadership begins anew
        for (known, term, lacks, lost) in [
            (known, 7, log_id(7, 10), Some(10)),
            (known, 7, log_id(6, 5), Some(10)), // the search for where the logs part has gone further back
            (known, 7, log_id(7, 11), None),    // it never had that one
            (known, 8, log_id(6, 5), None),     // a newer leader may have taken it out
            (before, 7, log_id(7, 10), None),   // asked before it had acknowledged
            (acknowledged.known(), 8, log_id(6, 5), Some(5)),
            (acknowledged.known(), 8, log_id(7, 10), None),
            (acknowledged.known(), 7, log_id(7, 10), None),
        ] {
            let found = known.lost(vote(term), lacks).map(|lost| lost.acknowledged.index);
            assert_eq!(found, lost, "{known:?}, in term {term} it lacks {lacks}");
        }
    }
}
