//! `/metrics`, in etcd's names where etcd has the thing (etcd documentation, "Metrics").
//!
//! All of it is read when it is asked for; nothing is counted on the way of a request.

use std::fmt::{Display, Write};

use proto::MemberId;

use super::{context::ServiceContext, process::Process};
use crate::{
    cluster::{Cluster, gate::Gate, member::Starts},
    features::{Feature, Features, Stage},
    state::State,
};

/// Prometheus' text: each family with its help and kind before its samples.
#[derive(Default)]
struct Page(String);

impl Page {
    fn family<'a, V: Display>(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)> + 'a,
    ) {
        // To write into a text cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family("gauge", name, help, [(String::new(), value)]);
    }
}

/// `{name="value"}`; values are names and versions, which need no escaping but for what a feature may be called.
fn labels(pairs: &[(&str, &str)]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

pub(super) fn text(context: &ServiceContext) -> String {
    let mut page = Page::default();
    member(context, &mut page);
    peers(context, &mut page);
    context.member.read(|state| {
        store(state, &mut page);
        if context.has_gates() {
            gates(context, state, &mut page);
        }
    });
    process(&mut page);
    page.0
}

fn member(context: &ServiceContext, page: &mut Page) {
    let (identity, raft_status) = (context.member.identity(), context.member.raft_status());
    let release = identity.release.to_string();
    page.family(
        "gauge",
        "etcd_server_version",
        "Which version is running.",
        [(labels(&[("server_version", &release)]), 1)],
    );
    page.family(
        "gauge",
        "etcd_server_id",
        "This member's id.",
        [(labels(&[("server_id", &identity.member.to_string())]), 1)],
    );
    let leads = raft_status.leader == Some(identity.member);
    page.gauge("etcd_server_has_leader", "Whether a leader is known.", i32::from(raft_status.leader.is_some()));
    page.gauge("etcd_server_is_leader", "Whether this member leads.", i32::from(leads));
    page.gauge("etcd_server_is_learner", "Whether this member has no vote.", i32::from(raft_status.is_learner));
    page.gauge("etcd_server_proposals_committed_total", "The last entry known to be committed.", raft_status.committed);
    let (pending, _) = context.member.machine().proposals().under_way();
    page.gauge("etcd_server_proposals_pending", "Proposals of this member under way.", pending);
    let is_open = i32::from(context.options.peer_port_is_open);
    page.gauge("baton_peer_port_is_open", "Whether anybody can call as a member, from another machine, too.", is_open);
    page.gauge("etcd_server_quota_backend_bytes", "How large the state may grow.", context.options.quota_bytes());
}

fn peers(context: &ServiceContext, page: &mut Page) {
    let received = context.member.received().bytes();
    let samples = received.iter().map(|(from, bytes)| (labels(&[("From", &from.to_string())]), bytes));
    let help = "Bytes of log entries and snapshots that came from a member.";
    page.family("counter", "etcd_network_peer_received_bytes_total", help, samples);
}

fn store(state: &State, page: &mut Page) {
    if let Some(version) = state.cluster.version {
        let labels = labels(&[("cluster_version", &version.to_string())]);
        page.family("gauge", "etcd_cluster_version", "Which version the members have agreed on.", [(labels, 1)]);
    }
    page.gauge("etcd_server_proposals_applied_total", "The last entry that was applied.", state.applied);
    let keys = &state.keys;
    page.gauge("etcd_mvcc_db_total_size_in_bytes", "How large the state is.", keys.size_bytes());
    page.gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "How large the state is.", keys.size_bytes());
    page.gauge("etcd_debugging_mvcc_current_revision", "The newest revision.", keys.revision());
    page.gauge("etcd_debugging_mvcc_compact_revision", "The oldest revision there is.", keys.compacted());
    page.gauge("etcd_debugging_mvcc_keys_total", "How many keys there are, deleted ones too.", keys.key_count());
    let alarms = state.alarms.iter().map(|(member, kind)| {
        let pairs = [("member_id", member.to_string()), ("alarm_type", kind.to_string())];
        (labels(&pairs.each_ref().map(|(name, value)| (*name, value.as_str()))), 1)
    });
    page.family("gauge", "etcd_server_alarms", "The alarms that stand, as etcd numbers them.", alarms);
}

/// What is on for the whole cluster, and who wants what: so one sees who keeps a feature off (KEP-4647, "Milestones").
fn gates(context: &ServiceContext, state: &State, page: &mut Page) {
    let (cluster, registry) = (&state.cluster, context.member.machine().registry());
    let undecided = i32::from(cluster.gate == Gate::Undecided);
    page.gauge("etcd_cluster_feature_undecided", "Whether the cluster's gate is open to be decided.", undecided);
    let known: Vec<_> = cluster.version.into_iter().flat_map(|version| registry.known_at(version)).collect();
    let is_on = |feature: &Feature| i32::from(cluster.is_enabled(feature.name, registry));
    let enabled = known.iter().map(|(feature, spec)| {
        let labels = labels(&[("name", feature.name), ("stage", stage(spec.stage))]);
        (labels, is_on(feature))
    });
    page.family("gauge", "etcd_server_feature_enabled", "What is on here.", enabled);
    let enabled = known.iter().map(|(feature, _)| (labels(&[("name", feature.name)]), is_on(feature)));
    page.family("gauge", "etcd_cluster_feature_enabled", "What is on for the whole cluster.", enabled);
    let identity = context.member.identity();
    let proposed = proposed(cluster, identity.member, identity.starts);
    page.family("gauge", "etcd_cluster_feature_proposed", "What each member wants.", proposed);
}

/// What each member proposes. An earlier process of this one may have wanted something else: until this process has
/// published its own wish, the page has none of it, and whoever waits for the gate knows that more is to come.
fn proposed(cluster: &Cluster, own: MemberId, starts: Starts) -> Vec<(String, i32)> {
    let said = cluster.members.iter().filter(|(id, member)| **id != own || member.starts == starts);
    let rows = said.flat_map(|(id, member)| {
        let features = cluster.version.and_then(|version| member.proposed_at(version));
        let row = |(name, on)| (labels(&[("member", &id.to_string()), ("name", name)]), i32::from(on));
        features.into_iter().flat_map(Features::iter).map(row).collect::<Vec<_>>()
    });
    rows.collect()
}

/// As etcd's features say it.
fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Alpha => "ALPHA",
        Stage::Beta => "BETA",
        Stage::Ga => "",
        Stage::Deprecated => "DEPRECATED",
    }
}

fn process(page: &mut Page) {
    let Some(process) = Process::look() else { return };
    page.gauge("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
    page.gauge("process_start_time_seconds", "When this process started.", process.started_unix_s);
    page.gauge("process_cpu_seconds_total", "Processor time, user and system.", process.cpu_s);
    page.gauge("process_open_fds", "Open file descriptors.", process.descriptors);
}

#[cfg(test)]
mod tests {
    use proto::ClusterVersion;

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
        let (one, two) = (r#"{member="1",name="A"}"#, r#"{member="2",name="A"}"#);
        for (own, starts, rows) in [
            (1, 2, vec![(one, 1), (two, 0)]),
            (1, 3, vec![(two, 0)]), // it was started again, and has not published yet
            (2, 5, vec![(one, 1), (two, 0)]),
            (2, 6, vec![(one, 1)]),
        ] {
            let found = proposed(&cluster, MemberId(own), Starts(starts));
            let found: Vec<_> = found.iter().map(|(labels, value)| (labels.as_str(), *value)).collect();
            assert_eq!(found, rows, "{own} {starts}");
        }
    }
}
