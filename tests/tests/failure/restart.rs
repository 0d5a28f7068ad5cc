//! `kind: Restart`: a changed configuration file, seen in the running process; and one that is wrong.

use std::fs;

use rustix::process::Signal;
use tests::{
    case::Case,
    cluster::Member,
    ended::{all_must_be, one_must_fail},
    playbook::quoted,
};

const QUOTA: &str = "quota-backend-bytes";

fn config(member: &Member) -> String {
    member.dir.join("etcd.yaml").display().to_string()
}

/// The member's flags as etcd's configuration file has them, with a quota.
fn write(member: &Member, file: &str, flags: &[String], quota: &str) {
    let lines: Vec<_> = flags
        .iter()
        .filter_map(|flag| flag.trim_start_matches("--").split_once('='))
        .map(|(key, value)| format!("{key}: {}", quoted(value)))
        .chain([format!("{QUOTA}: {quota}")])
        .collect();
    fs::write(member.dir.join(file), lines.join("\n") + "\n").expect("written");
}

/// What each member's process has as its quota.
async fn quotas(case: &Case) -> Vec<u64> {
    let mut quotas = Vec::new();
    for member in &case.layout().members {
        let text = reqwest::get(format!("{}/metrics", member.client_url)).await.expect("answered");
        let text = text.text().await.expect("a text");
        let line = text.lines().find_map(|line| line.strip_prefix("etcd_server_quota_backend_bytes "));
        quotas.push(line.expect("the figure").parse::<f64>().expect("a number") as u64);
    }
    quotas
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_changed_by_a_restart_and_a_wrong_one_is_put_back() {
    let Some(mut case) = Case::set("3.5", "3.5").await else { return };
    let flags: Vec<_> = case.layout().members.iter().map(|member| member.flags.clone()).collect();
    for (member, flags) in case.cluster.layout.members.iter_mut().zip(&flags) {
        write(member, "etcd.yaml", flags, "1000000000");
        member.end(Signal::TERM).expect("ended");
        member.flags = vec![format!("--config-file={}", config(member))];
        member.start().expect("started");
    }
    case.cluster.ready().await.expect("ready again");
    case.upgrade.restart = Some("OPS-1".into());
    case.upgrade.node = |member| vec![format!("files: [{{ path: {}, source: next.yaml }}]", quoted(&config(member)))];
    let mut rollout = case.strategy(&["gather: 10s"]).begin().await;
    assert_eq!(quotas(&rollout).await, [1_000_000_000; 3]);
    let members = rollout.layout().members.clone();
    let change = |quota: &str| {
        members.iter().zip(&flags).for_each(|(member, flags)| write(member, "next.yaml", flags, quota));
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
