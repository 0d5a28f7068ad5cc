//! Leases over a change of leader, with and without the feature `ClusterLeaseCheckpoint`.

use std::time::Duration;

use proto::{
    ClusterVersion,
    etcdserverpb::{
        LeaseGrantRequest, LeaseKeepAliveRequest, LeaseTimeToLiveRequest, PutRequest, kv_client::KvClient,
        lease_client::LeaseClient,
    },
};
use rustix::process::Signal;
use tests::{
    client::Client,
    cluster::{Cluster, Layout},
    member::Member,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};
use tonic::Status;

use crate::{
    QUICK,
    downgrade::{downgrade, succeeds},
    leader_killed::decided,
    nobody_panicked,
    trial::one_state,
    up,
};

const ID: i64 = 4711;
const KEY: &str = "leased";

async fn grant(client: &Client, ttl: i64) {
    let request = LeaseGrantRequest { ttl, id: ID };
    LeaseClient::new(client.channel()).lease_grant(request).await.expect("granted");
    let request = PutRequest { key: KEY.into(), lease: ID, ..PutRequest::default() };
    KvClient::new(client.channel()).put(request).await.expect("written");
}

/// The seconds that are left; -1 where there is no lease.
async fn left(client: &Client) -> Result<i64, Status> {
    let request = LeaseTimeToLiveRequest { id: ID, ..LeaseTimeToLiveRequest::default() };
    Ok(LeaseClient::new(client.channel()).lease_time_to_live(request).await?.into_inner().ttl)
}

/// Gives the lease its whole time again; the seconds, and 0 where there is none.
async fn renew(client: &Client) -> Result<i64, Status> {
    let requests = tokio_stream::iter([LeaseKeepAliveRequest { id: ID }]);
    let mut answers = LeaseClient::new(client.channel()).lease_keep_alive(requests).await?.into_inner();
    let answer = answers.message().await?;
    Ok(answer.ok_or_else(|| Status::unavailable("the stream ended"))?.ttl)
}

fn clients(cluster: &Cluster) -> Vec<Client> {
    cluster.layout.members.iter().map(|member| cluster.layout.client(member).expect("a client")).collect()
}

