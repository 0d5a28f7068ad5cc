//! Who is a member, as it changes. Raft's entries say it (raft dissertation, section 4.1), and the state follows each as it is
//! applied: there is one list, and no index of the log has two.
//!
//! Source: KEP-4647, "Remove a Member", "Add a New Member", "Learner"; what may be asked for is etcd's (`mayAddMember` and the like in
//! server/etcdserver/server.go, `IsReadyToAddVotingMember` in api/membership/cluster.go).

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use proto::{LogIndex, MemberId};

use super::{Cluster, gate::Gate, member::Member};
use crate::{
    api_error::ApiError,
    features::{Features, Registry},
};

/// The members that an entry of raft's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Of either half, while the group goes from one set of voters to another.
    pub voters: BTreeSet<MemberId>,
    /// Where each was reached when it was added.
    pub peer_urls: BTreeMap<MemberId, Vec<String>>,
}

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Add {
        /// Chosen by whoever asks: asked again, it is the same one.
        id: MemberId,
        peer_urls: Vec<String>,
        is_learner: bool,
    },
    Remove(MemberId),
    Promote(MemberId),
}

/// What a cluster's members are started with.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// `--strict-reconfig-check`: nothing that would leave the cluster without a quorum.
    pub is_strict: bool,
    /// `--max-learners`
    pub max_learners: usize,
    /// What is locked, whatever anybody wants.
    pub registry: Registry,
}

/// How far behind the leader's log each member is, in entries, that has answered the leader since the change was asked for; the
/// leader is 0.
pub type Lags = BTreeMap<MemberId, u64>;

/// Why a learner may not join.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this learner may not join: {feature} is {} for the whole cluster, and it wants it {}: start it with \
     --cluster-feature-gates={feature}={is_on}, or with the release that most members run",
    on(*is_on),
    on(!*is_on)
)]
pub struct Differs {
    pub feature: String,
    /// For the whole cluster.
    pub is_on: bool,
}

fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// A learner may lack as many entries when it is promoted: it has them in no time.
const IN_SYNC: u64 = 1_000;

impl Cluster {
    /// Applies raft's entry at this index of the log. Whether it has changed anything.
    pub fn follow(&mut self, index: LogIndex, to: &Membership) -> bool {
        // A new cluster's first entry of its own says who its members are, and their names.
        if self.members.is_empty() {
            return false;
        }
        let before = self.members.clone();
        self.members.retain(|id, _| to.peer_urls.contains_key(id));
        let gone: Vec<_> = before.iter().filter(|(id, _)| !self.members.contains_key(id)).collect();
        self.removed.extend(gone.iter().map(|(id, _)| **id));
        let (version, mut decides, mut resets) =
            (self.version, gone.iter().any(|(_, member)| !member.is_learner), false);
        for (id, peer_urls) in &to.peer_urls {
            let is_learner = !to.voters.contains(id);
            let new = || Member { peer_urls: peer_urls.clone(), is_learner, ..Member::default() };
            let (votes_now, member) = match self.members.entry(*id) {
                Entry::Vacant(entry) => (!is_learner, entry.insert(new())),
                Entry::Occupied(entry) => (entry.get().is_learner && !is_learner, entry.into_mut()),
            };
            decides |= votes_now || member.is_learner != is_learner;
            member.is_learner = is_learner;
            // Nothing is on that a voter has not asked for.
            resets |= votes_now && version.is_none_or(|version| member.proposed_at(version).is_none());
        }
        if resets {
            self.gate = Gate::Undecided;
        }
        if decides {
            self.inputs = index;
        }
        self.members != before
    }

    /// The members after this change.
    ///
    /// # Errors
    /// In etcd's words: why it must not be.
    pub fn changed(&self, change: &Change, rules: Rules, lags: &Lags) -> Result<Membership, ApiError> {
        let mut to = Membership {
            voters: self.voters().map(|(id, _)| id).collect(),
            peer_urls: self.members.iter().map(|(id, member)| (*id, member.peer_urls.clone())).collect(),
        };
        match change {
            Change::Add { id, peer_urls, is_learner } => {
                if self.members.contains_key(id) || self.removed.contains(id) {
                    return Err(ApiError::MemberExists);
                }
                self.may_add(peer_urls, *is_learner, rules, lags)?;
                to.peer_urls.insert(*id, peer_urls.clone());
                to.voters.extend((!is_learner).then_some(*id));
            }
            Change::Remove(id) => {
                self.may_remove(*id, rules, lags)?;
                to.peer_urls.remove(id);
                to.voters.remove(id);
            }
            Change::Promote(id) => {
                self.may_promote(*id, rules, lags)?;
                to.voters.insert(*id);
            }
        }
        Ok(to)
    }

