//! `kind: Restart`: a changed configuration file, seen in the running process; and one that is wrong.

use std::fs;

use tests::{
    case::Case,
    ended::{all_must_be, one_must_fail},
    on_both,
    playbook::quoted,
    system::System,
};

on_both! {
    a_configuration_is_changed_by_a_restart_and_a_wrong_one_is_put_back, etcd #[ignore = "slow: the node's row shows the same"];
}

const QUOTA: &str = "quota-backend-bytes";

/// What each member's process has as its quota.
async fn quotas(case: &Case) -> Vec<u64> {
    let mut quotas = Vec::new();
    for index in 0..3 {
        quotas.push(case.client(index).metric("etcd_server_quota_backend_bytes").await.expect("the figure") as u64);
    }
    quotas
}

async fn a_configuration_is_changed_by_a_restart_and_a_wrong_one_is_put_back(system: System) {
    let Some(mut case) = Case::path(system, ("3.5", "3.5"), |_| {}).await else { return };
    let first = format!("{QUOTA}: 1000000000");
    let members = case.cluster.layout.members.iter_mut();
    let flags: Vec<_> = members.map(|member| member.configure(&first).expect("started again")).collect();
    case.cluster.ready().await.expect("ready again");
    case.upgrade.restart = Some("OPS-1".into());
    case.upgrade.node = |member| {
        vec![format!("files: [{{ path: {}, source: next.yaml }}]", quoted(&member.config().to_string_lossy()))]
    };
    let mut rollout = case.strategy(&["join_window: 10s"]).begin().await;
    assert_eq!(quotas(&rollout).await, [1_000_000_000; 3]);
    let members = rollout.layout().members.clone();
    let change = |quota: &str| {
        for (member, flags) in members.iter().zip(&flags) {
            fs::write(member.dir.join("next.yaml"), format!("{flags}{QUOTA}: {quota}\n")).expect("written");
        }
    };

    change("2000000000");
    let before = rollout.pids();
    all_must_be(&rollout.all("run").await, 0, "done");
    assert_eq!(quotas(&rollout).await, [2_000_000_000; 3]);
    let restarted = rollout.pids();
    assert!(restarted.iter().zip(&before).all(|(now, then)| now != then), "{restarted:?} {before:?}");

    all_must_be(&rollout.all("run").await, 0, "nothing_to_do");
    assert_eq!(rollout.pids(), restarted, "the same file is nothing to do");

    change("no number");
    rollout.upgrade.restart = Some("OPS-2".into());
    rollout.write();
    let owner = one_must_fail(&rollout.all("run").await, "put_back");
    assert_eq!(quotas(&rollout).await, [2_000_000_000; 3], "the file of the last restart is back, not an older one");
    let untouched = |index: &usize| *index != owner;
    assert!((0..3).filter(untouched).all(|index| rollout.pids()[index] == restarted[index]));

    change("3000000000");
    all_must_be(&rollout.all("run").await, 0, "done");
    assert_eq!(quotas(&rollout).await, [3_000_000_000; 3]);
    rollout.end(1).await;
}
