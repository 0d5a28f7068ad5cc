//! Playbooks that do not fit the cluster they are for, all on one cluster that none of them touches.

use std::{fs, path::Path};

use tests::{on_both, skip::build_or_skip, system::System};

use crate::{case, is_refused, untouched};

on_both! {
    a_playbook_for_another_member_cluster_or_minor, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn a_playbook_for_another_member_cluster_or_minor(system: System) {
    let Some(three) = case(system, |_| {}).await else { return };
    let Some(one) = case(system, |spec| spec.size = 1).await else { return };
    let Some(too_new) = build_or_skip(system, system.too_new()) else { return };
    let (mut rollout, elsewhere) = (three.begin().await, one.begin().await);
    let sound = rollout.upgrade.clone();

    // A node that is no member.
    edit(&rollout.playbooks[0], "- name: m1", "- name: m9");
    is_refused(&rollout, [0], (2, "no_such_member"), &["`m9`", "m1", "m2", "m3"]).await;

    // Another cluster's member among the endpoints.
    let (own, foreign) = (rollout.layout().endpoints(), elsewhere.layout().endpoints());
    rollout.upgrade.endpoints = [&own[..2], &foreign[..]].concat();
    rollout.write();
    is_refused(&rollout, 0..3, (3, "other_cluster"), &[&foreign[0]]).await;

    // A minor left out.
    rollout.upgrade = sound.clone();
    rollout.upgrade.from = format!(">={}, <{}", rollout.from.release, too_new.release.cluster_version());
    (rollout.upgrade.to, rollout.upgrade.source) = (too_new.release.clone(), too_new.executable());
    rollout.write();
    is_refused(
        &rollout,
        0..3,
        (3, "skips_minor"),
        &[&rollout.from.release.to_string(), &too_new.release.to_string(), "leaves out a minor"],
    )
    .await;

    // Another cluster's endpoints, where a member has the name of this host's, whose process is not it.
    rollout.upgrade = sound;
    rollout.upgrade.endpoints = elsewhere.layout().endpoints();
    rollout.upgrade.strategy.push("allow_downtime: true".into());
    rollout.write();
    is_refused(&rollout, [0], (3, "unprepared"), &["m1: by the playbook it is pid", "answers for it at"]).await;

    untouched(rollout).await;
    untouched(elsewhere).await;
}

fn edit(playbook: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(playbook).expect("readable");
    assert!(text.contains(old), "{old} is not in {text}");
    fs::write(playbook, text.replace(old, new)).expect("written");
}
