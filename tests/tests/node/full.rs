//! A member's disk runs full: it stops rather than acknowledge what it cannot keep, the others go on, and with space it is
//! back.

use std::fs;

use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Member, Spec},
    mounted::Mounted,
    skip::{build_or_skip, skip},
    system::System,
    wait::{self, GENEROUS},
};

use crate::{QUICK, nobody_panicked, trial::agreed};

/// Room for a segment of the log and a half.
const SIZE: usize = 24 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_one_member_and_loses_nothing() {
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let flags = QUICK.map(String::from).into();
    let cluster = Cluster::laid_out(&Spec { flags, ..Spec::new(build) }).expect("laid out");
    // The leader's disk and a follower's, one after the other.
    let mut disks = Vec::new();
    for member in &cluster.layout.members {
        match Mounted::tmpfs(&member.dir.join("data"), SIZE) {
            Ok(disk) => disks.push(disk),
            Err(error) => return skip(&format!("no tmpfs can be mounted: {error}")),
        }
    }
    cluster.begin().await.expect("up");
    let mut written = 0;
    for leads in [true, false] {
        let leader = cluster.layout.leader().await.expect("a leader").name.clone();
        let chosen = cluster.layout.members.iter().position(|member| (member.name == leader) == leads);
        let chosen = chosen.expect("there is one");
        let member = &cluster.layout.members[chosen];
        disks[chosen].fill().expect("full");
        // The one that led may be the follower that is chosen next, and has said something before.
        let before = fs::metadata(member.log()).expect("a log").len() as usize;
        written = write_until_it_ends(&cluster, chosen, written).await;
        let log = fs::read(member.log()).expect("a log");
        let log = String::from_utf8_lossy(&log[before..]);
        let said: Vec<_> = log.lines().filter(|line| line.contains("No space left on device")).collect();
        println!("{}", said.join("\n"));
        let last = said.last().expect("it says why");
        assert!(last.starts_with("error: this member cannot go on: ") && last.contains("data/wal/"), "{last}");
        assert!(said.len() < 10, "one clear error, not one for each call: {} lines", said.len());
        disks[chosen].make_space().expect("space");
        member.start().expect("started");
        cluster.ready().await.expect("it is back");
    }
    let client = cluster.layout.client(&cluster.layout.members[0]).expect("a client");
    for number in 0..written {
        assert!(client.get(&format!("k{number}")).await.expect("answered").is_some(), "k{number} of {written}");
    }
    agreed(&cluster).await;
    nobody_panicked(&cluster.layout);
    cluster.layout.members.iter().for_each(|member| member.end(Signal::KILL).expect("killed"));
    // Unmounted first: with them in it the cluster's folder could not be removed.
    drop(disks);
}

/// Writes through the others until this one has ended; how many are written in all.
async fn write_until_it_ends(cluster: &Cluster, chosen: usize, from: usize) -> usize {
    let others: Vec<_> = cluster.layout.members.iter().enumerate().filter(|(at, _)| *at != chosen).collect();
    let client = |member: &Member| cluster.layout.client(member).expect("a client");
    let others: Vec<_> = others.into_iter().map(|(_, member)| client(member)).collect();
    // Space that was zeroed before is not asked for again: it takes 1 MiB or more.
    let value = "x".repeat(64 << 10);
    let mut number = from;
    let member = &cluster.layout.members[chosen];
    while member.is_running() && number < from + 64 {
        let key = format!("k{number}");
        let put = others[number % 2].put(&key, &value).await;
        assert!(put.is_ok(), "{key}: {put:?}");
        number += 1;
    }
    wait::until("the member to end", GENEROUS, || async {
        if member.is_running() { Err(member.last_words()) } else { Ok(()) }
    })
    .await
    .expect("it cannot go on");
    number
}
