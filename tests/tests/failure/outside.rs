//! What happens from outside while a run is under way: a member is killed, leadership moves.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    ended::all_must_be,
    on_both,
    rollout::{LIMIT, Rollout, all_end},
    system::System,
    wait,
};
use tokio::time::timeout;

on_both! {
    a_member_that_is_killed_in_anothers_step_is_started_by_its_own_agent, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: more than a minute; the model searches it by default"]
    leadership_that_keeps_moving_ends_no_run;
}

/// A run with a soak, so that there is time in the middle of the first step; and whose member went first.
async fn in_the_middle(system: System) -> Option<(Rollout, Vec<Agent>, usize)> {
    let mut case = Case::of(system).await?;
    case.upgrade.strategy = vec!["soak: 4s".into(), "join_window: 10s".into()];
    let rollout = case.begin().await;
    let agents = (0..3).map(|host| rollout.start(host)).collect();
    let new = rollout.to.release.to_string();
    let first = wait::until("a member to run the new release", LIMIT, || async {
        let said = rollout.layout().versions().await.map_err(|error| error.to_string())?;
        said.iter().position(|member| member.server == new).ok_or_else(|| format!("{said:?}"))
    });
    let first = first.await.expect("one goes first");
    Some((rollout, agents, first))
}

async fn all_done(rollout: Rollout, agents: Vec<Agent>) {
    all_must_be(&all_end(agents).await, 0, "done");
    rollout.done().await;
}

async fn a_member_that_is_killed_in_anothers_step_is_started_by_its_own_agent(system: System) {
    let Some((rollout, agents, first)) = in_the_middle(system).await else { return };
    let crashed = rollout.member((first + 1) % 3);
    let old = crashed.release().expect("it says");
    rollout.witness.has_looked();
    crashed.end(Signal::KILL).expect("killed");
    wait::until("the member to be started again", LIMIT, || async {
        crashed.is_running().then_some(()).ok_or_else(|| "it is down".to_owned())
    })
    .await
    .expect("its own agent waits, and looks after it");
    assert_eq!(crashed.release().expect("it says"), old, "started as it was, long before its turn");
    all_done(rollout, agents).await;
}

/// How long leadership may take to move.
const PATIENCE: Duration = Duration::from_secs(5);

async fn leadership_that_keeps_moving_ends_no_run(system: System) {
    let Some((rollout, agents, first)) = in_the_middle(system).await else { return };
    // Whoever leads, it moves on to the next, through every step of the run.
    let new = rollout.to.release.to_string();
    let (mut moved, mut target) = (0, first);
    let deadline = Instant::now() + LIMIT;
    while moved < 40 && Instant::now() < deadline {
        if rollout.layout().versions().await.is_ok_and(|said| said.iter().all(|member| member.server == new)) {
            break;
        }
        target = (target + 1) % 3;
        let (leader, target) = (rollout.client(rollout.leader().await), rollout.client(target));
        // A member that is being stopped may leave a call without an answer.
        let asked = timeout(PATIENCE, async {
            let id = target.status().await?.header.unwrap_or_default().member_id;
            leader.move_leader(id).await
        });
        moved += usize::from(asked.await.is_ok_and(|answer| answer.is_ok()));
        // Between two moves, as an impatient operator might.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(moved > 2, "leadership moved {moved} times");
    all_done(rollout, agents).await;
}
