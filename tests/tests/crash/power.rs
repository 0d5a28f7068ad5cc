//! A host loses its power: the agent and its member are gone at once, and so is all that was not synced.
//!
//! All that a host has (data, binaries, symlink, state directory) is on a file system of its own, which is
//! shut down in the middle of a step and mounted again. This does not model a disk whose own cache lies.

use rustix::process::Signal;
use tests::{agent::Agent, cluster::Spec, fault::Moment, skip::skip};

use crate::{
    mounted::Mounted,
    rollout::{Change, LIMIT, Rollout, last_entry},
};

/// Sparse: two releases of etcd, their write-ahead logs, and room.
const SIZE: u64 = 1 << 30;

impl Rollout {
    /// The power goes at the nth journal record; the host boots, and the same command is typed.
    async fn loses_power(&self, index: usize, nth: usize, moment: Moment, disk: &Mounted) {
        match moment {
            // Written, not synced, and the agent dead: then the power goes.
            Moment::Before => {
                self.kill_at(index, nth, moment).await.expect("killed in its step");
                disk.lose_power().expect("the power is gone");
            }
            Moment::After => self.stands_until_the_power_goes(index, nth, disk).await,
        }
        self.member(index).end(Signal::KILL).expect("gone with the power");
        disk.power_on().expect("it boots");
        println!("power lost {moment:?} record {nth}, last record: {}", last_entry(&self.journal(index)));
        self.run(index).await.must_succeed();
    }

    /// The agent is stopped right after its record is on disk, so that it does nothing more.
    async fn stands_until_the_power_goes(&self, index: usize, nth: usize, disk: &Mounted) {
        let cut = self.cut(index, nth, Moment::After);
        let agent = Agent::start_under("run", &self.playbooks[index], &[], |argv| cut.wrap(&argv)).expect("an agent");
        let process = agent.process().expect("it runs");
        let held = tokio::task::spawn_blocking(move || cut.hold(&process, LIMIT)).await.expect("no panic");
        assert!(held.expect("held"), "in its step");
        disk.lose_power().expect("the power is gone");
        drop(agent);
    }
}

async fn power_is_lost(boundaries: [(usize, Moment); 3]) {
    let Some(change) = Change::of_minor() else { return };
    let home = tempfile::Builder::new().prefix("baton-").tempdir().expect("a folder");
    let mut disks = Vec::new();
    for index in 1..=3 {
        let (folder, image) = (home.path().join(format!("m{index}")), home.path().join(format!("disk-{index}")));
        match Mounted::ext4(&folder, &image, SIZE) {
            Ok(disk) => disks.push(disk),
            Err(error) => return skip(&format!("no ext4 image can be mounted: {error}")),
        }
    }
    let spec = Spec { dir: Some(home.path().into()), ..Spec::new(change.from.clone()) };
    let rollout = Rollout::begin_on(spec, &change.to, &[]).await;
    disks.iter().for_each(|disk| disk.sync().expect("synced"));
    let [first, second, third] = boundaries;
    tokio::join!(
        rollout.loses_power(0, first.0, first.1, &disks[0]),
        rollout.loses_power(1, second.0, second.1, &disks[1]),
        rollout.loses_power(2, third.0, third.1, &disks[2]),
    );
    rollout.end_one_at_a_time().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_lost_its_power_in_a_step_is_finished_by_the_same_command() {
    power_is_lost([(2, Moment::After), (3, Moment::After), (4, Moment::After)]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: two more upgrades"]
async fn a_host_that_lost_its_power_at_other_records_is_finished_by_the_same_command() {
    power_is_lost([(1, Moment::After), (3, Moment::Before), (4, Moment::Before)]).await;
    power_is_lost([(5, Moment::After), (2, Moment::Before), (5, Moment::Before)]).await;
}
