//! Clients at work while something is done to their cluster, and what must hold of all that they were told.

use std::time::Duration;

use proto::{
    Revision,
    etcdserverpb::{SnapshotRequest, maintenance_client::MaintenanceClient},
};
use tests::{
    cluster::Cluster,
    wait::{self, GENEROUS},
    watcher::Watcher,
    workload::{Load, Workload},
};

use crate::nobody_panicked;

/// What clients of etcd try again: the member's own words, and what a connection that breaks comes to.
const AGAIN: [&str; 4] = ["Unavailable", "Unknown: transport error", "Cancelled", "DeadlineExceeded: the client's"];

/// A cluster, clients that write and read, and one that watches.
pub struct Trial {
    pub cluster: Cluster,
    pub load: Workload,
    pub watcher: Watcher,
}

impl Trial {
    /// Returns when the clients are at work.
    pub async fn begin(cluster: Cluster) -> Self {
        let (endpoints, access) = (cluster.layout.endpoints(), cluster.layout.access());
        // Most clients find out about a fault by waiting: so there are many, and none is patient.
        let load = Load { clients: 12, patience: Duration::from_millis(250), ..Load::default() };
        // A new cluster is at revision 1, and what is watched for it was not written yet.
        let watcher = Watcher::start(&endpoints, &access, &load.prefix, Revision(2)).expect("watched");
        let load = Workload::start(&endpoints, &access, &load).expect("clients");
        load.more(50).await.expect("the load is under way");
        Self { cluster, load, watcher }
    }

    /// Everything must have held, on a cluster of which every member runs.
    pub async fn end(self) {
        let Self { cluster, load, watcher } = self;
        load.more(50).await.expect("the load is under way again");
        let outcome = load.finish().expect("the clients live");
        let (acked, failed, gap) = (outcome.acked.len(), outcome.failed_attempts, outcome.longest_write_gap);
        cluster.ready().await.expect("every member serves");
        let last = agreed(&cluster).await;
        one_state(&cluster).await;
        let events = watcher.judge(last, &outcome.acked).await.expect("a watch without gaps");
        println!("{acked} writes, {failed} attempts repeated, longest gap {} ms", gap.as_millis());
        println!("{events} events by {} streams; {:?}", watcher.streams(), outcome.complaints);
        let layout = &cluster.layout;
        let is_final = |said: &&String| !AGAIN.iter().any(|code| said.starts_with(code));
        assert_eq!(outcome.complaints.keys().find(is_final), None, "clients do not try that again");
        let verified = outcome.verify(&layout.endpoints(), &layout.access()).await.expect("every member answers");
        assert!(verified.lost.is_empty(), "{} of {acked} writes are lost: {:?}", verified.lost.len(), verified.lost);
        verified.history.expect("linearizable");
        nobody_panicked(layout);
    }
}

/// Every member holds the same, at a revision that nobody is past: gives that.
pub async fn agreed(cluster: &Cluster) -> Revision {
    let look = || async {
        let mut found = Vec::new();
        for member in &cluster.layout.members {
            let client = cluster.layout.client(member).map_err(|error| error.to_string())?;
            let text = |status: tonic::Status| status.to_string();
            let revision = Revision(client.status().await.map_err(text)?.header.unwrap_or_default().revision);
            found.push((revision, client.hash(revision).await.map_err(text)?));
        }
        let is_one = found.windows(2).all(|pair| pair[0] == pair[1]);
        if is_one { Ok(found[0].0) } else { Err(format!("{found:?}")) }
    };
    wait::until("every member to hold the same", GENEROUS, look).await.expect("they agree")
}

/// Every member holds the same to the last byte, as at one entry of the log: keys, leases, members, cluster version and gate.
pub async fn one_state(cluster: &Cluster) {
    let look = || async {
        let mut found = Vec::new();
        for member in &cluster.layout.members {
            let client = cluster.layout.client(member).map_err(|error| error.to_string())?;
            let text = |status: tonic::Status| format!("{}: {status}", member.name);
            let before = client.status().await.map_err(text)?.raft_applied_index;
            let mut pieces =
                MaintenanceClient::new(client.channel()).snapshot(SnapshotRequest {}).await.map_err(text)?.into_inner();
            let mut whole = Vec::new();
            while let Some(piece) = pieces.message().await.map_err(text)? {
                whole.extend(piece.blob);
            }
            let after = client.status().await.map_err(text)?.raft_applied_index;
            found.push((before, after, whole));
        }
        let at: Vec<_> = found.iter().map(|(before, after, _)| (*before, *after)).collect();
        if at.iter().any(|(before, after)| before != after || *before != at[0].0) {
            return Err(format!("they are not at one entry: {at:?}"));
        }
        let is_one = found.windows(2).all(|pair| pair[0].2 == pair[1].2);
        if is_one { Ok(()) } else { Err(format!("they differ after entry {}", at[0].0)) }
    };
    wait::until("every member to be in one state", GENEROUS, look).await.expect("they agree");
}
