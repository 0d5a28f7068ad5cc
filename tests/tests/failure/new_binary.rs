//! A new binary that does not come up: its member is put back, the run is marked, every host holds; and the
//! same command goes on once the artifact is corrected.

use std::fs;

use tests::{
    agent::Agent,
    case::Case,
    ended::{all_must_be, one_must_fail},
    member::Member,
    on_both,
    process::Process,
    rollout::{LIMIT, all_end},
    sick::Illness,
    system::System,
    wait,
};

use crate::SICK;

on_both! {
    #[ignore = "slow: crash puts one back by default, at a sixth of the boundaries"]
    one_that_exits_at_once_is_put_back;
    #[ignore = "slow: a minute and a half; one that a hook hid is not started twice by default"]
    one_that_somebody_replaces_by_hand_gets_no_second_process;
    #[ignore = "slow: two minutes; one that never served is put back by default"]
    one_that_hangs_is_put_back_when_its_time_is_over;
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

/// An operator sees a member down, and starts what it ran before: the agent has stopped it, and is about to start it, too.
async fn one_that_somebody_replaces_by_hand_gets_no_second_process(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    let good = case.upgrade.source.clone();
    case.upgrade = case.sick(SICK, Illness::Exits);
    let mut rollout = case.begin().await;
    let command = |member: &Member| {
        let program = fs::canonicalize(member.binary()).expect("it is there").display().to_string();
        [vec![program], member.flags.clone()].concat()
    };
    let old: Vec<_> = rollout.layout().members.iter().map(command).collect();
    let agents: Vec<_> = (0..3).map(|host| rollout.start(host)).collect();
    // While it still looks whether it has stopped the member, whoever is started counts as what it could not stop.
    let is_down = |agent: &Agent| agent.log().contains("  stays down for ");
    let owner = wait::until("a member to be down after its step has failed", LIMIT, || async {
        agents.iter().position(is_down).ok_or_else(|| "none is yet".to_owned())
    });
    let owner = owner.await.expect("the new binary exits");
    let member = rollout.member(owner).clone();
    let by_hand = Process::start(&old[owner], &member.log()).expect("started");
    let ended = all_end(agents).await;
    assert_eq!(one_must_fail(&ended, "put_back"), owner);
    let said = ended[owner].warnings();
    assert!(said.contains(&format!("{}: somebody else has started it since it was stopped", member.name)), "{said}");
    assert!(by_hand.is_alive(), "it is left as it is");
    assert_eq!(rollout.pids()[owner], Some(by_hand.pid), "and it is alone");
    assert!(!rollout.keys().await.contains_key("step"), "its step is over");

    rollout.upgrade.source = good;
    rollout.write();
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.end(1).await;
}
