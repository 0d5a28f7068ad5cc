//! All members are killed at once, again and again, at moments that nobody chose.

use std::time::Duration;

use rustix::process::Signal;
use tests::{chance::Chance, cluster::Member, process::Process, wait::GENEROUS};

use crate::{QUICK, trial::Trial, up};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_every_process_ten_times() {
    rounds(10).await;
}

#[ignore = "slow: a hundred times, and a cluster that starts each time"]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_every_process_a_hundred_times() {
    rounds(100).await;
}

async fn rounds(count: usize) {
    let mut chance = Chance::of_this_run();
    let flags = [&QUICK[..], &["--snapshot-count=300"]].concat();
    let Some(cluster) = up("3.6", &flags).await else { return };
    let trial = Trial::begin(cluster).await;
    let members = &trial.cluster.layout.members;
    let mut processes: Vec<_> = members.iter().filter_map(Member::process).collect();
    for round in 0..count {
        // One in four is killed while it starts, the others with the load under way.
        if chance.below(4) > 0 {
            let writes = 1 + chance.below(100);
            let more = trial.load.more(writes).await;
            assert!(more.is_ok(), "round {round}: {more:?}");
        }
        tokio::time::sleep(Duration::from_micros(chance.below(60_000))).await;
        for (member, process) in members.iter().zip(&processes) {
            assert!(process.is_alive(), "round {round}: {} has ended by itself: {}", member.name, member.last_words());
        }
        kill_at_once(&processes);
        processes = members.iter().map(|member| member.start().expect("started")).collect();
    }
    trial.end().await;
}

fn kill_at_once(processes: &[Process]) {
    processes.iter().for_each(|process| process.signal(Signal::KILL).expect("killed"));
    processes.iter().for_each(|process| process.ended(GENEROUS).expect("gone"));
}
