//! What the next start of a member is told that would make another of it: found before its stop, whenever that was written.

use std::{fs, path::PathBuf};

use tests::{
    case::Case,
    cluster::Member,
    playbook::{quoted, started_by_the_agent},
    rollout::{Ends, Rollout},
    system::System,
};

use crate::is_refused;

/// A case whose first member is told by a configuration file, and that file.
async fn told_by_a_file() -> Option<(Rollout, PathBuf)> {
    let case = Case::path(System::Etcd, ("3.5", "3.6"), |_| {}).await?;
    let mut case = case.strategy(&["join_window: 2s"]);
    case.upgrade.node = |member| vec![format!("data_dir: {}", member.data().display())];
    case.cluster.layout.members[0].configure("").expect("configured");
    case.cluster.ready().await.expect("ready again");
    let rollout = case.begin().await;
    let file = rollout.member(0).flags.iter().find_map(|flag| flag.strip_prefix("--config-file=")).expect("its file");
    let file = PathBuf::from(file);
    Some((rollout, file))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_would_make_another_of_a_member_is_refused_before_its_stop() {
    let Some((mut rollout, file)) = told_by_a_file().await else { return };
    let sound = fs::read_to_string(&file).expect("readable");
    let data = rollout.member(0).data();
    let elsewhere = sound.replace(&*data.to_string_lossy(), &format!("{}2", data.display()));
    let alone = format!("{sound}\nForce-New-Cluster: true\n");
    for (text, why) in [(&elsewhere, "somebody else"), (&alone, "a cluster of this member alone")] {
        fs::write(&file, text).expect("written");
        rollout.one("plan", 0).await.must_be(3, "unprepared");
        is_refused(&rollout, [0], (3, "unprepared"), &["m1: ", why]).await;
        let guard = rollout.start_with("guard", 0, &["--check"]).ends().await;
        guard.must_be(3, "unprepared");
        assert!(guard.message().contains(why), "{guard}");
    }

    // Written after preflight, right before the stop.
    let before = rollout.pids();
    for text in [&elsewhere, &alone, &"name: {{{".to_owned()] {
        fs::write(&file, &sound).expect("written");
        let changed = file.with_extension("changed");
        fs::write(&changed, text).expect("written");
        let copy = format!("cp {} {}", changed.display(), file.display());
        rollout.upgrade.extra = vec![format!("hooks: {{ before_node: [[/bin/sh, -c, \"{copy}\"]] }}")];
        rollout.write();
        rollout.one("run", 0).await.must_be(1, "step_failed");
        assert_eq!(rollout.pids(), before, "nobody was stopped");
    }
    fs::write(&file, &sound).expect("written");
    rollout.upgrade.extra.clear();
    rollout.write();
    rollout.one("run", 0).await.must_be(0, "partial");
    rollout.end(1).await;
}

/// Words that are for the new release alone, and a playbook that does not say where the data is.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_of_the_new_release_that_lead_elsewhere_are_refused() {
    let Some(case) = Case::path(System::Etcd, ("3.5", "3.6"), |_| {}).await else { return };
    let mut rollout = case.strategy(&["join_window: 2s"]).begin().await;
    for (runtime, why) in
        [(with::<0> as fn(&Member) -> Vec<String>, "somebody else"), (with::<1>, "without what it promised the others")]
    {
        rollout.upgrade.runtime = runtime;
        rollout.write();
        rollout.one("plan", 0).await.must_be(3, "unprepared");
        is_refused(&rollout, [0], (3, "unprepared"), &["m1: ", why]).await;
    }
    rollout.upgrade.runtime = started_by_the_agent;
    rollout.write();
    rollout.one("run", 0).await.must_be(0, "partial");
    rollout.end(1).await;
}

const FLAGS: [&str; 2] = ["data-dir", "wal-dir"];

fn with<const FLAG: usize>(member: &Member) -> Vec<String> {
    let word = quoted(&format!("--{}={}", FLAGS[FLAG], member.dir.join("elsewhere").display()));
    let args = format!("args: [{{ add: [{word}], for: \">=3.6\" }}]");
    started_by_the_agent(member).into_iter().chain([args]).collect()
}
