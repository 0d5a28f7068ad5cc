//! The bundled node as a cluster of real processes, while it is killed, stopped, cut off and starved.
//!
//! Whatever happens to its members: no acknowledged write is lost, some order explains all that clients read, a watch has
//! no gap, and nobody panics. Source: agent/PROTOCOL.md, "What must always hold".

mod addresses;
mod clients;
mod descriptors;
mod downgrade;
mod durable;
mod faults;
mod full;
mod gate_untouched;
mod gates;
mod golden_disks;
mod graduates;
mod hand_over;
mod hostile;
mod join_control;
mod large;
mod leader_killed;
mod lease_reads;
mod leases;
mod log_lines;
mod lost_data;
mod members;
mod migrate;
mod moved;
mod much;
mod no_leader;
mod older_clients;
mod refusal;
mod restore;
mod rubbish;
mod self_signed;
mod snapshot;
mod snapshot_across;
mod stranger;
mod tls;
mod trial;
mod unread;
mod while_members_change;

use std::fs;

use tests::{
    cluster::{Cluster, Layout, Spec},
    skip::build_or_skip,
    system::System,
};

/// Elections in a fifth of the usual time, for tests in which many are waited for.
const QUICK: [&str; 2] = ["--heartbeat-interval=40", "--election-timeout=400"];

/// Three members of this release with more flags; `None` is a skip.
async fn up(version: &str, flags: &[&str]) -> Option<Cluster> {
    let build = build_or_skip(System::Node, version)?;
    let flags = flags.iter().map(ToString::to_string).collect();
    Some(Cluster::up(&Spec { flags, ..Spec::new(build) }).await.expect("up"))
}

/// A member may fail; it must say why, and not fall over.
#[track_caller]
fn nobody_panicked(layout: &Layout) {
    for member in &layout.members {
        let log = fs::read_to_string(member.log()).expect("a log");
        assert!(!log.contains("panicked"), "{}: {log}", member.name);
    }
}
