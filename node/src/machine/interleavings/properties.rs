//! What must hold after every entry.

use proto::LeaseId;

use super::*;
use crate::cluster::Cluster;

impl World {
    pub(super) fn note(&mut self, before: &State, pending: &Pending) {
        if before.cluster.version != self.version() {
            self.said.clear();
            self.versioned = self.state.applied;
        }
        if let Pending::Cluster(ClusterEntry::Publish { member, starts, attributes, .. }) = pending
            && let Some(proposal) = attributes.proposal.as_ref().filter(|p| Some(p.version) == self.version())
            && before.cluster.members.get(member).is_some_and(|known| *starts >= known.starts)
        {
            self.said.insert(*member, proposal.features.clone());
        }
        let members = &self.state.cluster.members;
        self.said.retain(|id, _| members.contains_key(id));
    }

    pub(super) fn check(&self, before: &State, on: [bool; 3]) -> Found<()> {
        let cluster = &self.state.cluster;
        for (name, is_on) in NAMES.into_iter().zip(on) {
            let must_be_on = must_be_on(cluster, name);
            hold(is_on == must_be_on, || format!("{name} is {is_on}; the gate: {:?}", cluster.gate))?;
        }
        let left = self.state.keys.leases().get(LeaseId(LEASE.id)).map(|lease| lease.checkpointed_s());
        let is_clean = must_be_on(cluster, LEASE_CHECKPOINT) || left == Some(0);
        hold(is_clean, || format!("{LEASE_CHECKPOINT} is off, and what it has written counts: {left:?}"))?;
        let Gate::Decided(features) = &cluster.gate else { return Ok(()) };
        let said: Option<Vec<&Features>> = cluster.voters().map(|(id, _)| self.said.get(&id)).collect();
        let said = said.ok_or_else(|| format!("decided, and a voter has said nothing at {:?}", cluster.version))?;
        let is_new = before.cluster.gate != cluster.gate;
        for (name, is_on) in features.iter() {
            let all_know = said.iter().all(|said| said.get(name).is_some());
            let all_want = said.iter().all(|said| said.get(name) == Some(true));
            // Who has dropped the name of what is locked does it always.
            hold(!is_on || all_know || locked(cluster, name).is_some(), || {
                format!("{name} is on, and a voter does not know it")
            })?;
            // What a voter has taken back is on until the next decision.
            hold(!is_on || all_want || !is_new, || format!("{name} is decided to be on, and not all voters want it"))?;
        }
        Ok(())
    }

    /// A write is taken where what it needs is on, and nowhere else; refused it changes nothing.
    pub(super) fn check_write(&self, before: &State, write: Write, is_taken: bool) -> Found<()> {
        let must_be_taken = must_be_on(&before.cluster, write.feature());
        hold(is_taken == must_be_taken, || format!("{write:?} is taken: {is_taken}; the gate: {:?}", before.cluster))?;
        let unchanged = State { applied: self.state.applied, ..before.clone() };
        hold(is_taken || self.state == unchanged, || format!("{write:?} is refused, and has changed something"))?;
        hold(self.state.cluster == before.cluster, || format!("{write:?} has changed the cluster"))
    }
}

/// What is locked at the cluster's version answers so at every index, undecided too (K-16); what is not answers what was decided.
fn must_be_on(cluster: &Cluster, name: &str) -> bool {
    locked(cluster, name)
        .unwrap_or(matches!(&cluster.gate, Gate::Decided(features) if features.get(name) == Some(true)))
}

/// What a feature is for everybody at the cluster's version, where that locks it.
fn locked(cluster: &Cluster, name: &str) -> Option<bool> {
    let newest = Registry::of(&release_of("3.9.0"));
    cluster.version.and_then(|version| newest.locked(name, version))
}

/// Whether no majority of these voters leaves out every one of those: else two could lead in one term
/// (raft dissertation, section 4.1).
pub(super) fn quorums_meet(these: &BTreeSet<MemberId>, those: &BTreeSet<MemberId>) -> bool {
    let both = these.intersection(those).count();
    // How many of both a majority needs at least.
    let needs = |voters: &BTreeSet<MemberId>| (voters.len() / 2 + 1).saturating_sub(voters.len() - both);
    needs(these) + needs(those) > both
}
