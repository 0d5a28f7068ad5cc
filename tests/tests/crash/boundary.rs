//! SIGKILL at every journal boundary, then the same command.
//!
//! Boundary N of an agent is the N-th fsync of its journal, and there it is killed once just before the
//! record is on disk and once just after. N rises until a run ends unkilled. Every member of a cluster has
//! an agent of its own that is killed, so that one upgrade or downgrade is cut at three boundaries.

use tests::{chance::Chance, fault::Moment, on_both, rollout::Rollout, system::System};

use crate::{downgrade, hops, kill::kill_at, rollout};

on_both! {
    an_agent_killed_at_a_sixth_of_its_journal_boundaries_is_finished_by_the_same_command, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: minutes; a sixth of the boundaries, each time another, by default"]
    so_is_one_killed_at_any_of_them;
    #[ignore = "slow: minutes; an upgrade is cut at the same stages by default"]
    so_is_one_that_goes_down_by_a_minor;
    so_is_one_at_some_on_its_way_over_two_minors, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: minutes; three of the boundaries, each time others, by default"]
    so_is_one_killed_at_any_of_them_on_its_way_over_two_minors;
}

/// Boundaries in their order: the first fsync, before and after it, the second, and so on.
pub fn boundary(number: usize) -> (usize, Moment) {
    (1 + number / 2, if number.is_multiple_of(2) { Moment::Before } else { Moment::After })
}

/// Every stage that is to be seen was among them.
pub fn are_all_stages(seen: &[String], stages: &[&str]) {
    for stage in stages {
        assert!(seen.iter().any(|entry| entry.starts_with(stage)), "none was killed at {stage}: {seen:?}");
    }
}

/// Kills this host's agent at a boundary, then runs the same command to its end.
async fn killed_and_run_again(rollout: &Rollout, index: usize, number: usize) -> Option<String> {
    let (nth, moment) = boundary(number);
    let killed = kill_at(rollout, index, nth, moment).await?;
    let ended = rollout.one("run", index).await;
    ended.must_succeed();
    assert!(!ended.warnings().contains("somebody else has started it"), "the agent that was killed has: {ended}");
    Some(killed)
}

/// Which of six sixths is chance, which `BATON_SEED` decides.
pub fn a_sixth() -> usize {
    Chance::of_this_run().below(6) as usize
}

async fn an_agent_killed_at_a_sixth_of_its_journal_boundaries_is_finished_by_the_same_command(system: System) {
    let killed = are_cut(3 * a_sixth(), 18, || rollout(system, &[])).await;
    assert!(killed.is_empty() || killed.len() >= 3, "few boundaries: {killed:?}");
}

async fn so_is_one_killed_at_any_of_them(system: System) {
    are_cut_everywhere(|| rollout(system, &[])).await;
}

async fn so_is_one_that_goes_down_by_a_minor(system: System) {
    are_cut_everywhere(|| downgrade(system)).await;
}

async fn so_is_one_at_some_on_its_way_over_two_minors(system: System) {
    let Some(rollout) = hops(system).await else { return };
    let killed = are_cut_from(rollout, 3 * Chance::of_this_run().below(12) as usize).await;
    println!("{} agents were killed at a boundary of their journals", killed.iter().flatten().count());
}

async fn so_is_one_killed_at_any_of_them_on_its_way_over_two_minors(system: System) {
    are_cut_everywhere(|| hops(system)).await;
}

async fn are_cut_everywhere(begin: impl AsyncFn() -> Option<Rollout>) {
    let killed = are_cut(0, 3, begin).await;
    if !killed.is_empty() {
        are_all_stages(&killed, &["planned", "stopping", "switched", "starting", "done"]);
    }
}

/// The stage of each agent that was killed: three of a cluster each time, from this boundary on, and then so many further.
/// Empty where the test was skipped.
async fn are_cut(first: usize, step: usize, begin: impl AsyncFn() -> Option<Rollout>) -> Vec<String> {
    let (mut number, mut killed) = (first, Vec::new());
    let mut is_unkilled = false;
    while !is_unkilled {
        let Some(rollout) = begin().await else { return Vec::new() };
        let stages = are_cut_from(rollout, number).await;
        is_unkilled = stages.contains(&None);
        killed.extend(stages.into_iter().flatten());
        number += step;
    }
    println!("{} agents were killed at a boundary of their journals", killed.len());
    killed
}

/// Cuts the three agents of a cluster, at this boundary and the next two; the stage of each, where it came so far.
async fn are_cut_from(rollout: Rollout, number: usize) -> [Option<String>; 3] {
    let (first, second, third) = tokio::join!(
        killed_and_run_again(&rollout, 0, number),
        killed_and_run_again(&rollout, 1, number + 1),
        killed_and_run_again(&rollout, 2, number + 2),
    );
    rollout.done().await;
    [first, second, third]
}
