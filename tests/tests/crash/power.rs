//! A host loses its power: the agent and its member are gone at once, and so is all that was not synced.
//!
//! All that a host has (data, binaries, symlink, state directory) is on a file system of its own, which is
//! shut down in the middle of a step and mounted again. This does not model a disk whose own cache lies.

use rustix::process::Signal;
use tests::{
    case::Case, fault::Moment, journal::last_entry, mounted::Mounted, on_both, rollout::Rollout, skip::skip,
    system::System,
};

use crate::kill::{held_at, journal, kill_at};

on_both! {
    a_host_that_lost_its_power_in_a_step_is_finished_by_the_same_command, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: two more upgrades"]
    a_host_that_lost_its_power_at_other_records_is_finished_by_the_same_command;
}

/// Sparse: two releases, their logs, and room.
const SIZE: u64 = 1 << 30;

/// The power goes at the nth journal record; the host boots, and the same command is typed.
async fn loses_power(rollout: &Rollout, index: usize, nth: usize, moment: Moment, disk: &Mounted) {
    // Before: written, not synced, and the agent dead. After: it is stopped there, so that it does nothing more.
    let stopped = match moment {
        Moment::Before => {
            kill_at(rollout, index, nth, moment).await.expect("killed in its step");
            None
        }
        Moment::After => Some(held_at(rollout, index, nth).await),
    };
    disk.lose_power().expect("the power is gone");
    drop(stopped);
    rollout.member(index).end(Signal::KILL).expect("gone with the power");
    disk.power_on().expect("it boots");
    println!("power lost {moment:?} record {nth}, last record: {}", last_entry(&journal(rollout, index)));
    rollout.one("run", index).await.must_succeed();
}

async fn power_is_lost(system: System, boundaries: [(usize, Moment); 3]) {
    let home = tempfile::Builder::new().prefix("baton-").tempdir().expect("a folder");
    let mut disks = Vec::new();
    for index in 1..=3 {
        let (folder, image) = (home.path().join(format!("m{index}")), home.path().join(format!("disk-{index}")));
        match Mounted::ext4(&folder, &image, SIZE) {
            Ok(disk) => disks.push(disk),
            Err(error) => return skip(&format!("no ext4 image can be mounted: {error}")),
        }
    }
    let Some(case) = Case::with(system, |spec| spec.dir = Some(home.path().into())).await else { return };
    let rollout = case.begin().await;
    disks.iter().for_each(|disk| disk.sync().expect("synced"));
    let [first, second, third] = boundaries;
    tokio::join!(
        loses_power(&rollout, 0, first.0, first.1, &disks[0]),
        loses_power(&rollout, 1, second.0, second.1, &disks[1]),
        loses_power(&rollout, 2, third.0, third.1, &disks[2]),
    );
    rollout.done().await;
}

async fn a_host_that_lost_its_power_in_a_step_is_finished_by_the_same_command(system: System) {
    power_is_lost(system, [(2, Moment::After), (3, Moment::After), (4, Moment::After)]).await;
}

async fn a_host_that_lost_its_power_at_other_records_is_finished_by_the_same_command(system: System) {
    power_is_lost(system, [(1, Moment::After), (3, Moment::Before), (4, Moment::Before)]).await;
    power_is_lost(system, [(5, Moment::After), (2, Moment::Before), (5, Moment::Before)]).await;
}
