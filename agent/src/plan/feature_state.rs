//! Why a feature of the cluster is on or off: what the members say, put together.
//!
//! Pure. Of itself a member is believed; the proposals come from what members have stored, since the gate is decided from
//! those, whether their proposers answer or not. Source: KEP-4647, "Consensus Algorithm".

use std::collections::{BTreeMap, BTreeSet};

use proto::{ClusterVersion, MemberId, Release};

use super::gates;
use crate::observe::view::{ClusterView, GateReport, Known, Member};

type Proposals = BTreeMap<MemberId, BTreeMap<String, bool>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureState {
    pub name: String,
    /// Whether it is on; `None` where the members differ.
    pub is_on: Option<bool>,
    pub why: Why,
    /// Who wants it on or off, learners too; whoever is left out has not said.
    pub proposed: BTreeMap<MemberId, bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Every voter wants it on.
    Wanted,
    /// The cluster version locks it; no flag counts.
    Locked,
    /// The cluster version does not have it yet.
    VersionTooLow {
        needed: ClusterVersion,
        /// Whoever runs a release below that, and so keeps the version down.
        below: Vec<MemberId>,
        /// Whoever does not say which release it runs: the version does not rise without it.
        silent: Vec<MemberId>,
    },
    /// The gate is open to be decided.
    Undecided {
        /// The voters whose proposal is missing; none where the decision is on its way.
        waiting_for: Vec<MemberId>,
    },
    /// Voters keep it off.
    KeptOff {
        /// They do not want it.
        false_on: Vec<MemberId>,
        /// They want other features, and do not name this one.
        missing_from: Vec<MemberId>,
    },
    /// The voters want it otherwise than it is, so another decision is on its way.
    Changing,
    /// Some members have it on and some off: they have not all come equally far.
    Differing,
}

/// Every feature that a member names; `None` where no member has gates.
pub fn feature_states(view: &ClusterView) -> Option<Vec<FeatureState>> {
    let decided = gates::states(view)?;
    let heard: Vec<&GateReport> = view.members.iter().filter_map(Member::gates).collect();
    let known: BTreeMap<&String, Known> = heard.iter().flat_map(|gates| &gates.known).map(|(n, k)| (n, *k)).collect();
    let names: BTreeSet<&String> = decided.features.keys().chain(known.keys().copied()).collect();
    let is_undecided = heard.iter().any(|gates| !gates.is_decided);
    let proposals = proposals(view);
    let state = |name: &String| {
        let known = known.get(name).copied();
        let is_on = match decided.features.get(name) {
            Some(feature) => feature.is_on,
            None => Some(false),
        };
        let why = match (known, is_on) {
            (Some(Known { locked: Some(_), .. }), Some(_)) => Why::Locked,
            (Some(Known { since, .. }), _) if version(view).is_none_or(|version| version < since) => {
                too_low(view, since)
            }
            (_, None) => Why::Differing,
            (_, Some(false)) if is_undecided => Why::Undecided { waiting_for: without_proposal(view, &proposals) },
            (_, Some(is_on)) => decided_so(view, &proposals, name, is_on),
        };
        let wish = |(member, wants): (&MemberId, &BTreeMap<String, bool>)| Some((*member, *wants.get(name)?));
        FeatureState { name: name.clone(), is_on, why, proposed: proposals.iter().filter_map(wish).collect() }
    };
    Some(names.into_iter().map(state).collect())
}

/// What each member wants, as stored. The leader's word comes first; who has just been started says nothing of itself yet,
/// and others have what it wanted before, which counts until then.
fn proposals(view: &ClusterView) -> Proposals {
    let mut found = Proposals::new();
    let leader_first = view.leader().into_iter().chain(&view.members);
    for (member, gates) in leader_first.filter_map(|member| Some((member.id, member.gates()?))) {
        for (of, wants) in &gates.stored {
            found.entry(*of).or_insert_with(|| wants.clone());
        }
        if !gates.proposed.is_empty() {
            found.entry(member).or_insert_with(|| gates.proposed.clone());
        }
    }
    found
}

/// The highest that a member holds: it rises on all.
fn version(view: &ClusterView) -> Option<ClusterVersion> {
    view.reports().filter_map(|report| report.cluster_version).max()
}

fn too_low(view: &ClusterView, needed: ClusterVersion) -> Why {
    let is_below = |release: Option<&Release>| release.is_some_and(|release| release.cluster_version() < needed);
    let ids = |is_one: &dyn Fn(&Member) -> bool| {
        view.members.iter().filter(|member| is_one(member)).map(|member| member.id).collect()
    };
    Why::VersionTooLow {
        needed,
        below: ids(&|member| is_below(member.release())),
        silent: ids(&|member| member.release().is_none()),
    }
}

fn without_proposal(view: &ClusterView, proposals: &Proposals) -> Vec<MemberId> {
    view.voters().map(|voter| voter.id).filter(|voter| !proposals.contains_key(voter)).collect()
}

fn decided_so(view: &ClusterView, proposals: &Proposals, name: &str, is_on: bool) -> Why {
    let (mut false_on, mut missing_from) = (Vec::new(), Vec::new());
    for voter in view.voters().map(|voter| voter.id) {
        match proposals.get(&voter).map(|wants| wants.get(name)) {
            Some(Some(false)) => false_on.push(voter),
            Some(None) => missing_from.push(voter),
            Some(Some(true)) | None => {}
        }
    }
    match (is_on, false_on.is_empty() && missing_from.is_empty()) {
        (true, true) => Why::Wanted,
        (false, false) => Why::KeptOff { false_on, missing_from },
        (true, false) | (false, true) => Why::Changing,
    }
}

#[cfg(test)]
#[path = "feature_state_test.rs"]
mod tests;
