//! A leader dies while the cluster changes its version, or while its gate waits for somebody: whoever leads next looks at what is,
//! and goes on from there (KEP-4647, "Consensus Algorithm").

use std::{
    fs,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
    thread::{self, JoinHandle},
    time::Instant,
};

use proto::ClusterVersion;
use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Layout, Spec},
    etcdctl::Etcdctl,
    process::Process,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

use crate::{
    QUICK,
    downgrade::downgrade,
    members::{add, start, without_the_last},
    nobody_panicked,
    trial::one_state,
    up,
};

const V3_6: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
const V3_7: ClusterVersion = ClusterVersion { major: 3, minor: 7 };
const DECIDES: &str = r#""msg":"decides""#;
/// What a leader proposes, in the order in which a change of version has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Reset,
    SetVersion,
    Decide,
}

impl Step {
    const ALL: [Self; 3] = [Self::Reset, Self::SetVersion, Self::Decide];

    fn of(line: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| line.contains(DECIDES) && line.contains(&format!("{step:?} {{")))
    }
}

/// The gate of each member: decided, and with these names on.
pub async fn decided(cluster: &Cluster, version: ClusterVersion) -> Vec<String> {
    cluster.settled(version).await.expect("settled");
    let look = || async {
        let mut all = Vec::new();
        for member in &cluster.layout.members {
            let client = cluster.layout.client(member).map_err(|error| error.to_string())?;
            let page = client.metrics().await.map_err(|error| error.to_string())?;
            if page.figure("etcd_cluster_feature_undecided").map_err(|error| error.to_string())? != 0.0 {
                return Err(format!("{} is undecided", member.name));
            }
            let enabled = page.family("etcd_cluster_feature_enabled");
            let on = enabled.iter().filter(|(_, on)| **on == 1.0);
            all.push(on.map(|(name, _)| name["name=\"".len()..name.len() - 1].to_owned()).collect::<Vec<_>>());
        }
        let is_one = all.windows(2).all(|pair| pair[0] == pair[1]);
        if is_one { Ok(all.swap_remove(0)) } else { Err(format!("{all:?}")) }
    };
    wait::until("every member to have the same gate", GENEROUS, look).await.expect("decided")
}

/// Ends this process as soon as the log says that a leader proposes this.
fn ends_at(log: PathBuf, step: Step, process: Process) -> JoinHandle<()> {
    let mut news = fs::File::open(log).expect("a log");
    news.seek(SeekFrom::End(0)).expect("its end");
    thread::spawn(move || {
        let (since, mut said) = (Instant::now(), String::new());
        // Without a pause: it may be a matter of microseconds.
        while !said.lines().any(|line| Step::of(line) == Some(step)) {
            assert!(since.elapsed() < GENEROUS, "it never came to {step:?}: {said}");
            news.read_to_string(&mut said).expect("it can be read");
        }
        process.signal(Signal::KILL).expect("killed");
        process.ended(GENEROUS).expect("dead");
    })
}

/// What is on at this version, where all run 3.7. The counters are on by default from 3.6.1 on.
fn on_at(version: ClusterVersion) -> &'static [&'static str] {
    if version == V3_7 { &["ClusterCounters", "ClusterLeaseCheckpoint"] } else { &["ClusterCounters"] }
}

/// It dies as it proposes each step of a change of version: what it proposed is lost, or committed, or all that follows is, too.
#[tokio::test(flavor = "multi_thread")]
async fn wherever_a_leader_dies_the_next_one_comes_to_the_same_gate() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let Some(cluster) = up("3.7", &QUICK).await else { return };
    decided(&cluster, V3_7).await;
    let (etcdctl, layout) = (etcd.bin.join("etcdctl"), &cluster.layout);
    for step in Step::ALL {
        for (change, to) in [(&["enable", "3.6.0"][..], V3_6), (&["cancel"], V3_7)] {
            let leader = layout.leader().await.expect("a leader").clone();
            let follower = layout.members.iter().find(|member| member.name != leader.name).expect("three");
            let ending = ends_at(leader.log(), step, leader.process().expect("it runs"));
            // Who asks may not be told the outcome: what it asks for is in the log before any of these steps.
            let _ = downgrade(&etcdctl, follower, change);
            ending.join().expect("killed");
            leader.start().expect("started");
            cluster.ready().await.expect("it is back");
            assert_eq!(decided(&cluster, to).await, on_at(to), "after a death at {step:?}");
            one_state(&cluster).await;
        }
    }
    nobody_panicked(layout);
}

/// Five of six have said what they want when the leader dies: who leads next decides when the sixth has, without the dead one.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_leads_next_decides_when_the_last_member_has_spoken() {
    let (Some(build), Some(etcd)) = (build_or_skip(System::Node, "3.6"), build_or_skip(System::Etcd, "3.6")) else {
        return;
    };
    let etcdctl = Etcdctl::new(&etcd, None);
    let flags = QUICK.into_iter().chain(["--cluster-feature-gates=ClusterLeaseCheckpoint=true"]);
    let flags = flags.map(String::from).collect();
    let spec = Spec { flags, size: 6, tls: false, ..Spec::new(build) };
    let (mut cluster, mut sixth) = without_the_last(&spec);
    cluster.begin().await.expect("up");
    let on = decided(&cluster, V3_6).await;
    assert_eq!(on, ["ClusterLeaseCheckpoint"]);
    add(&etcdctl, &cluster.layout, &mut sixth, &[]).await;
    is_undecided(&cluster.layout).await;
    let leader = cluster.layout.leader().await.expect("a leader").clone();
    leader.end(Signal::KILL).expect("killed");
    cluster.layout.members.retain(|member| member.name != leader.name);
    cluster.ready().await.expect("another one leads");
    is_undecided(&cluster.layout).await;
    start(&mut cluster, sixth).await;
    assert_eq!(decided(&cluster, V3_6).await, on);
    leader.start().expect("started");
    cluster.layout.members.push(leader);
    cluster.ready().await.expect("six");
    assert_eq!(decided(&cluster, V3_6).await, on);
    one_state(&cluster).await;
    nobody_panicked(&cluster.layout);
}

async fn is_undecided(layout: &Layout) {
    for member in &layout.members {
        let client = layout.client(member).expect("a client");
        wait::until(&format!("{} to wait for a decision", member.name), GENEROUS, || async {
            match client.metric("etcd_cluster_feature_undecided").await {
                Ok(1.0) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
        .expect("undecided");
    }
}
