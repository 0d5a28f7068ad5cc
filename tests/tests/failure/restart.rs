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
    #[ignore = "slow: a restart of a wrong configuration is put back by default"]
    a_member_that_did_not_come_up_is_done_once_it_is_repaired;
    a_member_that_a_hook_hid_is_not_started_twice, etcd #[ignore = "slow: the node's row shows the same"];
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

/// What it was restarted on is what it ran before: there is nothing to put back, and once it is ready nothing to do again.
async fn a_member_that_did_not_come_up_is_done_once_it_is_repaired(system: System) {
    let Some(mut case) = Case::path(system, ("3.5", "3.5"), |_| {}).await else { return };
    case.cluster.layout.members.iter_mut().for_each(|member| {
        member.configure("").expect("started again");
    });
    case.cluster.ready().await.expect("ready again");
    case.upgrade.restart = Some("OPS-1".into());
    let config = case.layout().members[0].config();
    let good = fs::read_to_string(&config).expect("it was written");
    let hook = serde_json::to_string(&[["/bin/sh", "-c", "echo none > \"$0\"", &config.to_string_lossy()]]);
    case.upgrade.extra = vec![format!("hooks: {{ before_node: {} }}", hook.expect("JSON"))];
    let mut rollout = case.strategy(&["join_window: 2s"]).begin().await;
    let before = rollout.pids();
    rollout.one("run", 0).await.must_be(1, "step_failed");
    assert!(rollout.keys().await.contains_key("step"), "no other member goes");

    fs::write(&config, good).expect("repaired");
    rollout.upgrade.extra.clear();
    rollout.write();
    rollout.one("run", 0).await.must_be(0, "partial");
    let repaired = rollout.pids();
    assert_ne!(repaired[0], before[0]);
    all_must_be(&rollout.together().await, 0, "done");
    assert_eq!(rollout.pids()[0], repaired[0], "it was restarted once");
    rollout.end(1).await;
}

/// Its program is put elsewhere as it runs, and another into its place, as by a package manager in a hook.
async fn a_member_that_a_hook_hid_is_not_started_twice(system: System) {
    let Some(mut case) = Case::path(system, ("3.5", "3.5"), |_| {}).await else { return };
    case.upgrade.restart = Some("OPS-1".into());
    let bin = case.layout().members[0].bin().display().to_string();
    let replaces = "mv \"$0\" \"$0.away\" && cp -a \"$0.away\" \"$0\"";
    let hook = serde_json::to_string(&[["/bin/sh", "-c", replaces, &bin]]);
    case.upgrade.extra = vec![format!("hooks: {{ before_node: {} }}", hook.expect("JSON"))];
    let mut rollout = case.strategy(&["join_window: 2s"]).begin().await;
    let before = rollout.pids();
    let failed = rollout.one("run", 0).await;
    failed.must_be(1, "step_failed");
    let said = failed.message();
    assert!(said.contains("m1 answers, but no process of this host is it"), "{said}");
    assert!(said.contains(&format!("pid {} (user ", before[0].expect("it runs"))), "{said}");
    assert!(said.contains(&format!("{bin}.away/")) && said.contains("has its arguments"), "{said}");
    assert!(!rollout.member(0).is_running(), "none was started beside it");
    rollout.client(0).status().await.expect("it was not stopped");
    assert!(!rollout.keys().await.contains_key("step"), "it is ready, and its step is over: {failed}");

    fs::remove_dir_all(&bin).expect("the copy is removed");
    fs::rename(format!("{bin}.away"), &bin).expect("and the program is back");
    assert_eq!(rollout.pids(), before);
    rollout.upgrade.extra.clear();
    all_must_be(&rollout.together().await, 0, "done");
    assert!(rollout.pids().iter().zip(&before).all(|(now, then)| now != then), "each was restarted");
    rollout.end(1).await;
}
