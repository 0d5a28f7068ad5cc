//! A failed step whose member is left as it is (`on_failure: stop`), and a mark that is lifted by hand.

use std::path::Path;

use tests::{
    playbook::Upgrade,
    sick::{self, Illness},
};

use super::{Case, ends};

const SICK: &str = env!("CARGO_BIN_EXE_sick-etcd");

impl Case {
    /// The same upgrade with an artifact that exits at once.
    fn sick(&self) -> Upgrade {
        let new = tests::skip::etcd_or_skip("3.5").expect("it was there");
        let file = self.scene.layout().dir.join("sick");
        let source = sick::make(Path::new(SICK), &new, Illness::Exits, &file).expect("an executable");
        Upgrade { source, ..self.upgrade.clone() }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_left_as_it_is_holds_everybody_until_it_is_mended() {
    let Some(case) = Case::set(&["on_failure: stop"]).await else { return };
    let playbooks = case.sick().write(case.scene.layout()).expect("playbooks");
    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    let reasons: Vec<_> = ended.iter().map(|ended| ended.reason()).collect();
    assert!(ended.iter().all(|ended| ended.exit == Some(1)), "{ended:#?}");
    assert_eq!(reasons.iter().filter(|reason| **reason == "step_failed").count(), 1, "{ended:#?}");
    assert_eq!(reasons.iter().filter(|reason| **reason == "run_failed").count(), 2, "{ended:#?}");
    let owner = reasons.iter().position(|reason| *reason == "step_failed").expect("one");
    assert_eq!(case.scene.pids().iter().filter(|pid| pid.is_none()).count(), 1, "it is left down");
    assert!(case.scene.pids()[owner].is_none());
    assert!(!case.scene.key("down").await.expect("readable").is_null(), "its record stands");
    let held = case.scene.one("resume", &playbooks[(owner + 1) % 3]).await.expect("ends");
    // No mark is lifted under a record.
    held.must_be(1, "run_failed");

    let playbooks = case.upgrade.write(case.scene.layout()).expect("playbooks");
    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(0), "done", "done"); 3], "{ended:#?}");
    case.ends_upgraded().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_is_lifted_by_hand_on_any_host() {
    let Some(case) = Case::set(&[]).await else { return };
    let playbooks = case.sick().write(case.scene.layout()).expect("playbooks");
    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    let owner = ended.iter().position(|ended| ended.reason() == "put_back").expect("one failed");
    let other = (owner + 1) % 3;

    // The other's own artifact is sound, and a person says that it may go.
    let sound = case.upgrade.write_one(case.scene.layout(), other).expect("a playbook");
    let held = case.scene.one("run", &sound).await.expect("ends");
    held.must_be(1, "run_failed");
    let resumed = case.scene.one("resume", &sound).await.expect("ends");
    resumed.must_be(0, "partial");
    assert_eq!(case.scene.releases().await.expect("they serve")[other], case.new);
    assert_eq!(case.upgraded().await, 1);

    let playbooks = case.upgrade.write(case.scene.layout()).expect("playbooks");
    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(0), "done", "done"); 3], "{ended:#?}");
    case.ends_upgraded().await;
}
