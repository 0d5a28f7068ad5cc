//! The agent dies, in every way and at every moment, and the same command finishes the job.
//!
//! The shipped agent is killed, frozen and starved from outside. Whatever happens to it, clients lose
//! nothing and an observer never sees two members down by its hand.

mod boundary;
mod damaged;
mod frozen;
mod full;
mod going_back;
mod guard;
mod kill;
mod link;
mod lost;
mod past;
mod power;
mod quorum;
mod signals;
mod step_lock;
mod supervisor;
mod torn;

use tests::{case::Case, ended::Ended, rollout::Rollout, system::System};

/// The main job, with these lines under `strategy`.
async fn rollout(system: System, strategy: &[&str]) -> Option<Rollout> {
    Some(Case::of(system).await?.strategy(strategy).begin().await)
}

/// A downgrade by a minor, to the last below which etcd has no way.
async fn downgrade(system: System) -> Option<Rollout> {
    let case = Case::path(system, ("3.6", "3.5"), |_| {}).await?;
    case.cluster.settled(case.from.release.cluster_version()).await.expect("there is a version to lower");
    Some(case.begin().await)
}

/// Over two minors in one command.
async fn hops(system: System) -> Option<Rollout> {
    let (from, over, to) = match system {
        System::Node => ("3.5", "3.6", "3.7"),
        System::Etcd => ("3.4", "3.5", "3.6"),
    };
    Some(Case::path(system, (from, to), |_| {}).await?.over(&[over])?.begin().await)
}

/// The same command on every host at once, which is to finish the job, one member at a time.
async fn is_finished(rollout: Rollout) {
    rollout.all("run").await.iter().for_each(Ended::must_succeed);
    rollout.done().await;
}
