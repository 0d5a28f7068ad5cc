//! SIGKILL at every journal boundary of the two ways back: `agent rollback`, and a new binary that fails.
//!
//! Within a minor, so that one cluster goes there and back for each boundary, and no version polls are
//! waited for. Of etcd alone: no minor of the bundled node has two releases.

use tests::{case::Case, rollout::Rollout, sick::Illness, system::System};

use crate::{
    boundary::{a_sixth, are_all_stages, boundary},
    is_finished,
    kill::kill_verb_at,
};

const SICK: &str = env!("CARGO_BIN_EXE_sick-member");
const ALONE: &str = "join_window: 100ms";

/// Another patch, where one cluster can go there and back as often as it takes.
async fn rollout() -> Option<Rollout> {
    Some(Case::path(System::Etcd, ("3.5.1", "3.5"), |_| {}).await?.strategy(&[ALONE]).begin().await)
}

async fn runs(rollout: &Rollout, index: usize, release: &str) {
    let said = rollout.client(index).versions().await.expect("an answer").server;
    assert_eq!(said, release, "{}", rollout.member(index).name);
}

/// In the end everybody goes forward, together and with a sound release.
async fn all_go(mut rollout: Rollout) {
    rollout.upgrade.strategy.retain(|line| line != ALONE);
    rollout.write();
    is_finished(rollout).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: minutes; a member that is put back is cut at the same stages by default"]
async fn a_rollback_killed_at_any_journal_boundary_is_finished_by_the_same_command() {
    let Some(rollout) = rollout().await else { return };
    let [old, new] = [&rollout.from, &rollout.to].map(|build| build.release.to_string());
    let mut seen = Vec::new();
    for number in 0.. {
        rollout.one("run", 0).await.must_succeed();
        runs(&rollout, 0, &new).await;
        let (nth, moment) = boundary(number);
        let killed = kill_verb_at(&rollout, "rollback", 0, nth, moment).await;
        let Ok(killed) = killed else {
            killed.expect_err("it ended").must_succeed();
            println!("{number} rollbacks were killed at a boundary of their journals");
            break;
        };
        rollout.one("rollback", 0).await.must_succeed();
        runs(&rollout, 0, &old).await;
        seen.push(killed);
    }
    are_all_stages(&seen, &["planned", "stopping back", "switched back", "starting back", "done back"]);
    all_go(rollout).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_new_binary_fails_is_put_back_though_its_agent_is_killed_at_a_sixth_of_the_boundaries() {
    put_back_though_killed(a_sixth(), 6).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: minutes; a sixth of the boundaries, each time another, by default"]
async fn so_is_one_whose_agent_is_killed_at_any_boundary() {
    let seen = put_back_though_killed(0, 1).await;
    if !seen.is_empty() {
        are_all_stages(&seen, &["starting forward", "stopping back", "switched back", "starting back", "done back"]);
    }
}

/// The stages at which the agent was killed, from this boundary on, and then so many further; empty where the test was skipped.
async fn put_back_though_killed(first: usize, step: usize) -> Vec<String> {
    let Some(rollout) = rollout().await else { return Vec::new() };
    let old = rollout.from.release.to_string();
    rollout.write_one(0, &rollout.sick(SICK, Illness::Exits));
    let mut seen = Vec::new();
    for number in (first..).step_by(step) {
        let (nth, moment) = boundary(number);
        let (killed, ended) = match kill_verb_at(&rollout, "run", 0, nth, moment).await {
            Ok(killed) => (Some(killed), rollout.one("run", 0).await),
            Err(ended) => (None, ended),
        };
        ended.must_be(1, "put_back");
        runs(&rollout, 0, &old).await;
        match killed {
            Some(killed) => seen.push(killed),
            None => {
                println!("{} boundaries of the journal were reached, of them every {step}th", number - first);
                break;
            }
        }
    }
    all_go(rollout).await;
    seen
}
