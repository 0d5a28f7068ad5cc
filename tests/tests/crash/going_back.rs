//! SIGKILL at every journal boundary of the two ways back: `agent rollback`, and a new binary that fails.
//!
//! Within a minor, so that one cluster goes there and back for each boundary, and no version polls are
//! waited for.

use std::{collections::BTreeSet, path::Path};

use tests::{
    agent::Agent,
    sick::{self, Illness},
};

use crate::{
    boundary::boundary,
    rollout::{Change, LIMIT, Rollout, playbooks},
};

const SICK: &str = env!("CARGO_BIN_EXE_sick-etcd");
const ALONE: &[&str] = &["gather: 100ms"];

impl Rollout {
    async fn runs(&self, index: usize, release: &str) {
        let said = self.client(index).versions().await.expect("an answer").server;
        assert_eq!(said, release, "{}", self.member(index).name);
    }

    async fn rolls_back(&self, index: usize) {
        let agent = Agent::start("rollback", &self.playbooks[index], &[]).expect("an agent");
        agent.ended(LIMIT).await.expect("an end").must_succeed();
    }
}

/// Every stage of going back was among them.
fn are_all_stages(seen: &BTreeSet<String>, stages: &[&str]) {
    for stage in stages {
        assert!(seen.iter().any(|entry| entry.starts_with(stage)), "none was killed at {stage}: {seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_killed_at_any_journal_boundary_is_finished_by_the_same_command() {
    let Some(change) = Change::of_patch() else { return };
    let (old, new) = (change.from.release.to_string(), change.to.release.to_string());
    let mut rollout = Rollout::begin(&change, ALONE).await;
    let mut seen = BTreeSet::new();
    for number in 0.. {
        rollout.run(0).await.must_succeed();
        rollout.runs(0, &new).await;
        let (nth, moment) = boundary(number);
        let killed = rollout.kill_verb_at("rollback", 0, nth, moment).await;
        let Ok(killed) = killed else {
            killed.expect_err("it ended").must_succeed();
            println!("{number} rollbacks were killed at a boundary of their journals");
            break;
        };
        println!("killed {moment:?} fsync {nth}, last record: {}", killed.last);
        rollout.rolls_back(0).await;
        rollout.runs(0, &old).await;
        seen.insert(killed.last);
    }
    are_all_stages(&seen, &["planned", "stopping back", "switched back", "starting back", "done back"]);
    rollout.playbooks = playbooks(&rollout.cluster, &change.to, &change.to.executable(), &[]);
    rollout.run_everywhere().await;
    rollout.end_one_at_a_time().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_new_binary_fails_is_put_back_though_its_agent_is_killed_at_any_boundary() {
    let Some(change) = Change::of_patch() else { return };
    let old = change.from.release.to_string();
    let mut rollout = Rollout::begin(&change, ALONE).await;
    let file = rollout.cluster.layout.dir.join("sick");
    let sick = sick::make(Path::new(SICK), &change.to, Illness::Exits, &file).expect("an executable");
    rollout.playbooks = playbooks(&rollout.cluster, &change.to, &sick, ALONE);
    let mut seen = BTreeSet::new();
    for number in 0.. {
        let (nth, moment) = boundary(number);
        let (killed, ended) = match rollout.kill_verb_at("run", 0, nth, moment).await {
            Ok(killed) => (Some(killed), rollout.run(0).await),
            Err(ended) => (None, ended),
        };
        let last = killed.as_ref().map(|killed| killed.last.as_str());
        println!("killed {moment:?} fsync {nth}, last record: {last:?}");
        assert_eq!((ended.exit, ended.reason()), (Some(1), "put_back"), "{last:?}: {ended}");
        rollout.runs(0, &old).await;
        match killed {
            Some(killed) => drop(seen.insert(killed.last)),
            None => {
                println!("{number} agents were killed at a boundary of their journals");
                break;
            }
        }
    }
    are_all_stages(&seen, &["starting forward", "stopping back", "switched back", "starting back", "done back"]);
    rollout.playbooks = playbooks(&rollout.cluster, &change.to, &change.to.executable(), &[]);
    rollout.run_everywhere().await;
    rollout.end_one_at_a_time().await;
}
