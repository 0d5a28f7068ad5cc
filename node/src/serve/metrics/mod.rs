//! `/metrics`, in etcd's names where etcd has the thing (etcd documentation, "Metrics").
//!
//! What can be read is read when it is asked for. What cannot is counted on its way, by whoever does it: calls (`calls.rs`), what goes
//! between members (`peer/traffic.rs`), the member's own part (`member/counts.rs`), the log's syncs (the crate `wal`).
//! All that etcd-mixin's alerts and dashboard name is here, but for what README.md says.

mod applied;
mod gates;

use std::sync::Arc;

use proto::MemberId;

use super::{
    calls::{CODES, Method},
    context::ServiceContext,
    members,
    page::{Labels, Page},
    process::Process,
};
use crate::{peer::PeerTraffic, state::State};

pub(super) fn text(context: &ServiceContext) -> String {
    let mut page = Page::default();
    member(context, &mut page);
    peers(context, &mut page);
    members::metrics(context, &mut page);
    applied::applied(context, &mut page);
    applied::watches(context, &mut page);
    context.member.read(|state| {
        store(state, &mut page);
        if context.has_gates() {
            gates::gates(context, state, &mut page);
        }
    });
    calls(context, &mut page);
    process(&mut page);
    page.text()
}

fn member(context: &ServiceContext, page: &mut Page) {
    let (identity, raft_status) = (context.member.identity(), context.member.raft_status());
    let release = identity.release.to_string();
    let version = Labels::of(&[("server_version", &release)]);
    page.gauges("etcd_server_version", "Which version is running.", [(version, 1)]);
    let id = Labels::of(&[("server_id", &identity.member.to_string())]);
    page.gauges("etcd_server_id", "This member's id.", [(id, 1)]);
    let leads = raft_status.leader == Some(identity.member);
    page.gauge("etcd_server_has_leader", "Whether a leader is known.", i32::from(raft_status.leader.is_some()));
    page.gauge("etcd_server_is_leader", "Whether this member leads.", i32::from(leads));
    page.gauge("etcd_server_is_learner", "Whether this member has no vote.", i32::from(raft_status.is_learner));
    page.gauge("etcd_server_proposals_committed_total", "The last entry known to be committed.", raft_status.committed);
    let counts = context.member.counts();
    page.counter("etcd_server_leader_changes_seen_total", "How often another led.", counts.leader_changes.get());
    let failed = counts.proposals_failed.get();
    page.counter("etcd_server_proposals_failed_total", "Proposals of which nobody knew in time what came.", failed);
    let (pending, _) = context.member.machine().proposals().under_way();
    page.gauge("etcd_server_proposals_pending", "Proposals of this member under way.", pending);
    let is_open = i32::from(context.options.peer_port_is_open);
    page.gauge("baton_peer_port_is_open", "Whether anybody can call as a member, from another machine, too.", is_open);
    page.gauge("etcd_server_quota_backend_bytes", "How large the state may grow.", context.options.quota_bytes());
    page.counter(
        "etcd_server_slow_read_indexes_total",
        "Reads that waited too long for the leader.",
        counts.slow_read_indexes.get(),
    );
    page.counter(
        "etcd_server_read_indexes_failed_total",
        "Reads for which there was no leader.",
        counts.read_indexes_failed.get(),
    );
    let (success, failures) = (context.health.success.get(), context.health.failures.get());
    page.counter("etcd_server_health_success", "How often /health said that it is well.", success);
    page.counter("etcd_server_health_failures", "How often /health said that it is not.", failures);
    let log = context.member.log_measured();
    let help = "How long the log was being synced.";
    page.histograms("etcd_disk_wal_fsync_duration_seconds", help, [(Labels::default(), log.syncs.read())]);
    let help = "How long the log was being written, before it was synced.";
    page.histograms("etcd_disk_wal_write_duration_seconds", help, [(Labels::default(), log.writes.read())]);
    page.gauge("etcd_disk_wal_write_bytes_total", "Bytes that were written to the log.", log.written_bytes.get());
}

fn peers(context: &ServiceContext, page: &mut Page) {
    let traffic = context.member.traffic().all();
    let counts = |label: &'static str, count: fn(&PeerTraffic) -> u64| {
        let sample = move |(member, traffic): &(MemberId, Arc<PeerTraffic>)| {
            (Labels::of(&[(label, &member.to_string())]), count(traffic))
        };
        traffic.iter().map(sample).collect::<Vec<_>>()
    };
    let received = counts("From", |traffic| traffic.received_bytes.get());
    let help = "Bytes of log entries, snapshots and proposals that came from a member.";
    page.counters("etcd_network_peer_received_bytes_total", help, received);
    let sent = counts("To", |traffic| traffic.sent_bytes.get());
    let help = "Bytes of log entries, snapshots, votes and proposals that went to a member.";
    page.counters("etcd_network_peer_sent_bytes_total", help, sent);
    let failures = counts("From", |traffic| traffic.received_failures.get());
    page.counters("etcd_network_peer_received_failures_total", "Streams of a member that broke.", failures);
    let failures = counts("To", |traffic| traffic.sent_failures.get());
    let help = "Messages that did not get to a member, or without an answer.";
    page.counters("etcd_network_peer_sent_failures_total", help, failures);
    let failed: u64 = traffic.iter().map(|(_, traffic)| traffic.heartbeat_failures.get()).sum();
    let help = "Heartbeats of this leader that did not get to a member, or without an answer.";
    page.counter("etcd_server_heartbeat_send_failures_total", help, failed);
    let own = context.member.identity().member;
    let pair = |other: &MemberId| Labels::of(&[("Local", &own.to_string()), ("Remote", &other.to_string())]);
    let known = context.member.read(|state| state.cluster.members.keys().copied().collect::<Vec<_>>());
    page.gauges("etcd_network_known_peers", "The members, this one too.", known.iter().map(|member| (pair(member), 1)));
    let is_active = |member: &MemberId| traffic.iter().any(|(of, traffic)| of == member && traffic.streams.get() > 0);
    let active =
        known.iter().filter(|member| **member != own).map(|member| (pair(member), i32::from(is_active(member))));
    page.gauges("etcd_network_active_peers", "Those that raft has a stream with.", active);
    let round_trips = traffic
        .iter()
        .map(|(member, traffic)| (Labels::of(&[("To", &member.to_string())]), traffic.round_trips.read()));
    let help = "How long a heartbeat of this leader and its answer took.";
    page.histograms("etcd_network_peer_round_trip_time_seconds", help, round_trips);
}

