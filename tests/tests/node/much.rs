//! Long looks at a large state hold up nobody: neither raft's heartbeats nor what clients write.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use proto::etcdserverpb::{
    CompactionRequest, HashKvRequest, RangeRequest,
    kv_client::KvClient,
    maintenance_client::MaintenanceClient,
    range_request::{SortOrder, SortTarget},
};
use tests::{client::Client, cluster::Layout, much};
use tokio::task::{JoinHandle, JoinSet};

use crate::{nobody_panicked, trial::agreed, up};

const KEYS: u64 = 200_000;
/// As many puts are answered, at the least, while something large is looked at: were each kept waiting until it is done, there
/// would be one.
const BESIDE: u64 = 10;

/// A client that puts one key after the other.
struct Puts {
    done: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    running: JoinHandle<()>,
}

impl Puts {
    fn begin(client: Client) -> Self {
        let (done, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counts, ends) = (done.clone(), over.clone());
        let running = tokio::spawn(async move {
            while !ends.load(Ordering::Relaxed) {
                client.put("beside", "x").await.expect("written");
                counts.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        Self { done, over, running }
    }

    /// Does this, and counts the puts that were answered meanwhile.
    async fn beside<T>(&self, what: impl Future<Output = T>) -> (T, u64) {
        let before = self.done.load(Ordering::Relaxed);
        let outcome = what.await;
        (outcome, self.done.load(Ordering::Relaxed) - before)
    }

    async fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.running.await.expect("every put was answered");
    }
}

async fn term(layout: &Layout) -> u64 {
    let leader = layout.leader().await.expect("a leader");
    layout.client(leader).expect("a client").status().await.expect("answered").raft_term
}

#[tokio::test(flavor = "multi_thread")]
async fn long_looks_at_a_large_state_hold_up_nobody() {
    // A snapshot is due all the time.
    let Some(cluster) = up("3.6", &["--snapshot-count=100"]).await else { return };
    let layout = &cluster.layout;
    much::fill(layout, KEYS, 8).await.expect("filled");
    let before = term(layout).await;
    let leader = layout.leader().await.expect("a leader");
    let client = layout.client(leader).expect("a client");
    let channel = client.channel();
    let puts = Puts::begin(layout.client(leader).expect("a client"));

    let hashes = async {
        let mut hashes = JoinSet::new();
        for _ in 0..8 {
            let mut maintenance = MaintenanceClient::new(channel.clone());
            hashes.spawn(async move { maintenance.hash_kv(HashKvRequest { revision: 0 }).await.expect("hashed") });
        }
        hashes.join_all().await.len()
    };
    let (hashed, beside) = puts.beside(hashes).await;
    assert!(hashed == 8 && beside >= BESIDE, "{beside} puts beside {hashed} hashes");

    // To find the greatest value all of them are looked at.
    let greatest = RangeRequest {
        key: b"0".to_vec(),
        range_end: b"1".to_vec(),
        limit: 1,
        sort_order: SortOrder::Descend.into(),
        sort_target: SortTarget::Value.into(),
        ..RangeRequest::default()
    };
    let reads = async {
        let mut found = Vec::new();
        for _ in 0..10 {
            found.push(KvClient::new(channel.clone()).range(greatest.clone()).await.expect("read").into_inner().count);
        }
        found
    };
    let (found, beside) = puts.beside(reads).await;
    assert!(found == [KEYS as i64; 10] && beside >= BESIDE, "{beside} puts beside reads of everything: {found:?}");

    much::fill(layout, KEYS, 8).await.expect("written again");
    let newest = client.status().await.expect("answered").header.expect("a header").revision;
    let request = CompactionRequest { revision: newest, physical: true };
    let (compacted, beside) = puts.beside(KvClient::new(channel.clone()).compact(request)).await;
    compacted.expect("compacted");
    assert!(beside >= BESIDE, "{beside} puts beside a compaction");

    let watches = much::watches(layout, 10_000).await.expect("watched");
    let (_, beside) = puts.beside(tokio::time::sleep(Duration::from_secs(1))).await;
    assert!(beside >= BESIDE, "{beside} puts beside ten thousand watches");
    drop(watches);

    puts.end().await;
    assert_eq!(term(layout).await, before, "nobody was elected meanwhile");
    agreed(&cluster).await;
    nobody_panicked(layout);
}
