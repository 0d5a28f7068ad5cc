//! Many large values at once: none is lost on its way, and no heartbeat waits behind them.

use std::{sync::Arc, time::Duration};

use proto::etcdserverpb::{PutRequest, kv_client::KvClient};
use tests::fault;
use tokio::task::JoinSet;
use tonic::{Code, Status, transport::Channel};

use crate::{nobody_panicked, trial::agreed, up};

/// As large as etcd takes them, nearly.
const VALUE_BYTES: usize = 1_400_000;
const PUTS: usize = 100;
/// A put is given up after five seconds and two election timeouts, and three members write what is put to one disk, which other
/// tests use too.
const FLAGS: [&str; 3] = ["--quota-backend-bytes=4294967296", "--heartbeat-interval=300", "--election-timeout=3000"];
/// How often a put is asked again whose leader stood still.
const REPEATS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_large_values_at_once_arrive_and_cost_no_leader() {
    let Some(cluster) = up("3.6", &FLAGS).await else { return };
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader");
    let follower = layout.members.iter().find(|member| member.name != leader.name).expect("three");
    let term = async || layout.client(leader).expect("a client").status().await.expect("answered").raft_term;
    let before = term().await;
    for member in [leader, follower] {
        all_arrive(layout.client(member).expect("a client").channel(), &member.name, 0).await;
    }
    assert_eq!(term().await, before, "nobody stood for election");
    // The queue grows while its leader stands still.
    let process = leader.process().expect("it runs");
    fault::freeze(&process).expect("frozen");
    let asked = tokio::spawn(all_arrive(layout.client(follower).expect("a client").channel(), "late", REPEATS));
    tokio::time::sleep(Duration::from_millis(500)).await;
    fault::thaw(&process).expect("thawed");
    asked.await.expect("all arrive");
    agreed(&cluster).await;
    nobody_panicked(layout);
}

async fn all_arrive(channel: Channel, name: impl Into<String>, repeats: usize) {
    let (name, value) = (name.into(), Arc::new(vec![7; VALUE_BYTES]));
    let mut puts = JoinSet::new();
    for number in 0..PUTS {
        puts.spawn(put(channel.clone(), format!("{name}/{number}").into_bytes(), value.clone(), repeats));
    }
    while let Some(put) = puts.join_next().await {
        put.expect("no panic").expect("written");
    }
}

async fn put(channel: Channel, key: Vec<u8>, value: Arc<Vec<u8>>, repeats: usize) -> Result<(), Status> {
    let mut left = repeats;
    loop {
        let request = PutRequest { key: key.clone(), value: value.to_vec(), ..PutRequest::default() };
        match KvClient::new(channel.clone()).put(request).await {
            Err(status) if status.code() == Code::Unavailable && left > 0 => left -= 1,
            answered => return answered.map(|_| ()),
        }
    }
}
