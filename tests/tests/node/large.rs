//! Many large values at once: none is lost on its way, and no heartbeat waits behind them; nor do they cost all members their memory.

use std::{sync::Arc, time::Duration};

use proto::etcdserverpb::{PutRequest, RangeRequest, RequestOp, TxnRequest, kv_client::KvClient, request_op::Request};
use rustix::process::Signal;
use tests::{fault, process::Process};
use tokio::task::JoinSet;
use tonic::{Code, Status, transport::Channel};

use crate::{nobody_panicked, trial::agreed, up};

/// As large as etcd takes them, nearly.
const VALUE_BYTES: usize = 1_400_000;
const PUTS: usize = 100;
/// A put is given up after five seconds and two election timeouts, and three members write what is put to one disk, which other
/// tests use too: 420 MB at most, for which a slow one takes a while.
const PATIENT: [&str; 3] =
    ["--quota-backend-bytes=4294967296", "--heartbeat-interval=1000", "--election-timeout=10000"];
const FLAGS: [&str; 3] = ["--quota-backend-bytes=4294967296", "--heartbeat-interval=300", "--election-timeout=3000"];
/// How often a put is asked again whose leader stood still.
const REPEATS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_large_values_at_once_arrive_and_cost_no_leader() {
    let Some(cluster) = up("3.6", &PATIENT).await else { return };
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

/// Many reads of everything in one transaction, which goes through the log.
const READS: usize = 126;
/// What all its reads would answer is three times as much.
const MOST_RESIDENT: u64 = 512 << 20;

/// Every member performs it, also when it is replayed: if each made its reads, all would run out of memory at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_reads_everything_a_hundred_times_costs_no_member_its_memory() {
    let Some(cluster) = up("3.6", &FLAGS).await else { return };
    let layout = &cluster.layout;
    let writer = layout.client(&layout.members[0]).expect("a client");
    for number in 0..100 {
        writer.put(&format!("v/{number}"), &"v".repeat(130_000)).await.expect("written");
    }
    let read = Request::RequestRange(RangeRequest { key: b"v/".into(), range_end: b"v0".into(), ..Default::default() });
    let put = Request::RequestPut(PutRequest { key: b"put".into(), value: b"1".into(), ..Default::default() });
    let operations = std::iter::once(put).chain(std::iter::repeat_n(read, READS));
    let success = operations.map(|request| RequestOp { request: Some(request) }).collect();
    let request = TxnRequest { success, ..TxnRequest::default() };
    let refused = KvClient::new(writer.channel()).txn(request).await.expect_err("1.6 GB");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert_eq!(writer.get("put").await.expect("read").map(|pair| pair.value).as_deref(), Some(&b"1"[..]));
    agreed(&cluster).await;
    let most = || layout.members.iter().map(|member| most_resident(&member.process().expect("it runs"))).max();
    assert!(most() < Some(MOST_RESIDENT), "{:?}", most());
    for member in &layout.members {
        member.end(Signal::KILL).expect("killed");
    }
    for member in &layout.members {
        member.start().expect("started");
    }
    cluster.ready().await.expect("they replay it");
    agreed(&cluster).await;
    assert!(most() < Some(MOST_RESIDENT), "{:?}", most());
    nobody_panicked(layout);
}

/// The most that it ever had in memory, in bytes (proc_pid_status(5), `VmHWM`).
fn most_resident(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid)).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it says");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
