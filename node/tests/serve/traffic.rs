//! What goes between two members is counted on both sides.

use std::{sync::Arc, time::Duration};

use node::{
    config::Config,
    entry::EntryKind,
    features::FEATURES,
    host::{RealHost, tcp},
    member::{self, Member, Running},
    peer::PeerTraffic,
};
use proto::{Release, etcdserverpb::PutRequest};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::real::PATIENCE;

async fn start(name: &str, listener: TcpListener, initial_cluster: &str, folder: &TempDir) -> Running {
    let flags = [
        format!("--name={name}"),
        format!("--data-dir={}", folder.path().join(name).display()),
        format!("--initial-advertise-peer-urls=http://{}", listener.local_addr().unwrap()),
        format!("--initial-cluster={initial_cluster}"),
    ];
    let (config, release) = (Config::read(flags, [], FEATURES).unwrap(), Release::new(3, 6, 0));
    let listeners = vec![tcp(listener, Arc::new(Semaphore::new(64)))];
    member::start(member::Setup {
        host: Arc::new(RealHost::default()),
        config,
        release,
        registry: FEATURES,
        listeners,
        tls: None,
    })
    .await
    .unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !is_so() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}

/// Of the only other one.
fn other(member: &Member) -> Arc<PeerTraffic> {
    let [(_, traffic)] = member.traffic().all().try_into().unwrap();
    traffic
}

async fn put(member: &Member, bytes: usize) -> bool {
    let put = PutRequest { key: b"a".to_vec(), value: vec![7; bytes], ..PutRequest::default() };
    member.propose(EntryKind::Put(put).into()).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_between_members_is_counted_by_both() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
    let url = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let cluster = format!("m1={},m2={}", url(&one), url(&two));
    let (one, two) = tokio::join!(start("m1", one, &cluster, &folder), start("m2", two, &cluster, &folder));
    let leads = |running: &Running| {
        running.member.raft_status().leader == Some(running.member.identity().member)
            && running.member.read(|state| state.cluster.version.is_some())
    };
    until("nobody leads", || leads(&one) || leads(&two)).await;
    let (leader, follower) = if leads(&one) { (one, two) } else { (two, one) };
    let (at_leader, at_follower) = (other(&leader.member), other(&follower.member));

    const VALUE: u64 = 100_000;
    let before = (at_follower.sent_bytes.get(), at_follower.received_bytes.get());
    assert!(put(&follower.member, VALUE as usize).await);
    assert!(at_follower.sent_bytes.get() >= before.0 + VALUE, "it goes to the leader as a proposal");
    assert!(at_leader.received_bytes.get() >= VALUE);
    assert!(at_follower.received_bytes.get() >= before.1 + VALUE, "and comes back as an entry");
    assert!(at_leader.sent_bytes.get() >= VALUE);
    until("no heartbeat is measured", || at_leader.round_trips.read().count > 0).await;
    assert_eq!(at_follower.round_trips.read().count, 0, "heartbeats are the leader's");
    for running in [&leader, &follower] {
        assert!(running.member.counts().leader_changes.get() >= 1);
        assert_eq!(running.member.counts().proposals_failed.get(), 0);
        assert!(running.member.log_measured().syncs.read().count > 0);
        assert!(other(&running.member).streams.get() > 0, "raft has a stream with the other");
    }

    let failures = at_leader.sent_failures.get();
    let of_heartbeats = at_leader.heartbeat_failures.get();
    follower.end().await;
    until("who is away is called without a failure", || at_leader.sent_failures.get() > failures + 3).await;
    assert!(!put(&leader.member, 1).await, "there is no quorum");
    assert_eq!(leader.member.counts().proposals_failed.get(), 1);
    until("heartbeats do not fail", || at_leader.heartbeat_failures.get() > of_heartbeats).await;
    until("a stream is left", || at_leader.streams.get() == 0).await;
    leader.end().await;
}
