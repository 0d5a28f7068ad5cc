//! What an entry does and what the leader proposes: by our rules, or by one that is wrong.

use bytes::Bytes;

use super::*;
use crate::{
    cluster::{Cluster, leader_proposals::of_leader, member::Proposal},
    entry::{Entry, EntryKind},
    state::Applied,
};

/// A rule that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A new version leaves the proposals.
    NoWipe,
    /// A decision counts, whatever has changed since it was made,
    InputsIgnored,
    /// or as long as the version is the same: somebody may have said something else since.
    StaleAnd,
    /// The gate is asked first, and what is locked where it says nothing.
    LockAfterMap,
    /// A release goes by what it locks itself, not by what the cluster's version does.
    OwnLocks,
    /// The leader takes the default for who has not spoken,
    LeaderFillsGaps,
    /// counts learners,
    LearnerCounted,
    /// or goes by members that an entry names which is not applied yet.
    MembershipAhead,
    /// The members change again before the last change is applied.
    ChangesOverlap,
    /// What a write needs is asked where it comes, and not where it is applied.
    AskedOnce,
}

impl Wrong {
    /// Each, and what is wrong with it.
    pub(super) const ALL: [(Self, &str); 10] = [
        (Self::NoWipe, "a voter has said nothing"),
        (Self::InputsIgnored, "a voter has said nothing"),
        (Self::StaleAnd, "not all voters want it"),
        (Self::LockAfterMap, "is false; the gate: Decided"),
        (Self::OwnLocks, "answer otherwise"),
        (Self::LeaderFillsGaps, "a voter has said nothing"),
        (Self::LearnerCounted, "it rests at"),
        (Self::MembershipAhead, "a voter has said nothing"),
        (Self::ChangesOverlap, "quorums that do not meet"),
        (Self::AskedOnce, "is taken: true"),
    ];
}

/// What one release has come to.
pub(super) struct After {
    pub(super) state: State,
    /// What is on.
    pub(super) on: [bool; 3],
    /// Of a write: whether it was taken.
    pub(super) is_taken: Option<bool>,
}

impl World {
    /// What an entry comes to with this release.
    pub(super) fn applied(&self, index: LogIndex, pending: &Pending, release: &'static str) -> After {
        let (mut state, release) = (self.state.clone(), release_of(release));
        let registry = Registry::of(&release);
        let is_taken = match pending {
            Pending::Members(to) => {
                state.follow(index, to, &registry);
                state.applied = index;
                None
            }
            Pending::Cluster(entry) => {
                self.apply_cluster(&mut state, index, entry.clone(), &release);
                None
            }
            Pending::Write(write) => Some(self.is_taken(&mut state, index, *write, &release)),
        };
        let on = NAMES.map(|name| self.is_on(&state.cluster, name, &release));
        After { state, on, is_taken }
    }

    fn apply_cluster(&self, state: &mut State, index: LogIndex, entry: ClusterEntry, release: &Release) {
        let (members, now) = (state.cluster.members.clone(), state.cluster.inputs);
        let entry = match (self.wrong, entry) {
            (Some(Wrong::InputsIgnored), ClusterEntry::Decide { features, .. }) => {
                ClusterEntry::Decide { features, inputs: now }
            }
            (Some(Wrong::StaleAnd), ClusterEntry::Decide { features, inputs }) if inputs >= self.versioned => {
                ClusterEntry::Decide { features, inputs: now }
            }
            (_, entry) => entry,
        };
        let wipes = matches!(entry, ClusterEntry::SetVersion { .. });
        apply(state, index, EntryKind::Cluster(entry).into(), release);
        if self.wrong == Some(Wrong::NoWipe) && wipes {
            state.cluster.members = members;
        }
    }

    fn is_taken(&self, state: &mut State, index: LogIndex, write: Write, release: &Release) -> bool {
        let gate = state.cluster.gate.clone();
        if self.wrong == Some(Wrong::AskedOnce) {
            state.cluster.gate = Gate::Decided(NAMES.map(|name| (name.to_owned(), true)).into_iter().collect());
        }
        let is_taken = apply(state, index, write.entry(), release);
        state.cluster.gate = gate;
        is_taken
    }

    fn is_on(&self, cluster: &Cluster, name: &str, release: &Release) -> bool {
        let registry = Registry::of(release);
        let locked = |version| registry.locked(name, version);
        match self.wrong {
            Some(Wrong::LockAfterMap) => cluster.gate.get(name).or(cluster.version.and_then(locked)).unwrap_or(false),
            Some(Wrong::OwnLocks) => {
                locked(release.cluster_version()).unwrap_or_else(|| cluster.is_enabled(name, &registry))
            }
            _ => cluster.is_enabled(name, &registry),
        }
    }

    pub(super) fn of_leader(&self) -> Option<ClusterEntry> {
        let cluster = &self.state.cluster;
        let mut seen = cluster.clone();
        let (version, heard) = (cluster.version.unwrap_or(LOWEST), self.heard());
        match self.wrong {
            Some(Wrong::LearnerCounted) => seen.members.values_mut().for_each(|member| member.is_learner = false),
            Some(Wrong::LeaderFillsGaps) => {
                for (id, member) in &mut seen.members {
                    let known = self.processes.get(&id.0).map(Process::registry);
                    let registry = known.unwrap_or_else(|| Registry::of(&"3.7.0".parse().unwrap()));
                    let features = registry.proposal(version, &Overrides::default());
                    member.proposal.get_or_insert(Proposal { version, features });
                }
            }
            Some(Wrong::MembershipAhead) => {
                let to = self.pending.iter().find_map(|pending| match pending {
                    Pending::Members(to) => Some(to),
                    Pending::Cluster(_) | Pending::Write(_) => None,
                });
                let inputs = seen.inputs;
                to.map(|to| seen.follow(inputs, to));
            }
            _ => {}
        }
        of_leader(&seen, &heard)
    }
}

/// As every member does. Whether it was taken; what writes nothing down is not.
fn apply(state: &mut State, index: LogIndex, entry: Entry, release: &Release) -> bool {
    match Entry::decode(Bytes::from(entry.encode()), release.cluster_version()) {
        Ok(read) => match state.apply(index, read, &Registry::of(release)) {
            Ok(Applied::LeaseCheckpoint { written }) => written,
            outcome => outcome.is_ok(),
        },
        // It is of a later release, and above the cluster's version.
        Err(_) => {
            state.applied = index;
            false
        }
    }
}