/// In the names of go-grpc-middleware. A method that nobody has called stands there with 0: else the first call would be none.
fn calls(context: &ServiceContext, page: &mut Page) {
    let calls = &*context.calls;
    let labels = |method: &Method, code: Option<&str>| {
        let of_method = [("grpc_method", method.name), ("grpc_service", method.service), ("grpc_type", method.kind)];
        Labels::of(&code.map(|code| ("grpc_code", code)).into_iter().chain(of_method).collect::<Vec<_>>())
    };
    let started = calls.all().map(|(method, counts)| (labels(method, None), counts.started.get()));
    page.counters("grpc_server_started_total", "Calls that were begun.", started);
    let handled = calls.all().flat_map(|(method, counts)| {
        let by_code = CODES.iter().zip(&counts.handled);
        by_code.map(move |(code, count)| (labels(method, Some(code)), count.get()))
    });
    page.counters("grpc_server_handled_total", "Calls that have ended, by how.", handled);
    let received = calls.all().map(|(method, counts)| (labels(method, None), counts.messages_received.get()));
    page.counters("grpc_server_msg_received_total", "Messages of calls that came in.", received);
    let sent = calls.all().map(|(method, counts)| (labels(method, None), counts.messages_sent.get()));
    page.counters("grpc_server_msg_sent_total", "Messages that calls were answered.", sent);
    let clients = calls.clients.all();
    let clients =
        clients.map(|(kind, version, count)| (Labels::of(&[("client_api_version", version), ("type", kind)]), count));
    page.counters("etcd_server_client_requests_total", "Calls, by the version of the client's API.", clients);
    let handling = calls.all().map(|(method, counts)| (labels(method, None), counts.handling.read()));
    page.histograms("grpc_server_handling_seconds", "How long calls took; streams, until they ended.", handling);
    let (received, sent) = (calls.received_bytes.get(), calls.sent_bytes.get());
    page.counter("etcd_network_client_grpc_received_bytes_total", "Bytes that clients have sent in calls.", received);
    page.counter("etcd_network_client_grpc_sent_bytes_total", "Bytes that clients were answered.", sent);
}

fn store(state: &State, page: &mut Page) {
    if let Some(version) = state.cluster.version {
        let version = Labels::of(&[("cluster_version", &version.to_string())]);
        page.gauges("etcd_cluster_version", "Which version the members have agreed on.", [(version, 1)]);
    }
    page.gauge("etcd_server_proposals_applied_total", "The last entry that was applied.", state.applied);
    let keys = &state.keys;
    page.gauge("etcd_mvcc_db_total_size_in_bytes", "How large the state is.", keys.size_bytes());
    page.gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "How large the state is.", keys.size_bytes());
    page.gauge("etcd_debugging_mvcc_current_revision", "The newest revision.", keys.revision());
    page.gauge("etcd_debugging_mvcc_compact_revision", "The oldest revision there is.", keys.compacted());
    page.gauge("etcd_debugging_mvcc_keys_total", "How many keys there are.", keys.key_count());
    let alarms = state.alarms.iter().map(|(member, kind)| {
        let pairs = [("member_id", member.to_string()), ("alarm_type", kind.to_string())];
        (Labels::of(&pairs.each_ref().map(|(name, value)| (*name, value.as_str()))), 1)
    });
    page.gauges("etcd_server_alarms", "The alarms that stand, as etcd numbers them.", alarms);
}

fn process(page: &mut Page) {
    let Some(process) = Process::look() else { return };
    page.gauge("process_resident_memory_bytes", "Resident memory.", process.resident_bytes);
    page.gauge("process_start_time_seconds", "When this process started.", process.started_unix_s);
    page.counter("process_cpu_seconds_total", "Processor time, user and system.", process.cpu_s);
    page.gauge("os_fd_used", "Open file descriptors.", process.descriptors);
    page.gauge("process_open_fds", "Open file descriptors.", process.descriptors);
    process.most_descriptors.into_iter().for_each(|most| {
        page.gauge("process_max_fds", "How many file descriptors may be open.", most);
        page.gauge("os_fd_limit", "How many file descriptors may be open.", most);
    });
}
