//! SIGKILL at every journal boundary, then the same command.
//!
//! Boundary N of an agent is the N-th fsync of its journal, and there it is killed once just before the
//! record is on disk and once just after. N rises until a run ends unkilled. Every member of a cluster has
//! an agent of its own that is killed, so that one upgrade is cut at three boundaries.

use std::collections::BTreeSet;

use tests::fault::Moment;

use crate::rollout::{Change, Killed, Rollout};

/// Boundaries in their order: the first fsync, before and after it, the second, and so on.
pub fn boundary(number: usize) -> (usize, Moment) {
    (1 + number / 2, if number.is_multiple_of(2) { Moment::Before } else { Moment::After })
}

impl Rollout {
    /// Kills this host's agent at a boundary, then runs the same command to its end.
    async fn killed_and_run_again(&self, index: usize, number: usize) -> Option<Killed> {
        let (nth, moment) = boundary(number);
        let killed = self.kill_at(index, nth, moment).await?;
        println!("{}: killed {moment:?} fsync {nth}, last record: {}", self.member(index).name, killed.last);
        self.run(index).await.must_succeed();
        Some(killed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_any_journal_boundary_is_finished_by_the_same_command() {
    let Some(change) = Change::of_minor() else { return };
    let (mut number, mut killed) = (0, Vec::new());
    let mut is_unkilled = false;
    while !is_unkilled {
        let rollout = Rollout::begin(&change, &[]).await;
        let (first, second, third) = tokio::join!(
            rollout.killed_and_run_again(0, number),
            rollout.killed_and_run_again(1, number + 1),
            rollout.killed_and_run_again(2, number + 2),
        );
        rollout.end_one_at_a_time().await;
        is_unkilled = [&first, &second, &third].into_iter().any(Option::is_none);
        killed.extend([first, second, third].into_iter().flatten());
        number += 3;
    }
    println!("{} agents were killed at a boundary of their journals", killed.len());
    let seen: BTreeSet<_> = killed.iter().map(|killed| killed.last.as_str()).collect();
    for stage in ["planned", "stopping", "switched", "starting", "done"] {
        assert!(seen.iter().any(|entry| entry.starts_with(stage)), "none was killed at {stage}: {seen:?}");
    }
}
