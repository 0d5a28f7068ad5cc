//! A member that was away for longer than the log goes back is sent a snapshot, and one that is damaged ends nobody.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Signal;
use tests::{
    cluster::Member,
    wait::{self, GENEROUS},
    workload::{Load, Workload},
};

use crate::{QUICK, nobody_panicked, trial::agreed, up};

/// Entries that stay in the log behind a snapshot (etcd, `SnapshotCatchUpEntries`), and some more.
const AWAY: u64 = 5_600;

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_was_away_for_long_is_sent_a_snapshot() {
    let flags = [&QUICK[..], &["--snapshot-count=100"]].concat();
    let Some(cluster) = up("3.6", &flags).await else { return };
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader").name.clone();
    let (away, others): (Vec<_>, Vec<_>) = layout.members.iter().rev().partition(|member| {
        let first = layout.members.iter().rev().find(|member| member.name != leader);
        first.is_some_and(|first| first.name == member.name)
    });
    let away = away[0];
    away.end(Signal::KILL).expect("killed");
    let endpoints: Vec<_> = others.iter().map(|member| member.client_url.clone()).collect();
    let load = Load { clients: 64, pause: Duration::ZERO, patience: Duration::from_secs(5), ..Load::default() };
    let load = Workload::start(&endpoints, &layout.access(), &load).expect("clients");
    load.more(AWAY).await.expect("written");
    let took_in = |member: &Member| fs::read_to_string(member.log()).expect("a log").contains("takes in a snapshot");
    assert!(!took_in(away), "until now it followed the log");
    away.start().expect("started");
    // With the load under way: what comes after the snapshot has to follow it.
    wait::until("it to be sent a snapshot", GENEROUS, || async {
        if took_in(away) { Ok(()) } else { Err(away.last_words()) }
    })
    .await
    .expect("sent");
    load.more(200).await.expect("the load goes on");
    // As etcd says it.
    let said = |member: &Member, words: &str| {
        fs::read_to_string(member.log()).expect("a log").contains(&format!(r#""msg":"{words}""#))
    };
    wait::until("it to be put to use", GENEROUS, || async {
        if said(away, "applied snapshot") { Ok(()) } else { Err(away.last_words()) }
    })
    .await
    .expect("applied");
    assert!(others.iter().all(|member| said(member, "saved snapshot to disk") && !said(member, "applied snapshot")));
    wait::until("whoever sent it to say so", GENEROUS, || async {
        let is_sender =
            |member: &&&Member| said(member, "sent database snapshot") && said(member, "sending database snapshot");
        others.iter().find(is_sender).map(drop).ok_or_else(|| "nobody".to_owned())
    })
    .await
    .expect("sent");
    let outcome = load.finish().expect("the clients live");
    cluster.ready().await.expect("it is back");
    agreed(&cluster).await;
    let verified = outcome.verify(&layout.endpoints(), &layout.access()).await.expect("every member answers");
    assert!(verified.lost.is_empty(), "lost: {:?}", verified.lost);
    verified.history.expect("linearizable");
    nobody_panicked(layout);
}

/// The follower takes nothing of it and tells the leader, which names the file, and takes a new snapshot. Wherever it is
/// damaged: in its head, in the state, at its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_snapshot_of_the_leader_ends_nobody_and_is_replaced() {
    let flags = [&QUICK[..], &["--snapshot-count=50", "--snapshot-catchup-entries=1"]].concat();
    let Some(cluster) = up("3.6", &flags).await else { return };
    let layout = &cluster.layout;
    let [others @ .., away] = &layout.members[..] else { panic!("three members") };
    let client = layout.client(&others[0]).expect("a client");
    let (mut rounds, mut places) =
        (0.., ["in its head", "in the middle", "at its end"].into_iter().enumerate().peekable());
    while let Some((which, place)) = places.peek().copied() {
        let round = rounds.next().expect("they do not end");
        assert!(round < 20, "{place}: no snapshot is needed");
        agreed(&cluster).await;
        away.end(Signal::KILL).expect("killed");
        let before: Vec<_> = others.iter().map(newest).collect();
        for number in 0..60 {
            client.put(&format!("{round}-{number}"), "v").await.expect("two of three are there");
        }
        wait::until("new snapshots, and none under way", GENEROUS, || async {
            for (member, before) in others.iter().zip(&before) {
                let status = layout.client(member).map_err(|error| error.to_string())?.status().await;
                let applied = status.map_err(|status| status.to_string())?.raft_applied_index;
                let taken = newest(member);
                if taken == *before || applied >= taken.as_deref().map_or(0, index_of) + 50 {
                    return Err(format!("{taken:?}, and entry {applied} is applied"));
                }
            }
            Ok(())
        })
        .await
        .expect("taken");
        let before: Vec<_> = others.iter().map(|member| text(member).len()).collect();
        // Either may lead by then.
        for member in others {
            let damaged = newest(member).expect("a snapshot");
            let length = fs::metadata(&damaged).expect("there").len() as usize;
            flip_a_bit(&damaged, [2, length / 2, length - 1][which]);
        }
        let mine = text(away).len();
        away.start().expect("started");
        cluster.ready().await.expect("it is back");
        agreed(&cluster).await;
        if !text(away)[mine..].contains("takes in a snapshot") {
            // Where the leader was about to send them, openraft keeps entries for longer than it says.
            continue;
        }
        places.next();
        let said: String =
            others.iter().zip(before).map(|(member, before)| text(member)[before..].to_owned()).collect();
        assert!(said.contains("damaged") && said.contains(".snap"), "{place}: {said}");
    }
    nobody_panicked(layout);
}

fn newest(member: &Member) -> Option<PathBuf> {
    let entries = fs::read_dir(member.dir.join("data/snap")).expect("a folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|suffix| suffix == "snap")).max()
}

/// The last entry that a snapshot holds the outcome of, which its name begins with.
fn index_of(snapshot: &Path) -> u64 {
    let name = snapshot.file_name().expect("a name").to_string_lossy();
    u64::from_str_radix(name.split('-').next().expect("an index"), 16).expect("in hexadecimal digits")
}

fn flip_a_bit(file: &Path, at: usize) {
    let mut bytes = fs::read(file).expect("readable");
    bytes[at] ^= 1;
    fs::write(file, bytes).expect("writable");
}

fn text(member: &Member) -> String {
    fs::read_to_string(member.log()).expect("a log")
}
