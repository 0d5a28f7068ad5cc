//! Downgrade playbooks, under load: down a minor, back in the middle, by an agent that dies, and what is refused.
//!
//! Source: etcd's downgrade guides; KEP-4647, "Cluster Online Downgrade".

#![allow(clippy::panic, reason = "a test that cannot go on fails")]

mod refused;
mod silent;

use proto::etcdserverpb::{
    DowngradeRequest, downgrade_request::DowngradeAction, maintenance_client::MaintenanceClient,
};
use rustix::process::Signal;
use tests::{
    case::Case,
    cluster::Spec,
    ended::{Ended, all_must_be, all_must_leave},
    on_both,
    rollout::{Ends, Rollout},
    system::System,
    trapdoor::Trapdoor,
};

on_both! {
    three_members_go_down_by_a_minor;
    a_run_goes_back_from_its_middle, etcd #[ignore = "slow: the node's row shows the same"];
    a_run_goes_back_before_any_member_went, etcd #[ignore = "slow: the node's row shows the same"];
    an_agent_that_dies_again_and_again_comes_to_the_end, etcd #[ignore = "slow: the node's row shows the same"];
    what_leads_elsewhere_is_refused_and_nothing_is_touched, etcd #[ignore = "slow: the node's row shows the same"];
}

/// From 3.6 to 3.5, the minor below which etcd has no way.
async fn begin(system: System) -> Option<Rollout> {
    let case = Case::path(system, ("3.6", "3.5"), |_| {}).await?;
    case.cluster.settled(case.from.release.cluster_version()).await.expect("there is a version to lower");
    Some(case.begin().await)
}

/// How many run the lower release.
async fn lowered(rollout: &Rollout) -> usize {
    let low = rollout.to.release.to_string();
    rollout.releases().await.iter().filter(|release| **release == low).count()
}

/// The downgrade is over, and every member's agent said so.
async fn is_down(rollout: Rollout) {
    let client = rollout.client(0);
    let one_more = DowngradeRequest { action: DowngradeAction::Validate.into(), version: "3.4.0".into() };
    let said = MaintenanceClient::new(client.channel()).downgrade(one_more).await;
    let is_over = said.as_ref().map_or_else(|status| !status.message().contains("in progress"), |_| true);
    assert!(is_over, "{said:?}");
    rollout.done().await;
}

async fn three_members_go_down_by_a_minor(system: System) {
    let Some(rollout) = begin(system).await else { return };
    let agents = rollout.all("run").await;
    all_must_leave(&agents, 0, "done", "done");
    is_down(rollout).await;
}

/// The bundled node has one path more.
#[tokio::test(flavor = "multi_thread")]
async fn three_members_of_the_node_go_from_3_7_to_3_6() {
    let Some(case) = Case::path(System::Node, ("3.7", "3.6"), |_| {}).await else { return };
    let rollout = case.begin().await;
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    rollout.done().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.7 is built from source"]
async fn three_members_of_etcd_go_from_3_7_to_3_6() {
    let Some(case) = Case::path(System::Etcd, ("3.7", "3.6"), |_| {}).await else { return };
    case.cluster.settled(case.from.release.cluster_version()).await.expect("there is a version to lower");
    let rollout = case.begin().await;
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    rollout.done().await;
}

/// Of etcd alone, whose next leader takes seconds to lower the version.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_before_it_is_told_to_enable_is_followed_by_the_next() {
    // The door knows no TLS.
    let Some(mut case) = Case::path(System::Etcd, ("3.6", "3.5"), |spec| spec.tls = false).await else { return };
    // Only from one host's agent is the leader seen through the door, which shuts when that agent has it to tell.
    let log = case.member(1).dir.join("agent-1/stderr");
    let is_told = move || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("act=Downgrade("));
    let door = Trapdoor::to(case.member(0).client_port, is_told).await.expect("a way to the leader");
    let plain = case.member(0).flags.clone();
    let advertised = format!("--advertise-client-urls=http://127.0.0.1:{}", door.port);
    case.cluster.layout.members[0].start_anew([plain.clone(), vec![advertised]].concat()).expect("with a door");
    case.cluster.ready().await.expect("it serves again");
    case.cluster.settled(case.from.release.cluster_version()).await.expect("there is a version to lower");
    case.layout().make_leader(case.member(0)).await.expect("it leads");
    case.upgrade.endpoints = case.layout().endpoints().split_off(1);
    let mut rollout = case.begin().await;

    let agent = rollout.start_with("run", 1, &["--log", "agent::execute=debug"]);
    door.shuts().await.expect("the leader is to be told");
    let old_leader = &mut rollout.cluster.layout.members[0];
    old_leader.end(Signal::KILL).expect("killed");
    old_leader.start_anew(plain).expect("without a door");
    rollout.playbooks = rollout.write();
    agent.ends().await.must_be(0, "partial");
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    is_down(rollout).await;
}

