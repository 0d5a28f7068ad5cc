//! The state directory's file system runs full, at every stage of a step.

use tests::{
    agent::Agent,
    fault::{self, Moment, Unwritable},
    skip::skip,
};

use crate::{
    mounted::Mounted,
    rollout::{Change, LIMIT, Rollout},
};

/// Room for the state directory, and little more.
const SIZE: usize = 64 << 10;

impl Rollout {
    /// Runs the agent on a disk that is full from its nth journal record on; then again, with space.
    async fn runs_full(&self, index: usize, nth: usize, disk: &Mounted) {
        let cut = self.cut(index, nth, Moment::After);
        let agent = Agent::start_under("run", &self.playbooks[index], &[], |argv| cut.wrap(&argv)).expect("an agent");
        let (process, ours) = (agent.process().expect("it runs"), agent.process().expect("it runs"));
        let held = tokio::task::spawn_blocking(move || cut.hold(&process, LIMIT)).await.expect("no panic");
        assert!(held.expect("held"), "in the middle of its step");
        disk.fill().expect("full");
        fault::thaw(&ours).expect("thawed");
        let ended = agent.ended(LIMIT).await.expect("an end");
        println!("full from record {nth} on: {}", ended.to_string().lines().next().unwrap_or_default());
        self.cluster.ready().await.expect("every member serves");
        disk.make_space().expect("space");
        self.run(index).await.must_succeed();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_every_member_serving_and_the_same_command_goes_on_with_space() {
    let Some(change) = Change::of_minor() else { return };
    for stages in [[1, 2, 3], [4, 5, 1]] {
        let rollout = Rollout::begin(&change, &["gather: 1s"]).await;
        let mut disks = Vec::new();
        for index in 0..3 {
            match Mounted::tmpfs(&rollout.state_dir(index), SIZE) {
                Ok(disk) => disks.push(disk),
                Err(error) => return skip(&format!("no tmpfs can be mounted: {error}")),
            }
        }
        disks[0].fill().expect("full");
        let ended = rollout.run(0).await;
        assert_eq!(ended.exit, Some(3), "a full disk at the start touches nothing: {ended}");
        disks[0].make_space().expect("space");
        for (index, nth) in stages.into_iter().enumerate() {
            rollout.runs_full(index, nth, &disks[index]).await;
        }
        rollout.end_one_at_a_time().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_cannot_be_written_leaves_every_member_serving() {
    let Some(change) = Change::of_minor() else { return };
    let rollout = Rollout::begin(&change, &["gather: 1s"]).await;
    for (index, records) in [vec![1, 2, 3], vec![4], vec![5]].into_iter().enumerate() {
        for from in records {
            let (file, trace) = (rollout.journal(index), rollout.trace(index));
            let full = Unwritable { file, from, trace };
            let agent =
                Agent::start_under("run", &rollout.playbooks[index], &[], |argv| full.wrap(&argv)).expect("an agent");
            let ended = agent.ended(LIMIT).await.expect("an end");
            println!("no journal from record {from} on: {}", ended.to_string().lines().next().unwrap_or_default());
            assert!(ended.exit.is_some_and(|exit| exit != 0) && ended.reason() == "system", "{ended}");
            rollout.cluster.ready().await.expect("every member serves");
        }
        rollout.run(index).await.must_succeed();
    }
    rollout.end_one_at_a_time().await;
}
