//! The state directory's file system runs full, at every stage of a step.

use tests::{
    agent::Agent,
    fault::{self, Unwritable},
    mounted::Mounted,
    on_both,
    rollout::{Ends, Rollout},
    skip::skip,
    system::System,
};

use crate::{
    kill::{held_at, journal, trace},
    rollout,
};

on_both! {
    a_full_disk_leaves_every_member_serving_and_the_same_command_goes_on_with_space, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: three minutes; it is full from the first, third and fifth record on by default"]
    so_does_one_that_is_full_from_any_record_on;
    #[ignore = "slow: more than a minute; a full disk shows the same by default"]
    a_journal_that_cannot_be_written_leaves_every_member_serving;
}

/// Room for the state directory, and little more.
const SIZE: usize = 64 << 10;

/// Runs the agent on a disk that is full from its nth journal record on; then again, with space.
async fn runs_full(rollout: &Rollout, index: usize, nth: usize, disk: &Mounted) {
    let agent = held_at(rollout, index, nth).await;
    disk.fill().expect("full");
    fault::thaw(&agent.process().expect("it runs")).expect("thawed");
    let ended = agent.ends().await;
    println!("full from record {nth} on: {}", ended.to_string().lines().next().unwrap_or_default());
    rollout.cluster.ready().await.expect("every member serves");
    disk.make_space().expect("space");
    rollout.one("run", index).await.must_succeed();
}

async fn a_full_disk_leaves_every_member_serving_and_the_same_command_goes_on_with_space(system: System) {
    is_full_from(system, &[[1, 3, 5]]).await;
}

async fn so_does_one_that_is_full_from_any_record_on(system: System) {
    is_full_from(system, &[[1, 2, 3], [4, 5, 1]]).await;
}

/// A cluster for each: its disks are full from these records on.
async fn is_full_from(system: System, records: &[[usize; 3]]) {
    for stages in records {
        let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
        let mut disks = Vec::new();
        for index in 0..3 {
            match Mounted::tmpfs(&rollout.member(index).state_dir(), SIZE) {
                Ok(disk) => disks.push(disk),
                Err(error) => return skip(&format!("no tmpfs can be mounted: {error}")),
            }
        }
        disks[0].fill().expect("full");
        let ended = rollout.one("run", 0).await;
        assert_eq!(ended.exit, Some(3), "a full disk at the start touches nothing: {ended}");
        disks[0].make_space().expect("space");
        for (index, nth) in stages.iter().enumerate() {
            runs_full(&rollout, index, *nth, &disks[index]).await;
        }
        // Unmounted first: with them in it the cluster's folder could not be removed.
        drop(disks);
        rollout.done().await;
    }
}

async fn a_journal_that_cannot_be_written_leaves_every_member_serving(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    for (index, records) in [vec![1, 2, 3], vec![4], vec![5]].into_iter().enumerate() {
        for from in records {
            let (file, trace) = (journal(&rollout, index), trace(&rollout, index));
            let full = Unwritable { file, from, trace };
            let agent =
                Agent::start_under("run", &rollout.playbooks[index], &[], |argv| full.wrap(&argv)).expect("an agent");
            let ended = agent.ends().await;
            println!("no journal from record {from} on: {}", ended.to_string().lines().next().unwrap_or_default());
            assert!(ended.exit.is_some_and(|exit| exit != 0) && ended.reason() == "system", "{ended}");
            rollout.cluster.ready().await.expect("every member serves");
        }
        rollout.one("run", index).await.must_succeed();
    }
    rollout.done().await;
}
