//! When a run has reached its end: what every member must say of versions and gates.
//!
//! Pure. Hashes are compared apart, since they take a scan. Source: ARCHITECTURE.md, I-5.

use proto::ClusterVersion;

use crate::{
    observe::view::ClusterView,
    rollout::keys::{Change, Intent},
};

/// What is still missing, in words; `None` when the cluster has settled.
pub fn missing(intent: &Intent, view: &ClusterView, back: bool) -> Option<String> {
    let first = view.members.first()?.report().and_then(|report| report.cluster_version);
    let wanted = match &intent.change {
        Change::Upgrade { to, .. } if !back => Some(to.cluster_version()),
        _ => first,
    };
    view.members.iter().find_map(|member| {
        let name = &member.name;
        let Some(report) = member.report() else {
            return Some(format!("{name} does not answer: {}", member.trouble().unwrap_or("no reason".into())));
        };
        if report.cluster_version != wanted || wanted.is_none() {
            return Some(format!("{name} has cluster version {}, not {}", text(report.cluster_version), text(wanted)));
        }
        if !back && report.storage_version.is_some() && report.storage_version != wanted {
            return Some(format!("{name} has storage version {}, not {}", text(report.storage_version), text(wanted)));
        }
        gate_off(intent, name, report.gates.as_ref())
    })
}

fn text(version: Option<ClusterVersion>) -> String {
    version.map_or_else(|| "undecided".into(), |version| version.to_string())
}

fn gate_off(intent: &Intent, name: &str, gates: Option<&std::collections::BTreeMap<String, bool>>) -> Option<String> {
    let gates = gates?;
    intent.gates.iter().find_map(|(gate, wanted)| match gates.get(gate) {
        Some(found) if found == wanted => None,
        Some(found) => Some(format!("{name} has gate {gate} {}, not {}", on_off(*found), on_off(*wanted))),
        None => Some(format!("{name} has no gate {gate}")),
    })
}

fn on_off(gate: bool) -> &'static str {
    if gate { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{intent, view, with_cluster_version};

    #[test]
    fn every_member_must_say_the_targets_version_itself() {
        for (versions, settled) in [
            (["3.5", "3.5", "3.5"], true),
            (["3.5", "3.5", "3.4"], false),
            (["3.5", "", "3.5"], false), // undecided is not settled
            (["3.4", "3.4", "3.4"], false),
        ] {
            let mut view = view("1+ 2+ 3+");
            for (at, version) in versions.iter().enumerate() {
                with_cluster_version(&mut view, at, version);
            }
            assert_eq!(missing(&intent(">=3.4, <3.5", "3.5.30"), &view, false).is_none(), settled, "{versions:?}");
        }
        assert!(missing(&intent(">=3.4, <3.5", "3.5.30"), &view("1+ 2+ 3."), false).is_some());
        assert!(missing(&intent(">=3.4, <3.5", "3.5.30"), &view("1+ 2+ 3+"), true).is_none(), "back at 3.4");
    }
}
