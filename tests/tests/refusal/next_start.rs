//! What the next start of a member is told that would make another of it: found before its stop, whenever that was written.

use std::{fs, path::PathBuf};

use tests::{
    case::Case,
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
