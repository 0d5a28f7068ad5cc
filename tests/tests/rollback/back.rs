//! `agent rollback`: a run goes back while an old voter is left, with the data written meanwhile; and never
//! afterwards.

use tests::ended::Ended;

use super::{Case, ends};

#[tokio::test(flavor = "multi_thread")]
async fn a_held_run_goes_back_on_all_hosts_and_forward_again() {
    let Some(mut case) = Case::set(&["finalize: manual"]).await else { return };
    let playbooks = case.upgrade.write(case.scene.layout()).expect("playbooks");
    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(0), "held", "held"); 3], "{ended:#?}");
    let releases = case.scene.releases().await.expect("they serve");
    let held = releases.iter().position(|release| *release == case.old).expect("the held one");

    // One host alone goes back, so the run is seen half way.
    let first = case.scene.one("rollback", &playbooks[(held + 1) % 3]).await.expect("ends");
    first.must_be(0, "partial");
    assert_eq!(case.upgraded().await, 1);
    let before = case.scene.pids();
    for verb in ["run", "finalize", "resume"] {
        let refused = case.scene.one(verb, &playbooks[held]).await.expect("ends");
        refused.must_be(3, "going_back");
    }
    assert_eq!(case.scene.pids(), before, "nothing was touched");

    let back = case.scene.all("rollback", &playbooks).await.expect("ends");
    assert_eq!(ends(&back), vec![(Some(0), "rolled_back", "done"); 3], "{back:#?}");
    assert_eq!(case.upgraded().await, 0);
    case.is_still_at_3_4().await;
    let again = case.scene.one("rollback", &playbooks[0]).await.expect("ends");
    again.must_be(0, "rolled_back");

    case.upgrade.strategy.retain(|line| line != "finalize: manual");
    let playbooks = case.upgrade.write(case.scene.layout()).expect("playbooks");
    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(0), "done", "done"); 3], "{ended:#?}");
    case.ends_upgraded().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_back_from_its_middle_but_not_from_its_end() {
    // The cluster version rises seconds later: the run stands, with no old member left.
    let Some(mut case) = Case::set(&["convergence: { timeout: 1ms }"]).await else { return };
    let playbooks = case.upgrade.write(case.scene.layout()).expect("playbooks");
    let nothing = case.scene.one("rollback", &playbooks[0]).await.expect("ends");
    nothing.must_be(3, "nothing_to_roll_back");

    let leader = case.scene.leader().await.expect("a leader");
    let first = case.scene.one("run", &playbooks[(leader + 1) % 3]).await.expect("ends");
    first.must_be(0, "partial");
    assert_eq!(case.upgraded().await, 1);
    let back = case.scene.all("rollback", &playbooks).await.expect("ends");
    assert_eq!(ends(&back), vec![(Some(0), "rolled_back", "done"); 3], "{back:#?}");
    assert_eq!(case.upgraded().await, 0);
    case.is_still_at_3_4().await;

    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(5), "not_settled", "partial"); 3], "{ended:#?}");
    let before = case.scene.pids();
    let refused = case.scene.all("rollback", &playbooks).await.expect("ends");
    for ended in &refused {
        ended.must_be(3, "no_way_back");
    }
    assert_eq!(case.scene.pids(), before, "nothing was touched");

    case.upgrade.strategy.retain(|line| !line.starts_with("convergence"));
    let playbooks = case.upgrade.write(case.scene.layout()).expect("playbooks");
    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    // Whoever comes when the others have seen the cluster settle finds nothing to do.
    let is_well = |ended: &&Ended| ended.exit == Some(0) && ["done", "nothing_to_do"].contains(&ended.reason());
    assert_eq!(ended.iter().filter(is_well).count(), 3, "{ended:#?}");
    assert_eq!(case.scene.pids(), before, "only the cluster had to settle");
    case.ends_upgraded().await;
}
