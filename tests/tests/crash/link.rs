//! `binary`'s link is lost, leads nowhere, or is another's by the playbook, while its member is down: the journal says what
//! it led to.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use tests::{fault::Moment, on_both, playbook::quoted, rollout::Rollout, system::System};

use crate::{is_finished, kill::kill_at, rollout};

on_both! {
    #[ignore = "slow: another binary in a step is looked at by default"]
    a_link_that_leads_nowhere_in_a_step_is_made_again;
    another_binary_in_a_step_is_refused_with_its_member_up, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: another binary in a step is looked at by default"]
    a_release_that_is_gone_in_a_step_is_named_with_its_member_down;
}

fn link(rollout: &Rollout, index: usize) -> PathBuf {
    rollout.member(index).binary()
}

async fn a_link_that_leads_nowhere_in_a_step_is_made_again(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    // Before *switched* was written, after it, and before the start on the new binary.
    for (index, (nth, moment)) in [(3, Moment::Before), (3, Moment::After), (4, Moment::After)].into_iter().enumerate()
    {
        kill_at(&rollout, index, nth, moment).await.expect("killed while its member was down");
        assert!(!rollout.member(index).is_running());
        let link = link(&rollout, index);
        fs::remove_file(&link).expect("a link");
        if index > 0 {
            symlink("releases/gone/program", &link).expect("linked");
        }
        rollout.one("run", index).await.must_succeed();
    }
    is_finished(rollout).await;
}

async fn a_release_that_is_gone_in_a_step_is_named_with_its_member_down(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    let release = fs::canonicalize(link(&rollout, 0)).expect("it leads to a release");
    kill_at(&rollout, 0, 3, Moment::Before).await.expect("killed while its member was down");
    let aside = release.with_extension("aside");
    fs::rename(&release, &aside).expect("moved away");
    let ended = rollout.one("run", 0).await;
    ended.must_be(1, "step_failed");
    assert!(!rollout.member(0).is_running(), "the new binary is not started before *starting* was written: {ended}");
    let words = [release.to_string_lossy().into_owned(), "put that release back".into()];
    assert!(words.iter().all(|words| ended.message().contains(words)), "{ended}");
    fs::rename(&aside, &release).expect("put back");
    is_finished(rollout).await;
}

async fn another_binary_in_a_step_is_refused_with_its_member_up(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    kill_at(&rollout, 0, 4, Moment::After).await.expect("killed while its member was down");
    let playbook = &rollout.playbooks[0];
    let sound = fs::read_to_string(playbook).expect("a playbook");
    let [own, others] = [0, 1].map(|index| link(&rollout, index).to_string_lossy().into_owned());
    let led = fs::read_link(&others).expect("a link");
    let [begun, now] = [&own, &others].map(|path| format!("binary: {}", quoted(path)));
    fs::write(playbook, sound.replace(&begun, &now)).expect("written");
    assert_ne!(fs::read_to_string(playbook).expect("a playbook"), sound);
    for verb in ["plan", "run"] {
        let ended = rollout.one(verb, 0).await;
        ended.must_be(3, "unprepared");
        assert!(ended.message().contains(&format!("began with `binary: {own}`")), "{ended}");
    }
    assert!(rollout.member(0).is_running(), "it is started on the binary that the journal says");
    assert_eq!(fs::read_link(&others).expect("a link"), led, "the other member's link is left alone");
    fs::write(playbook, sound).expect("written");
    is_finished(rollout).await;
}
