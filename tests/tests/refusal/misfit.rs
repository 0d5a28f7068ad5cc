//! Playbooks that do not fit the cluster they are for, all on one cluster that none of them touches.

use std::{fs, path::Path};

use tests::skip::etcd_or_skip;

use crate::{Case, is_refused, untouched};

#[tokio::test(flavor = "multi_thread")]
async fn a_playbook_for_another_member_cluster_or_minor() {
    let Some(mut case) = Case::set("3.4", "3.5", |_| {}).await else { return };
    let Some(other) = Case::set("3.4", "3.5", |spec| spec.size = 1).await else { return };
    let Some(too_new) = etcd_or_skip("3.6") else { return };
    let (rollout, elsewhere) = (case.begin().await, other.begin().await);
    let sound = case.upgrade.clone();

    // A node that is no member.
    edit(&rollout.playbooks[0], "- name: m1", "- name: m9");
    is_refused(&rollout, [0], (2, "no_such_member"), &["`m9`", "m1", "m2", "m3"]).await;

    // Another cluster's member among the endpoints.
    let (own, foreign) = (case.layout().endpoints(), other.layout().endpoints());
    case.upgrade.endpoints = [&own[..2], &foreign[..]].concat();
    case.write();
    is_refused(&rollout, 0..3, (3, "other_cluster"), &[&foreign[0]]).await;

    // A minor left out.
    case.upgrade = sound.clone();
    case.upgrade.from = ">=3.4.23, <3.6".into();
    (case.upgrade.to, case.upgrade.source) = (too_new.release.clone(), too_new.executable());
    case.write();
    is_refused(&rollout, 0..3, (3, "skips_minor"), &["3.4.23", &too_new.release.to_string(), "leaves out a minor"])
        .await;

    // A state directory of another cluster: its sole voter was refused, too, but noted in the journal.
    is_refused(&elsewhere, [0], (3, "below_quorum"), &["m1"]).await;
    case.upgrade = sound;
    case.write();
    let [own, foreign] = [&case, &other].map(|case| case.layout().members[0].dir.join("baton"));
    edit(&rollout.playbooks[0], &own.to_string_lossy(), &foreign.to_string_lossy());
    is_refused(&rollout, [0], (3, "other_cluster"), &[&foreign.to_string_lossy()]).await;

    untouched(rollout).await;
    untouched(elsewhere).await;
}

fn edit(playbook: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(playbook).expect("readable");
    assert!(text.contains(old), "{old} is not in {text}");
    fs::write(playbook, text.replace(old, new)).expect("written");
}
