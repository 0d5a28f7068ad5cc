//! How hosts take their turns: all at once, a few at a time, one by one, and when some of them die.

mod forks;
mod frozen;
mod lapsed;
mod serial;
mod shared;

use tests::{agent::Agent, brake::Brake, case::Case, rollout::Rollout, system::System};

/// The main job, each member on a host of its own.
async fn rollout(system: System, size: usize) -> Option<Rollout> {
    let case = Case::with(system, |spec| spec.size = size).await?;
    Some(case.strategy(&["join_window: 2s"]).begin().await)
}

/// Three hosts, of which one is held with the baton in its hand; the other two, the leader's last.
async fn one_holds_the_baton(system: System) -> Option<(Rollout, Brake, (usize, Agent), [usize; 2])> {
    let rollout = rollout(system, 3).await?;
    let brake = Brake::new(rollout.layout());
    let last = rollout.leader().await;
    let (holder, other) = ((last + 1) % 3, (last + 2) % 3);
    let mut held = rollout.upgrade.clone();
    held.extra.push(brake.hook());
    rollout.write_one(holder, &held);
    let agent = rollout.start(holder);
    rollout.until_baton_is_of(&agent).await;
    Some((rollout, brake, (holder, agent), [other, last]))
}
