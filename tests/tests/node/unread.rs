//! Clients that ask for much and read none of it.

use std::time::Duration;

use proto::etcdserverpb::{HashKvRequest, SnapshotRequest, maintenance_client::MaintenanceClient};
use tests::{much, wait::GENEROUS};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{QUICK, nobody_panicked, up};

/// More than a runtime has threads for what takes long (tokio: 512).
const SNAPSHOTS: usize = 600;
/// In all more than a connection that nobody reads takes in.
const VALUES: usize = 8;
const VALUE: usize = 1 << 20;

/// Each snapshot has a thread while it is sent, and whoever scans needs one, too.
#[tokio::test(flavor = "multi_thread")]
async fn who_reads_none_of_many_snapshots_holds_up_nobody() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let layout = &cluster.layout;
    let writer = layout.client(&layout.members[0]).expect("a client");
    for number in 0..VALUES {
        writer.put(&format!("large{number}"), &"v".repeat(VALUE)).await.expect("written");
    }
    let channels = much::channels(layout, 2 * layout.members.len()).expect("connections");
    let (unread, others) = channels.split_at(layout.members.len());
    let mut waiting = JoinSet::new();
    for channel in unread {
        for _ in 0..SNAPSHOTS {
            let mut client = MaintenanceClient::new(channel.clone());
            waiting.spawn(async move {
                let stream = client.snapshot(SnapshotRequest {}).await;
                std::future::pending::<()>().await;
                drop(stream);
            });
        }
    }
    for channel in others {
        let mut client = MaintenanceClient::new(channel.clone());
        for _ in 0..10 {
            let asked = client.hash_kv(HashKvRequest { revision: 0 });
            timeout(GENEROUS, asked).await.expect("nobody waits for whoever does not read").expect("an answer");
            sleep(Duration::from_millis(100)).await;
        }
    }
    writer.put("after", "1").await.expect("written");
    waiting.shutdown().await;
    nobody_panicked(layout);
}