async fn a_run_goes_back_from_its_middle(system: System) {
    let Some(rollout) = begin(system).await else { return };
    let leader = rollout.leader().await;
    rollout.one("run", (leader + 1) % 3).await.must_be(0, "partial");
    assert_eq!(lowered(&rollout).await, 1);
    all_must_leave(&rollout.all("rollback").await, 0, "rolled_back", "done");
    assert_eq!(lowered(&rollout).await, 0);
    rollout.cluster.settled(rollout.from.release.cluster_version()).await.expect("an ordinary rise");

    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    let before = rollout.pids();
    all_must_be(&rollout.all("rollback").await, 3, "nothing_to_roll_back");
    assert_eq!(rollout.pids(), before, "nothing was touched");
    is_down(rollout).await;
}

/// The downgrade is enabled and the version lowered when a hook fails, so nobody is ever stopped.
async fn a_run_goes_back_before_any_member_went(system: System) {
    let Some(mut rollout) = begin(system).await else { return };
    let before = rollout.pids();
    rollout.upgrade.extra = vec!["hooks: { before_node: [[\"/bin/false\"]] }".into()];
    rollout.playbooks = rollout.write();
    rollout.one("run", 0).await.must_be(1, "hook_failed");
    rollout.cluster.settled(rollout.to.release.cluster_version()).await.expect("it was lowered");

    all_must_leave(&rollout.all("rollback").await, 0, "rolled_back", "done");
    rollout.cluster.settled(rollout.from.release.cluster_version()).await.expect("an ordinary rise");
    assert_eq!(rollout.pids(), before, "nobody went");
    rollout.end(0).await;
}

async fn an_agent_that_dies_again_and_again_comes_to_the_end(system: System) {
    let Some(mut rollout) = begin(system).await else { return };
    rollout.hosts = vec![vec![0, 1, 2]];
    rollout.playbooks = rollout.write();
    // In the lowering, in the steps, between them; the last one lives.
    for millis in [300, 700, 1_000, 1_300, 1_700] {
        let agent = rollout.start(0);
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
        if let Ok(process) = agent.process() {
            process.signal(Signal::KILL).expect("killed");
        }
        let _ = agent.ends().await;
    }
    let ended: Ended = rollout.one("run", 0).await;
    assert_eq!(ended.exit, Some(0), "{ended}");
    is_down(rollout).await;
}

/// Of etcd alone: its leader lowers the version, and never looks whether all have followed.
#[tokio::test(flavor = "multi_thread")]
async fn a_downgrade_that_its_leader_does_not_end_is_cancelled() {
    let flags = |spec: &mut Spec| spec.flags.push("--experimental-downgrade-check-time=0s".into());
    let Some(case) = Case::path(System::Etcd, ("3.6", "3.5"), flags).await else { return };
    case.cluster.settled(case.from.release.cluster_version()).await.expect("there is a version to lower");
    let rollout = case.strategy(&["convergence: { timeout: 30s }"]).begin().await;
    let agents = rollout.all("run").await;
    all_must_leave(&agents, 0, "done", "done");
    let said = agents.iter().any(|agent| agent.stderr.contains("the downgrade to 3.5 is still enabled"));
    assert!(said, "it was waited for: {agents:?}");
    is_down(rollout).await;
}

async fn what_leads_elsewhere_is_refused_and_nothing_is_touched(system: System) {
    let Some(mut rollout) = begin(system).await else { return };
    let before = rollout.pids();
    // A minor above it, by a playbook that says that it leads down.
    let sound = rollout.upgrade.clone();
    rollout.upgrade.from = ">=3.5, <3.6".into();
    rollout.playbooks = rollout.write();
    rollout.one("run", 0).await.must_be(4, "leader_version");
    rollout.upgrade = sound;
    rollout.playbooks = rollout.write();
    rollout.client(0).alarm_no_space(true).await.expect("raised");
    rollout.one("run", 0).await.must_be(3, "alarm");
    rollout.client(0).alarm_no_space(false).await.expect("disarmed");
    assert_eq!(rollout.pids(), before, "nothing was touched");
    let status = rollout.client(0).status().await.expect("answered");
    assert!(!status.downgrade_info.is_some_and(|info| info.enabled), "nothing is enabled for a run that is refused");
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    is_down(rollout).await;
}
