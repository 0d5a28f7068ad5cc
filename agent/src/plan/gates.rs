//! The cluster's feature gates: what the members' words come to, and what is still missing of them.
//!
//! Pure. Each member is believed about the gates that it has and about what it wants itself (I-5); a feature is on where
//! every voter wants it on. Source: KEP-4647, "Consensus Algorithm".

use std::collections::{BTreeMap, BTreeSet};

use proto::MemberId;

use super::{Case, settled::Missing};
use crate::observe::view::{ClusterView, GateReport, Gates, Member};

/// How the gates of the whole cluster stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateStates {
    /// Whether every member that was heard has them decided, by what every voter wants now.
    pub is_decided: bool,
    /// The voters whose proposal is not there yet.
    pub awaited: Vec<MemberId>,
    pub features: BTreeMap<String, Feature>,
}

/// One feature of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Whether it is on; `None` where the members differ.
    pub is_on: Option<bool>,
    /// The voters whose proposal keeps it off.
    pub kept_off_by: Vec<MemberId>,
}

/// How the gates stand, by the members that said something of them; `None` where none did.
pub fn states(view: &ClusterView) -> Option<GateStates> {
    let heard: Vec<&GateReport> = view.members.iter().filter_map(Member::gates).collect();
    let names: BTreeSet<&String> = heard.iter().flat_map(|gates| gates.enabled.keys()).collect();
    let feature = |name: &String| {
        let said: BTreeSet<Option<bool>> = heard.iter().map(|gates| gates.enabled.get(name).copied()).collect();
        let is_on = if said.len() == 1 { said.into_iter().next().flatten() } else { None };
        (name.clone(), Feature { is_on, kept_off_by: voters(view, |gates| wish(gates, name) == Some(false)) })
    };
    // Where there is no feature there is nothing to propose.
    let awaited = voters(view, |gates| gates.proposed.is_empty() && !gates.enabled.is_empty());
    (!heard.is_empty()).then(|| GateStates {
        is_decided: awaited.is_empty() && heard.iter().all(|gates| gates.is_decided),
        awaited,
        features: names.into_iter().map(feature).collect(),
    })
}

/// What a member wants of a feature. A proposal that does not name it keeps it off.
fn wish(gates: &GateReport, name: &str) -> Option<bool> {
    (!gates.proposed.is_empty()).then(|| gates.proposed.get(name) == Some(&true))
}

fn voters(view: &ClusterView, is_one: impl Fn(&GateReport) -> bool) -> Vec<MemberId> {
    view.voters().filter(|member| member.gates().is_some_and(&is_one)).map(|member| member.id).collect()
}

/// What is missing until the gates are decided, equal on every member, and as expected.
pub(super) fn missing(expected: &BTreeMap<String, bool>, view: &ClusterView) -> Option<Missing> {
    let states = match has_none(view) {
        Some(member) => return expected.keys().next().map(|_| Missing::NoGates { member }),
        None => states(view),
    };
    let unknown = view.members.iter().find_map(|member| match member.report()?.gates.as_ref()? {
        Gates::Unknown { reason } => Some(Missing::GatesUnknown { member: member.id, reason: reason.clone() }),
        Gates::Said(_) => None,
    });
    let states = match (unknown, states) {
        (Some(unknown), _) => return Some(unknown),
        (None, states) => states?,
    };
    if !states.is_decided {
        return Some(Missing::Undecided { awaited: states.awaited });
    }
    let differs = |(name, feature): (&String, &Feature)| feature.is_on.is_none().then(|| name.clone());
    match states.features.iter().find_map(differs) {
        Some(gate) => Some(Missing::Differing { gate }),
        None => expected.iter().find_map(|(gate, on)| contrary(view, &states, gate, *on)),
    }
}

/// One that does not name its gates because it has none: the cluster version is that of a release without them.
fn has_none(view: &ClusterView) -> Option<MemberId> {
    let has_none = |member: &&Member| member.report().is_some_and(|report| report.gates.is_none());
    view.members.iter().find(has_none).map(|member| member.id)
}

fn contrary(view: &ClusterView, states: &GateStates, gate: &str, wanted: bool) -> Option<Missing> {
    let gate = gate.to_owned();
    let Some(feature) = states.features.get(&gate) else {
        return Some(Missing::NoSuchGate { gate, there_are: states.features.keys().cloned().collect() });
    };
    match (feature.is_on == Some(wanted), wanted) {
        (true, _) => None,
        (false, true) => Some(Missing::KeptOff { gate, by: feature.kept_off_by.clone() }),
        (false, false) => {
            let is_wanted = view.voters().all(|m| m.gates().and_then(|gates| wish(gates, &gate)) == Some(true));
            Some(Missing::KeptOn { gate, is_wanted })
        }
    }
}

/// Whether the gates are known to be otherwise than expected, where every member is at its target already.
pub(super) fn are_contrary(case: &Case) -> bool {
    let expected = &case.me.intent.gates;
    !expected.is_empty() && missing(expected, case.view).is_some()
}

#[cfg(test)]
#[path = "gates_test.rs"]
mod tests;
