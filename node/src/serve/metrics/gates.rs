//! The cluster's gate, and what it is decided from (KEP-4647, "Milestones").

use proto::{ClusterVersion, MemberId};

use super::{Labels, Page};
use crate::{
    cluster::{Cluster, gate::Gate, member::Starts},
    features::{Feature, Features, Level, Registry, Spec, Stage},
    serve::context::ServiceContext,
    state::State,
};

/// What is on for the whole cluster, and who wants what: so one sees who keeps a feature off, and how long nobody has decided.
pub(super) fn gates(context: &ServiceContext, state: &State, page: &mut Page) {
    let (cluster, registry) = (&state.cluster, context.member.machine().registry());
    let undecided = i32::from(cluster.gate == Gate::Undecided);
    page.gauge("etcd_cluster_feature_undecided", "Whether the cluster's gate is open to be decided.", undecided);
    let times = context.member.machine().gate_times().read();
    let help = "How long the gate was open to be decided, since this process began.";
    page.counter("etcd_cluster_feature_undecided_seconds_total", help, times.undecided.as_secs_f64());
    let help = "How long ago the gate was reset; nothing where this process has seen no reset.";
    let reset = times.since_reset.map(|ago| (Labels::default(), ago.as_secs_f64()));
    page.gauges("etcd_cluster_feature_seconds_since_reset", help, reset);
    let help = "What this release knows of features: since which version of the cluster, and what that locks them to.";
    page.gauges("etcd_cluster_feature_known", help, known_here(registry, cluster.version));
    let known: Vec<_> = cluster.version.into_iter().flat_map(|version| registry.known_at(version)).collect();
    let is_on = |feature: &Feature| i32::from(cluster.is_enabled(feature.name, registry));
    let enabled = known
        .iter()
        .map(|(feature, spec)| (Labels::of(&[("name", feature.name), ("stage", stage(spec.stage))]), is_on(feature)));
    let own = registry.iter().filter(|(feature, _)| feature.level == Level::Server).map(|(feature, spec)| {
        let is_on = i32::from(context.member.feature_enabled(feature.name));
        (Labels::of(&[("name", feature.name), ("stage", stage(spec.stage))]), is_on)
    });
    page.gauges("etcd_server_feature_enabled", "What is on here.", enabled.chain(own));
    let enabled = known.iter().map(|(feature, _)| (Labels::of(&[("name", feature.name)]), is_on(feature)));
    page.gauges("etcd_cluster_feature_enabled", "What is on for the whole cluster.", enabled);
    let identity = context.member.identity();
    let proposed = proposed(cluster, identity.member, identity.starts);
    page.gauges("etcd_cluster_feature_proposed", "What each member wants.", proposed);
}

/// What each member proposes. An earlier process of this one may have wanted something else: until this process has
/// published its own wish, the page has none of it, and whoever waits for the gate knows that more is to come.
fn proposed(cluster: &Cluster, own: MemberId, starts: Starts) -> Vec<(Labels, i32)> {
    let said = cluster.members.iter().filter(|(id, member)| **id != own || member.starts == starts);
    let rows = said.flat_map(|(id, member)| {
        let features = cluster.version.and_then(|version| member.proposed_at(version));
        let row = |(name, on)| (Labels::of(&[("member", &id.to_string()), ("name", name)]), i32::from(on));
        features.into_iter().flat_map(Features::iter).map(row).collect::<Vec<_>>()
    });
    rows.collect()
}

/// What this release knows of the cluster's features, those of a version above the cluster's, too: so one sees what waits for an
/// upgrade, and what no flag changes.
fn known_here(registry: &Registry, version: Option<ClusterVersion>) -> Vec<(Labels, i32)> {
    let row = |(feature, _): (&Feature, &Spec)| {
        let since = feature.specs.first()?.since.to_string();
        let locked = version.and_then(|version| registry.locked(feature.name, version));
        let locked = locked.map_or_else(String::new, |on| on.to_string());
        Some((Labels::of(&[("name", feature.name), ("since", &since), ("locked", &locked)]), 1))
    };
    registry.iter().filter(|(feature, _)| feature.level == Level::Cluster).filter_map(row).collect()
}

/// As etcd's features say it.
fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Alpha => "ALPHA",
        Stage::Beta => "BETA",
        Stage::Ga => "",
        Stage::Deprecated => "DEPRECATED",
        Stage::Removed => "REMOVED",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cluster::member::{Member, Proposal};

    #[test]
    fn what_an_earlier_process_of_this_member_wanted_is_no_word_of_this_one() {
        let version = ClusterVersion { major: 3, minor: 6 };
        let member = |starts, on| {
            let features = [("A".to_owned(), on)].into_iter().collect();
            Member { starts: Starts(starts), proposal: Some(Proposal { version, features }), ..Member::default() }
        };
        let members = [(MemberId(1), member(2, true)), (MemberId(2), member(5, false))].into();
        let cluster = Cluster { version: Some(version), members, ..Cluster::default() };
        let (one, two) = (r#"member="1",name="A""#, r#"member="2",name="A""#);
        for (own, starts, rows) in [
            (1, 2, vec![(one, 1), (two, 0)]),
            (1, 3, vec![(two, 0)]), // it was started again, and has not published yet
            (2, 5, vec![(one, 1), (two, 0)]),
            (2, 6, vec![(one, 1)]),
        ] {
            let found = proposed(&cluster, MemberId(own), Starts(starts));
            let found: Vec<_> = found.iter().map(|(labels, value)| (labels.to_string(), *value)).collect();
            let rows: Vec<_> = rows.into_iter().map(|(labels, value)| (labels.to_owned(), value)).collect();
            assert_eq!(found, rows, "{own} {starts}");
        }
    }

    const fn at(minor: u64, default: bool, is_locked: bool) -> Spec {
        let (since, stage) = (ClusterVersion { major: 3, minor }, Stage::Ga);
        Spec { since, patch: 0, default, stage, is_locked }
    }
    const fn of(name: &'static str, level: Level, specs: &'static [Spec]) -> Feature {
        Feature { name, level, specs }
    }

    const HISTORY: &[Feature] = &[
        of("A", Level::Cluster, &[at(6, false, false), at(8, true, true)]),
        of("B", Level::Cluster, &[at(7, true, false)]),
        of("S", Level::Server, &[at(6, true, false)]),
    ];

    #[test]
    fn what_waits_for_a_higher_version_and_what_is_locked_is_said() {
        let registry = Registry::over(HISTORY, &"3.8.0".parse().unwrap());
        for (minor, a, b) in [(None, "", ""), (Some(6), "", ""), (Some(7), "", ""), (Some(8), "true", "")] {
            let version = minor.map(|minor| ClusterVersion { major: 3, minor });
            let found: Vec<_> = known_here(&registry, version).iter().map(|(labels, _)| labels.to_string()).collect();
            let row = |name: &str, since: &str, locked: &str| {
                format!("name=\"{name}\",since=\"{since}\",locked=\"{locked}\"")
            };
            assert_eq!(found, [row("A", "3.6", a), row("B", "3.7", b)], "{version:?}");
        }
    }
}
