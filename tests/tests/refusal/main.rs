//! What is refused: each names who and what, and leaves every process, link and key as it was.

mod alarm;
mod balancer;
mod check;
mod differing;
mod down;
mod going_down;
mod hazard;
mod lived_in;
mod locked;
mod misfit;
mod mistake;
mod next_start;
mod other_run;
mod past;
mod quota;
mod setting;
mod v2;
mod version;
mod voters;

use tests::{case::Case, cluster::Spec, ended::Ended, rollout::Rollout, system::System};

/// A cluster, each member on a host of its own.
async fn case(system: System, change: impl FnOnce(&mut Spec)) -> Option<Case> {
    Some(Case::with(system, change).await?.strategy(&["join_window: 2s"]))
}

/// Runs agents on these hosts at once: each must be refused, with these words, and nothing touched.
async fn is_refused(
    rollout: &Rollout,
    hosts: impl IntoIterator<Item = usize>,
    (exit, reason): (i32, &str),
    words: &[&str],
) -> Vec<Ended> {
    let before = rollout.raft_status().await;
    let agents = rollout.run(hosts).await;
    refused(&agents, (exit, reason), words);
    assert_eq!(rollout.raft_status().await, before);
    agents
}

fn refused(agents: &[Ended], (exit, reason): (i32, &str), words: &[&str]) {
    for agent in agents {
        agent.must_be(exit, reason);
        let missing: Vec<_> = words.iter().filter(|word| !agent.message().contains(**word)).collect();
        assert!(missing.is_empty(), "{missing:?} are missing in: {}", agent.message());
    }
}

/// The end of a rollout that was refused throughout: nobody ever went down, and no agent left a key.
async fn untouched(rollout: Rollout) {
    let left = rollout.keys().await;
    assert!(left.is_empty(), "{left:?}");
    rollout.end(0).await;
}

/// Who went down, in order.
fn down(seen: &tests::witness::Testimony) -> Vec<&str> {
    seen.observed.outages.iter().map(|outage| outage.member.as_str()).collect()
}