async fn is_gone(client: &Client) {
    wait::until("the key to go with its lease", GENEROUS, || async {
        match client.get(KEY).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .expect("gone");
    assert_eq!(left(client).await.expect("answered"), -1);
}

/// The seconds that a lease of `TTL` has left after its leader died with no more than `LATE` of them left.
async fn after_a_kill(cluster: &Cluster) -> i64 {
    let layout = &cluster.layout;
    grant(&layout.client(layout.leader().await.expect("a leader")).expect("a client"), TTL).await;
    // Where a machine is slow another one may lead by then, which gives the lease what a new leader gives.
    let leader = wait::until("the lease to be old", GENEROUS, || async {
        let leader = layout.leader().await.map_err(|error| error.to_string())?;
        let client = layout.client(leader).map_err(|error| error.to_string())?;
        let left = left(&client).await.map_err(|status| status.to_string())?;
        if left <= LATE { Ok(leader) } else { Err(format!("{left} s are left")) }
    })
    .await
    .expect("it grows old");
    let survivor = layout.members.iter().find(|member| member.name != leader.name).expect("three");
    let survivor = layout.client(survivor).expect("a client");
    leader.end(Signal::KILL).expect("killed");
    wait::until("another leader to know", GENEROUS, || async { left(&survivor).await.map_err(|s| s.to_string()) })
        .await
        .expect("known")
}

/// A checkpoint is written when half of it is over.
const TTL: i64 = 8;
const LATE: i64 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lease_has_left_outlives_its_leader_only_with_the_feature() {
    let on = [&QUICK[..], &["--cluster-feature-gates=ClusterLeaseCheckpoint=true"]].concat();
    let (Some(on), Some(off)) = (up("3.6", &on).await, up("3.6", &QUICK).await) else { return };
    let (left_on, left_off) = tokio::join!(after_a_kill(&on), after_a_kill(&off));
    // A new leader adds an election, in which no client could renew.
    assert!((1..=TTL / 2 + 1).contains(&left_on), "with the feature {left_on} of {TTL} s are left");
    assert!((TTL - 2..=TTL).contains(&left_off), "without it {left_off} of {TTL} s are left");
    let survivor = |cluster: &Cluster| {
        let member = cluster.layout.members.iter().find(|member| member.is_running()).expect("two run");
        cluster.layout.client(member).expect("a client")
    };
    is_gone(&survivor(&on)).await;
    is_gone(&survivor(&off)).await;
    nobody_panicked(&on.layout);
    nobody_panicked(&off.layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_kept_alive_through_every_member_and_over_a_hand_over() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let clients = clients(&cluster);
    grant(&clients[0], 2).await;
    for round in 0..4 {
        let leader = cluster.layout.leader().await.expect("a leader");
        let next = cluster.layout.members.iter().find(|member| member.name != leader.name).expect("three");
        for client in &clients {
            assert_eq!(renew(client).await.expect("renewed"), 2, "round {round}");
            // A client renews three times in the life of a lease: four rounds are two of its lives and more.
            tokio::time::sleep(Duration::from_millis(400)).await;
            if round % 2 == 1 && cluster.layout.leader().await.expect("a leader").name != next.name {
                cluster.layout.make_leader(next).await.expect("handed over");
            }
        }
        assert!(clients[0].get(KEY).await.expect("answered").is_some(), "round {round}: it was kept alive");
    }
    for client in &clients {
        is_gone(client).await;
    }
    nobody_panicked(&cluster.layout);
}

/// A leader without a quorum has proposed the end of a lease, and leads on in its term once a follower is back. Who renews the
/// lease then is answered when that end is committed, and not before: it would be told that the lease lives.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_a_lonely_leader_was_about_to_end_is_not_renewed_when_a_follower_is_back() {
    let flags = ["--heartbeat-interval=100", "--election-timeout=3000"];
    for _ in 0..TRIES {
        let Some(cluster) = up("3.6", &flags).await else { return };
        if is_renewed_or_ended(&cluster).await {
            nobody_panicked(&cluster.layout);
            return;
        }
    }
    panic!("another led whenever a follower came back: nothing was shown");
}

/// A follower that starts waits for its leader, unless the machine is slow.
const TRIES: usize = 5;
/// Above the least that there is with such elections (etcd, `minLeaseTTL`).
const SHORT_TTL: i64 = 6;

/// Whether one leader led all the time; what it said of the lease was true.
async fn is_renewed_or_ended(cluster: &Cluster) -> bool {
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader");
    let (client, term) = (layout.client(leader).expect("a client"), term_of(layout, leader).await);
    let followers: Vec<_> = layout.members.iter().filter(|member| member.name != leader.name).collect();
    let (late, other) = (followers[0], followers[1]);
    // What one of them lacks takes longer to get there than a heartbeat.
    late.end(Signal::KILL).expect("killed");
    for key in 0..2000 {
        client.put(&format!("missing/{key}"), &"x".repeat(20_000)).await.expect("two are left");
    }
    grant(&client, SHORT_TTL).await;
    tokio::time::sleep(Duration::from_secs(SHORT_TTL as u64 - 1)).await;
    other.end(Signal::KILL).expect("killed");
    wait::until("it to have no leader", GENEROUS, || async {
        match client.status().await.map_err(|status| status.to_string())?.leader {
            0 => Ok(()),
            leader => Err(format!("{leader:x} leads")),
        }
    })
    .await
    .expect("it is alone");
    let renewing = tokio::spawn({
        let client = client.clone();
        async move { renew(&client).await }
    });
    late.start().expect("started");
    let renewed = renewing.await.expect("it did not panic");
    for _ in 0..10 {
        let is_there = client.get(KEY).await.expect("served").is_some();
        assert!(is_there || renewed.as_ref().is_ok_and(|left| *left == 0), "it was renewed ({renewed:?}), and is gone");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    term_of(layout, leader).await == term
}

async fn term_of(layout: &Layout, member: &Member) -> u64 {
    layout.client(member).expect("a client").status().await.expect("answered").raft_term
}

/// What is written down of a lease at 3.7 is forgotten as the version falls to 3.6, where nobody writes it down: so the next leader
/// gives the lease its whole time, and not what was left of it once.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_outlives_a_downgrade_and_what_was_written_down_of_it_does_not() {
    const TTL: i64 = 20;
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let Some(cluster) = up("3.7", &QUICK).await else { return };
    let layout = &cluster.layout;
    decided(&cluster, ClusterVersion { major: 3, minor: 7 }).await;
    let leader = layout.leader().await.expect("a leader").clone();
    let client = layout.client(&leader).expect("a client");
    grant(&client, TTL).await;
    wait::until("half of it to be over, and that to be written down", GENEROUS, || async {
        let left = left(&client).await.map_err(|status| status.to_string())?;
        if left < TTL / 2 { Ok(()) } else { Err(format!("{left} s are left")) }
    })
    .await
    .expect("it grows old");
    succeeds(&downgrade(&etcd.bin.join("etcdctl"), &leader, &["enable", "3.6.0"]));
    let on = decided(&cluster, ClusterVersion { major: 3, minor: 6 }).await;
    assert!(!on.contains(&"ClusterLeaseCheckpoint".to_owned()), "{on:?}");
    // The state holds what was written down, too.
    one_state(&cluster).await;
    assert!(client.get(KEY).await.expect("answered").is_some(), "its key is there");
    let survivor = layout.members.iter().find(|member| member.name != leader.name).expect("three");
    let survivor = layout.client(survivor).expect("a client");
    leader.end(Signal::KILL).expect("killed");
    let left =
        wait::until("another leader to know", GENEROUS, || async { left(&survivor).await.map_err(|s| s.to_string()) });
    let left = left.await.expect("known");
    assert!((TTL - 4..=TTL).contains(&left), "{left} of {TTL} s are left");
    assert_eq!(renew(&survivor).await.expect("renewed"), TTL);
    nobody_panicked(layout);
}