    fn may_add(&self, peer_urls: &[String], is_learner: bool, rules: Rules, lags: &Lags) -> Result<(), ApiError> {
        let is_started = |member: &Member| member.has_started();
        if rules.is_strict && !is_learner {
            let (voters, started) = (self.voters().count() + 1, self.voters().filter(|(_, m)| is_started(m)).count());
            // A cluster of one may grow, though it waits for the second from then on.
            if !(started == 1 && voters == 2) && started < quorum(voters) {
                return Err(ApiError::NotEnoughStarted);
            }
        }
        // As if the new one voted and never came; a learner is to vote later. Without these voters the entry would be committed by
        // nobody: in raft the new list counts from the moment that it is in the log (etcd's is applied first).
        let (voters, heard) = (self.voters().count(), self.voters().filter(|(id, _)| lags.contains_key(id)).count());
        if (rules.is_strict || !is_learner) && voters > 1 && heard < quorum(voters + 1) {
            return Err(ApiError::Unhealthy);
        }
        if self.members.values().any(|member| member.peer_urls.iter().any(|url| peer_urls.contains(url))) {
            return Err(ApiError::PeerUrlExists);
        }
        if is_learner && self.members.values().filter(|member| member.is_learner).count() >= rules.max_learners {
            return Err(ApiError::TooManyLearners);
        }
        Ok(())
    }

    fn may_remove(&self, id: MemberId, rules: Rules, lags: &Lags) -> Result<(), ApiError> {
        let member = self.members.get(&id).ok_or(ApiError::MemberNotFound)?;
        if member.is_learner {
            return Ok(());
        }
        let others = || self.voters().filter(|(other, _)| *other != id);
        let started = others().filter(|(_, member)| member.has_started()).count();
        // The last voter stays, whatever the rules are: nobody could bring the cluster back.
        if others().next().is_none() || (rules.is_strict && started < quorum(others().count())) {
            return Err(ApiError::NotEnoughStarted);
        }
        // Who is down takes nothing with it: whoever is a majority with it is one without it.
        let heard = others().filter(|(other, _)| lags.contains_key(other)).count();
        if heard < quorum(others().count()) {
            return Err(ApiError::Unhealthy);
        }
        Ok(())
    }

    /// The first feature of a decided gate that a learner wants otherwise, which has never started before: such a one may not join
    /// (KEP-4647, "Learner"). What nobody has decided keeps nobody out, or a voter that is gone could not be replaced; and who has
    /// joined stays, or a change of flags that begins with the learners would end them.
    pub fn differs(&self, learner: MemberId, wants: &Features, registry: &Registry) -> Option<Differs> {
        let Gate::Decided(decided) = &self.gate else { return None };
        self.members.get(&learner).filter(|member| member.is_learner && !member.has_started())?;
        let is_on = |features: &Features, name: &str| features.get(name).unwrap_or(false);
        let differs = |name: &&str| !self.is_locked(name, registry) && is_on(decided, name) != is_on(wants, name);
        let feature = decided.names().chain(wants.names()).find(differs)?.to_owned();
        Some(Differs { is_on: is_on(decided, &feature), feature })
    }

    fn is_locked(&self, feature: &str, registry: &Registry) -> bool {
        self.version.is_some_and(|version| registry.locked(feature, version).is_some())
    }

    fn may_promote(&self, id: MemberId, rules: Rules, lags: &Lags) -> Result<(), ApiError> {
        let member = self.members.get(&id).ok_or(ApiError::MemberNotFound)?;
        if !member.is_learner {
            return Err(ApiError::NotALearner);
        }
        let is_in_sync = lags.get(&id).is_some_and(|lag| *lag <= IN_SYNC);
        let version = self.version.filter(|_| self.has_gates());
        let has_proposed = version.is_none_or(|version| member.proposed_at(version).is_some());
        if !member.has_started() || !is_in_sync || !has_proposed {
            return Err(ApiError::LearnerNotReady);
        }
        let heard = 1 + self.voters().filter(|(voter, _)| lags.contains_key(voter)).count();
        if rules.is_strict && heard < quorum(self.voters().count() + 1) {
            return Err(ApiError::NotEnoughStarted);
        }
        let wants = version.and_then(|version| member.proposed_at(version));
        let is_unwanted = |name: &str| wants.is_some_and(|wants| wants.get(name) != Some(true));
        let turns_off = |name: &str| {
            self.gate.get(name) == Some(true) && is_unwanted(name) && !self.is_locked(name, &rules.registry)
        };
        match &self.gate {
            Gate::Decided(features) if features.names().any(turns_off) => Err(ApiError::LearnerTurnsOff),
            _ => Ok(()),
        }
    }
}

fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

#[cfg(test)]
#[path = "membership_test.rs"]
#[allow(clippy::unwrap_used)]
mod tests;
