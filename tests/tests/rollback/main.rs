//! Runs that hold, go back, stop or are resumed by hand, under load.

#![allow(clippy::panic, reason = "a test that cannot go on fails")]

mod back;
mod hold;
mod resume;

use tests::{case::Case, rollout::Rollout, system::System};

const SICK: &str = env!("CARGO_BIN_EXE_sick-member");

/// The main job, with these lines under `strategy`.
async fn rollout(system: System, strategy: &[&str]) -> Option<Rollout> {
    Some(Case::of(system).await?.strategy(strategy).begin().await)
}

/// How many members run the new release; the others run the old one.
async fn upgraded(rollout: &Rollout) -> usize {
    let (old, new) = (rollout.from.release.to_string(), rollout.to.release.to_string());
    let releases = rollout.releases().await;
    assert!(releases.iter().all(|release| [&old, &new].contains(&release)), "{releases:?}");
    releases.iter().filter(|release| **release == new).count()
}

/// The host whose member a hold left at the old release.
async fn held(rollout: &Rollout) -> usize {
    let old = rollout.from.release.to_string();
    rollout.releases().await.iter().position(|release| *release == old).expect("the held one")
}

async fn is_still_at_the_old_version(rollout: &Rollout) {
    assert_eq!(rollout.cluster_versions().await, vec![rollout.old_version(); 3]);
}
