//! Which proposals were applied already: a member proposes again what it has not heard of, and it must count once.
//!
//! A member numbers the proposals of each of its processes, and says with each one below which number it waits for none
//! any more. So what must be remembered stays small. Source: raft dissertation, section 6.3.

use std::collections::{BTreeMap, BTreeSet};

use proto::MemberId;

use crate::cluster::member::Starts;

/// Which proposal: no other, of whatever member and process, has the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProposalId {
    pub member: MemberId,
    /// Of which of its processes.
    pub starts: Starts,
    /// Which of that process, from 1.
    pub number: u64,
}

/// What is remembered of every member's proposals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sessions {
    pub(super) by_member: BTreeMap<MemberId, Session>,
}

/// What is remembered of one member's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    /// Of this process; what an earlier one proposed comes too late.
    pub(super) starts: Starts,
    /// Nobody waits for a lower number.
    pub(super) settled: u64,
    /// Applied, and not below that.
    pub(super) applied: BTreeSet<u64>,
}

impl Sessions {
    /// Whether this proposal is to be applied; from now on it was. `settled`: below it its process waits for none.
    pub fn admit(&mut self, id: ProposalId, settled: u64) -> bool {
        let session = self.by_member.entry(id.member).or_default();
        if id.starts > session.starts {
            *session = Session { starts: id.starts, ..Session::default() };
        }
        let is_first = id.starts == session.starts && id.number >= session.settled && session.applied.insert(id.number);
        if id.starts == session.starts && settled > session.settled {
            session.settled = settled;
            session.applied = session.applied.split_off(&settled);
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(starts: u64, number: u64) -> ProposalId {
        ProposalId { member: MemberId(7), starts: Starts(starts), number }
    }

    #[test]
    fn a_proposal_counts_once_in_whatever_order_it_comes() {
        let mut sessions = Sessions::default();
        for (starts, number, settled, counts, why) in [
            (1, 2, 1, true, "the second may come first"),
            (1, 1, 1, true, "and the first after it"),
            (1, 2, 1, false, "sent again"),
            (1, 5, 4, true, "four is waited for, and what comes after it"),
            (1, 3, 1, false, "given up: whoever proposed it was told that its fate is unknown"),
            (1, 4, 4, true, "late"),
            (1, 5, 4, false, "sent again"),
            (2, 1, 1, true, "the next process counts anew"),
            (1, 6, 6, false, "of the process before, which waits for nothing"),
            (2, 2, 2, true, "and has not moved what is settled here"),
        ] {
            assert_eq!(sessions.admit(id(starts, number), settled), counts, "{starts}.{number}: {why}");
        }
        assert_eq!(sessions.by_member[&MemberId(7)].applied.len(), 1, "what is settled is forgotten");
    }
}
