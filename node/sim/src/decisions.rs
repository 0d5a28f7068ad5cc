//! Whether the gate is at every entry what the voters' wishes had come to: worked out here once more, and not by the node's own code.

use std::collections::BTreeMap;

use node::{
    cluster::{Cluster, gate::Gate},
    features::{FIRST_WITH_GATES, Features},
    member::Member,
};
use proto::{ClusterVersion, LogIndex};

use crate::network::HostId;

/// What was seen of the cluster, on all members.
#[derive(Default)]
pub struct Decisions {
    /// By the entry that last changed what a gate is decided from.
    stages: BTreeMap<LogIndex, Stage>,
    /// How far each member was when it was looked at last.
    looked: BTreeMap<HostId, LogIndex>,
    pub seen: u64,
}

/// From one such entry to the next one: the gate stays what it was when it began, or it becomes what is wanted.
struct Stage {
    version: Option<ClusterVersion>,
    wanted: Option<Features>,
    /// The last entry at which something else stood, and what.
    stood: Option<(LogIndex, Gate)>,
    /// The first one at which what is wanted was decided.
    decided: Option<LogIndex>,
    /// The last one of all.
    last: LogIndex,
}

/// What all voters want on; none while one has not said what it wants at this version (KEP-4647, "Start a New Cluster", step 4).
pub fn wanted(cluster: &Cluster) -> Option<Features> {
    let version = cluster.version.filter(|version| *version >= FIRST_WITH_GATES)?;
    let voters = cluster.members.values().filter(|member| !member.is_learner);
    let proposals = voters.map(|voter| voter.proposal.as_ref().filter(|proposal| proposal.version == version));
    let wishes = proposals.map(|proposal| Some(&proposal?.features)).collect::<Option<Vec<_>>>()?;
    all_want(&wishes)
}

/// Each feature that one of them knows, on where all want it; none where nobody is there.
pub fn all_want(wishes: &[&Features]) -> Option<Features> {
    let is_on = |name: &str| wishes.iter().all(|features| features.get(name) == Some(true));
    let names = wishes.iter().flat_map(|features| features.names());
    (!wishes.is_empty()).then(|| names.map(|name| (name.to_owned(), is_on(name))).collect())
}

/// Whether somebody has yet to decide.
pub fn is_due(cluster: &Cluster) -> bool {
    wanted(cluster).is_some_and(|wanted| cluster.gate != Gate::Decided(wanted))
}

/// What must hold in any state (N-4, N-9).
fn check(cluster: &Cluster) -> Result<(), String> {
    if let Some((id, _)) = cluster.members.iter().find(|(id, _)| cluster.removed.contains(id)) {
        return Err(format!("{id} was removed, and is a member"));
    }
    let is_stale = |version| cluster.version.is_none_or(|now| now < FIRST_WITH_GATES || version != now);
    let stale = |proposal: &node::cluster::member::Proposal| is_stale(proposal.version);
    if let Some((id, _)) = cluster.members.iter().find(|(_, member)| member.proposal.as_ref().is_some_and(stale)) {
        return Err(format!("what {id} wanted at another version is there at {:?}", cluster.version));
    }
    Ok(())
}

impl Decisions {
    /// Takes in what a member holds now. Looked at after each tick: a decision waits for a disk, so whoever decides is seen before
    /// with what it decides from.
    ///
    /// # Errors
    /// The gate is what it cannot have come to.
    pub fn see(&mut self, host: HostId, member: &Member) -> Result<(), String> {
        member.read(|state| {
            let (index, cluster) = (state.applied, &state.cluster);
            if self.looked.insert(host, index) == Some(index) || cluster.members.is_empty() {
                return Ok(());
            }
            self.seen += 1;
            check(cluster)
                .and_then(|()| self.take_in(index, cluster))
                .map_err(|why| format!("at index {} member {host}: {why}", index.0))
        })
    }

    fn take_in(&mut self, index: LogIndex, cluster: &Cluster) -> Result<(), String> {
        let wanted = wanted(cluster);
        let may_begin = self.may_begin(cluster);
        let new =
            || Stage { version: cluster.version, wanted: wanted.clone(), stood: None, decided: None, last: index };
        let stage = self.stages.entry(cluster.inputs).or_insert_with(new);
        if (stage.version, &stage.wanted) != (cluster.version, &wanted) {
            return Err(format!("{wanted:?} is wanted, and {:?} from the same inputs", stage.wanted));
        }
        stage.last = stage.last.max(index);
        let gate = &cluster.gate;
        if wanted.is_some_and(|wanted| *gate == Gate::Decided(wanted)) {
            stage.decided = Some(stage.decided.map_or(index, |first| first.min(index)));
        } else {
            match &mut stage.stood {
                Some((last, stood)) if stood == gate => *last = index.max(*last),
                Some((_, stood)) => {
                    return Err(format!("the gate is {gate:?}, and was {stood:?} from the same inputs"));
                }
                None if may_begin.contains(gate) => stage.stood = Some((index, gate.clone())),
                None => return Err(format!("the gate is {gate:?}, where {:?} is wanted", stage.wanted)),
            }
        }
        match (&stage.stood, stage.decided) {
            (Some((last, stood)), Some(first)) if *last > first => {
                Err(format!("the gate is {stood:?} at {}, decided otherwise at {}", last.0, first.0))
            }
            _ => Ok(()),
        }
    }

    /// What the gate can be before it is decided from these inputs: closed; or what it was, at the same version, if nothing is
    /// missing now.
    fn may_begin(&self, cluster: &Cluster) -> Vec<Gate> {
        let before = self.stages.range(..cluster.inputs).next_back().map(|(_, stage)| stage);
        let mut gates = vec![Gate::Undecided];
        let Some(before) = before.filter(|stage| stage.version == cluster.version && wanted(cluster).is_some()) else {
            return gates;
        };
        let wanted = before.wanted.clone().map(Gate::Decided);
        let stood = before.stood.as_ref().map(|(_, gate)| gate.clone()).filter(|_| before.decided.is_none());
        // Who saw the last entry before these inputs knows what stood then.
        let is_known = stood.is_some() && before.last.0 + 1 == cluster.inputs.0;
        gates.extend(wanted.filter(|_| !is_known));
        gates.extend(stood);
        gates
    }
}
