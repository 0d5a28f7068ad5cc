//! What befalls hosts while a rollout runs: a link that is cut or slow, a disk that is full, a host that is gone for a
//! while, and agents that are killed again and again.

use std::{fs, time::Duration};

use rustix::process::Signal;
use tests::{
    chance::Chance,
    ended::{Ended, all_must_be},
    on_both,
    system::System,
};

use crate::{
    fleet::{Fleet, HOLD_STOP},
    run::{Run, all_end},
};

on_both! {
    a_host_cut_off_in_its_step_goes_on_when_it_is_back, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: a minute and a half; a host that is cut off is the harder case"]
    a_host_behind_a_slow_link_is_upgraded;
    #[ignore = "slow: more than a minute; a full disk is met without systemd by default"]
    a_host_whose_disk_is_full_in_its_step_goes_on_when_there_is_room;
    #[ignore = "slow: more than a minute; one that crashes in its own step comes back by default"]
    a_host_that_crashes_in_the_step_of_another_comes_back;
    #[ignore = "slow: two minutes; a host that crashes while its unit stops shows more"]
    agents_killed_at_any_moment_are_finished_by_the_same_command;
}

/// Agents on all hosts, and the first in the middle of its step, held where its member has ended.
async fn in_the_first_ones_step(fleet: &Fleet) -> Vec<Run> {
    fleet.hosts[0].write(HOLD_STOP, "").expect("written");
    let agents = (0..3).map(|index| fleet.start("run", index)).collect();
    fleet.until_it_is(&fleet.hosts[0], "stop-post").await;
    agents
}

fn let_go(fleet: &Fleet) {
    fs::remove_file(fleet.hosts[0].path(HOLD_STOP)).expect("removed");
}

fn all_must_succeed(agents: &[Ended]) {
    agents.iter().for_each(Ended::must_succeed);
}

/// Its member comes up and finds no quorum: systemd goes on starting it, and nobody ends it for that.
async fn a_host_cut_off_in_its_step_goes_on_when_it_is_back(system: System) {
    let Some(fleet) = Fleet::of(system).await else { return };
    let watched = fleet.begin().await;
    let agents = in_the_first_ones_step(&fleet).await;
    fleet.hosts[0].cut_off().expect("cut");
    let_go(&fleet);
    let state = if system == System::Etcd { "start" } else { "running" };
    fleet.until_it_is(&fleet.hosts[0], state).await;
    fleet.hosts[0].repair().expect("repaired");
    all_must_succeed(&all_end(agents).await);
    fleet.arrived().await;
    watched.end(1).await;
}

async fn a_host_behind_a_slow_link_is_upgraded(system: System) {
    let Some(fleet) = Fleet::of(system).await else { return };
    fleet.hosts[1].slow_down(1_000).expect("slow");
    let watched = fleet.begin().await;
    all_must_be(&fleet.all().await, 0, "done");
    fleet.arrived().await;
    fleet.hosts[1].speed_up().expect("fast");
    watched.end(1).await;
}

async fn a_host_whose_disk_is_full_in_its_step_goes_on_when_there_is_room(system: System) {
    let Some(fleet) = Fleet::of(system).await else { return };
    let host = &fleet.hosts[0];
    // A disk of its own for the binaries, with room for so many files.
    let own = "mkdir /mnt/own && mount -t tmpfs -o nr_inodes=100 own /mnt/own && cp -a /opt/member/. /mnt/own/ && \
               mount --bind /mnt/own /opt/member";
    host.must(&["sh", "-c", own]).expect("a disk");
    let watched = fleet.begin().await;
    let mut agents = in_the_first_ones_step(&fleet).await;
    let fill = "mkdir /mnt/own/ballast; for file in $(seq 200); do : >/mnt/own/ballast/$file; done";
    let filled = host.run(&["bash", "-c", fill]).expect("it is up");
    assert!(filled.stderr.contains("No space left"), "{filled:?}");
    let_go(&fleet);
    let first = agents.remove(0).ended().await;
    first.must_be(1, "step_failed");
    assert!(first.message().contains("No space left"), "{first}");
    fleet.serves().await;
    // The others wait for it to try again, and not for ever.
    all_end(agents).await;
    host.must(&["rm", "-r", "/mnt/own/ballast"]).expect("removed");
    all_must_succeed(&fleet.all().await);
    fleet.arrived().await;
    watched.end(1).await;
}

async fn a_host_that_crashes_in_the_step_of_another_comes_back(system: System) {
    let Some(fleet) = Fleet::of(system).await else { return };
    let watched = fleet.begin().await;
    let mut agents = in_the_first_ones_step(&fleet).await;
    fleet.hosts[2].crash().expect("a crash");
    drop(agents.pop());
    let_go(&fleet);
    fleet.hosts[2].boot().expect("a boot");
    agents.push(fleet.start("run", 2));
    // Whoever found the member gone for too long has said so.
    let ended = all_end(agents).await;
    if ended.iter().any(|agent| agent.exit != Some(0)) {
        all_must_succeed(&fleet.all().await);
    }
    fleet.arrived().await;
    // One by our hand, and the one that crashed meanwhile.
    watched.end(2).await;
}

async fn agents_killed_at_any_moment_are_finished_by_the_same_command(system: System) {
    let Some(fleet) = Fleet::of(system).await else { return };
    let watched = fleet.begin().await;
    let mut chance = Chance::of_this_run();
    let (mut kills, mut longest) = (0, 300);
    loop {
        let mut agents = Vec::new();
        for index in 0..3 {
            agents.push(fleet.start("run", index));
        }
        tokio::time::sleep(Duration::from_millis(chance.below(longest))).await;
        agents.iter().for_each(|agent| agent.signal(Signal::KILL));
        let ended = all_end(agents).await;
        kills += ended.iter().filter(|agent| agent.signal == Some(9)).count();
        if ended.iter().all(|agent| agent.exit == Some(0)) {
            break;
        }
        // Later from round to round, until they are through before it.
        longest += 300;
    }
    println!("{kills} agents were killed");
    fleet.arrived().await;
    watched.end(1).await;
}
