//! `kind: Restart`: a changed configuration file, seen in the running process; and one that is wrong.

use std::fs;

use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Member, Spec},
    ended::Ended,
    playbook::{Upgrade, quoted},
    scene::Scene,
    skip::etcd_or_skip,
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
async fn quotas(scene: &Scene) -> Vec<u64> {
    let mut quotas = Vec::new();
    for member in &scene.layout().members {
        let text = reqwest::get(format!("{}/metrics", member.client_url)).await.expect("answered");
        let text = text.text().await.expect("a text");
        let line = text.lines().find_map(|line| line.strip_prefix("etcd_server_quota_backend_bytes "));
        quotas.push(line.expect("the figure").parse::<f64>().expect("a number") as u64);
    }
    quotas
}

fn ends(ended: &[Ended]) -> Vec<(Option<i32>, &str)> {
    ended.iter().map(|ended| (ended.exit, ended.reason())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_changed_by_a_restart_and_a_wrong_one_is_put_back() {
    let Some(etcd) = etcd_or_skip("3.5") else { return };
    let mut cluster = Cluster::up(&Spec::new(etcd.clone())).await.expect("up");
    let flags: Vec<_> = cluster.layout.members.iter().map(|member| member.flags.clone()).collect();
    for (member, flags) in cluster.layout.members.iter_mut().zip(&flags) {
        write(member, "etcd.yaml", flags, "1000000000");
        member.end(Signal::TERM).expect("ended");
        member.flags = vec![format!("--config-file={}", config(member))];
        member.start().expect("started");
    }
    cluster.ready().await.expect("ready again");
    let scene = Scene::of(cluster, etcd.release.cluster_version()).await.expect("writable");
    assert_eq!(quotas(&scene).await, [1_000_000_000; 3]);
    let change = |quota: &str| {
        scene.layout().members.iter().zip(&flags).for_each(|(member, flags)| write(member, "next.yaml", flags, quota));
    };
    let mut restart = Upgrade { restart: Some("OPS-1".into()), ..Upgrade::new(scene.layout(), &etcd) };
    restart.strategy.push("gather: 10s".into());
    restart.node = |member| vec![format!("files: [{{ path: {}, source: next.yaml }}]", quoted(&config(member)))];

    change("2000000000");
    let before = scene.pids();
    let playbooks = restart.write(scene.layout()).expect("playbooks");
    let ended = scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(0), "done"); 3], "{ended:#?}");
    assert_eq!(quotas(&scene).await, [2_000_000_000; 3]);
    let restarted = scene.pids();
    assert!(restarted.iter().zip(&before).all(|(now, then)| now != then), "{restarted:?} {before:?}");

    let ended = scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(0), "nothing_to_do"); 3], "{ended:#?}");
    assert_eq!(scene.pids(), restarted, "the same file is nothing to do");

    change("no number");
    restart.restart = Some("OPS-2".into());
    let playbooks = restart.write(scene.layout()).expect("playbooks");
    let ended = scene.all("run", &playbooks).await.expect("ends");
    let mut reasons: Vec<_> = ended.iter().map(Ended::reason).collect();
    let owner = reasons.iter().position(|reason| *reason == "put_back").expect("one failed");
    reasons.sort_unstable();
    assert_eq!(reasons, ["put_back", "run_failed", "run_failed"], "{ended:#?}");
    assert!(ended.iter().all(|ended| ended.exit == Some(1)), "{ended:#?}");
    assert_eq!(quotas(&scene).await, [2_000_000_000; 3], "the file of the last restart is back, not an older one");
    let untouched = |index: &usize| *index != owner;
    assert!((0..3).filter(untouched).all(|index| scene.pids()[index] == restarted[index]));

    change("3000000000");
    let ended = scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(0), "done"); 3], "{ended:#?}");
    assert_eq!(quotas(&scene).await, [3_000_000_000; 3]);
    scene.end(1).await.expect("nothing lost");
}
