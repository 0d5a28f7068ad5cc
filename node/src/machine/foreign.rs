//! What another member may have this one put into the log. An entry that is committed is applied by all, or ends them all: so
//! each is read before.

use bytes::Bytes;
use proto::{ClusterVersion, MemberId};

use super::{Machine, Proposal};
use crate::{
    cluster::entry::Entry as ClusterEntry,
    entry::{Entry, EntryError, EntryKind},
};

/// Why a proposal of another member is not put into the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    #[error(transparent)]
    Entry(#[from] EntryError),
    #[error("a proposal in the name of member {0}")]
    InTheNameOf(MemberId),
    #[error("an entry that the leader alone proposes")]
    OfTheLeader,
    #[error("an entry of release {since}, and the cluster is at version {version}")]
    Early { since: ClusterVersion, version: ClusterVersion },
}

impl Machine {
    /// Whether every member can apply what this member proposes, and it speaks for itself. What a leader decides by what it has heard
    /// nobody else proposes: a version above what a member runs would end that (KEP-4647, "Restart").
    ///
    /// # Errors
    /// [`Foreign`]
    pub fn may_propose(&self, from: MemberId, proposal: &Bytes) -> Result<(), Foreign> {
        let proposal = Proposal::decode(proposal.clone())?;
        let entry = Entry::decode(proposal.entry, self.shared.release.cluster_version())?;
        let published = match &entry.what {
            EntryKind::Cluster(ClusterEntry::Publish { member, .. }) => Some(*member),
            _ => None,
        };
        if let Some(other) = [Some(proposal.id.member), published].into_iter().flatten().find(|named| *named != from) {
            return Err(Foreign::InTheNameOf(other));
        }
        if let EntryKind::Cluster(
            ClusterEntry::Bootstrap { .. }
            | ClusterEntry::Reset { .. }
            | ClusterEntry::SetVersion { .. }
            | ClusterEntry::Decide { .. },
        ) = &entry.what
        {
            return Err(Foreign::OfTheLeader);
        }
        match (entry.since(), self.read(|state| state.cluster.version)) {
            (since, Some(version)) if since > version => Err(Foreign::Early { since, version }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proto::{ClusterId, LogIndex, Release, etcdserverpb::LeaseCheckpointRequest};

    use super::*;
    use crate::{
        cluster::member::{Attributes, Starts},
        features::FEATURES,
        machine::Proposals,
        state::ProposalId,
    };

    const CALLER: MemberId = MemberId(1);
    const OTHER: MemberId = MemberId(2);
    const V3_5: ClusterVersion = ClusterVersion { major: 3, minor: 5 };
    const V3_6: ClusterVersion = ClusterVersion { major: 3, minor: 6 };

    fn machine() -> Machine {
        let machine = Machine::new(Release::new(3, 6, 0), FEATURES, Proposals::new(OTHER, Starts(1)));
        let members = [CALLER, OTHER].map(|member| (member, (member.to_string(), vec![]))).into();
        let founded = [
            ClusterEntry::Bootstrap { id: ClusterId(9), members },
            ClusterEntry::SetVersion { version: V3_5, heard: [CALLER, OTHER].map(|member| (member, Starts(0))).into() },
        ];
        founded.into_iter().for_each(|entry| machine.apply_of_test(EntryKind::Cluster(entry)));
        machine
    }

    fn proposal(member: MemberId, what: EntryKind) -> Bytes {
        let id = ProposalId { member, starts: Starts(1), number: 1 };
        Proposal { id, settled: 0, entry: Entry::from(what).encode().into() }.encode().into()
    }

    fn published(member: MemberId) -> EntryKind {
        let attributes = Attributes::default();
        EntryKind::Cluster(ClusterEntry::Publish {
            member,
            starts: Starts(u64::MAX),
            start_id: None,
            incarnation: None,
            attributes,
        })
    }

    #[test]
    fn nothing_enters_the_log_that_is_another_members_or_that_not_all_can_apply() {
        let machine = machine();
        let put = EntryKind::Put(Default::default());
        let refused = |proposal: Bytes| machine.may_propose(CALLER, &proposal);
        assert_eq!(refused(proposal(CALLER, put.clone())), Ok(()));
        assert_eq!(refused(proposal(CALLER, published(CALLER))), Ok(()));
        assert_eq!(refused(proposal(OTHER, put.clone())), Err(Foreign::InTheNameOf(OTHER)));
        assert_eq!(refused(proposal(CALLER, published(OTHER))), Err(Foreign::InTheNameOf(OTHER)));
        let early = EntryKind::LeaseCheckpoint(LeaseCheckpointRequest::default());
        assert!(matches!(refused(proposal(CALLER, early)), Err(Foreign::Early { .. })));
        let version = ClusterEntry::SetVersion { version: V3_6, heard: Default::default() };
        let decided = ClusterEntry::Decide { features: Default::default(), inputs: LogIndex(1) };
        let bootstrap = ClusterEntry::Bootstrap { id: ClusterId(9), members: Default::default() };
        for of_the_leader in [version, ClusterEntry::Reset { prepares: V3_6 }, decided, bootstrap] {
            let refusal = refused(proposal(CALLER, EntryKind::Cluster(of_the_leader)));
            assert_eq!(refusal, Err(Foreign::OfTheLeader));
        }
        let whole = proposal(CALLER, put);
        for length in 0..whole.len() {
            assert!(matches!(refused(whole.slice(..length)), Err(Foreign::Entry(_))), "cut after {length} bytes");
        }
        assert!(matches!(refused(Bytes::from_static(b"\xff")), Err(Foreign::Entry(_))));
    }
}
