//! A new binary that does not come up: its member is put back, the run is marked, every host holds; and the
//! same command goes on once the artifact is corrected.

use tests::{
    case::Case,
    ended::{all_must_be, one_must_fail},
    on_both,
    sick::Illness,
    system::System,
};

use crate::SICK;

on_both! {
    #[ignore = "slow: crash puts one back by default, at a third of the boundaries"]
    one_that_exits_at_once_is_put_back;
    one_that_hangs_is_put_back_when_its_time_is_over, etcd #[ignore = "slow: a wait of the agent's own, which the node's row shows too"];
}

async fn fails_and_goes_on(system: System, illness: Illness, strategy: &[&str]) {
    let Some(mut case) = Case::of(system).await else { return };
    let good = case.upgrade.source.clone();
    case.upgrade = case.sick(SICK, illness);
    let mut rollout = case.strategy(strategy).begin().await;

    let before = rollout.pids();
    let ended = rollout.all("run").await;
    let owner = one_must_fail(&ended, "put_back");
    let name = &rollout.member(owner).name;
    for other in (0..3).filter(|index| *index != owner) {
        let said = ended[other].message();
        assert!(said.contains(&format!("the step of {name}")) && said.contains("failed"), "{said}");
        assert_eq!(rollout.pids()[other], before[other], "{name} alone was touched");
    }
    assert_eq!(rollout.releases().await, vec![rollout.from.release.to_string(); 3]);
    assert_eq!(rollout.cluster_versions().await, vec![rollout.old_version(); 3]);
    let keys = rollout.keys().await;
    let id = rollout.client(owner).status().await.expect("an answer").header.expect("a header").member_id;
    assert_eq!(keys["run"]["state"]["failed"]["member"], format!("{id:x}"), "{keys:?}");
    assert!(!keys.contains_key("step"), "the member is back, and its record gone");

    // A late starter holds, too.
    rollout.one("run", (owner + 1) % 3).await.must_be(1, "run_failed");

    rollout.upgrade.source = good;
    rollout.write();
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.done().await;
}

async fn one_that_exits_at_once_is_put_back(system: System) {
    fails_and_goes_on(system, Illness::Exits, &[]).await;
}

async fn one_that_hangs_is_put_back_when_its_time_is_over(system: System) {
    fails_and_goes_on(system, Illness::Hangs, &["health: { timeout: 3s }"]).await;
}
