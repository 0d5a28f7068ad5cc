//! `finalize: manual`: the run holds before the last member until a person says so.

use super::{Case, ends, said};

#[tokio::test(flavor = "multi_thread")]
async fn a_held_run_waits_for_a_person_and_is_finalized() {
    let Some(case) = Case::set(&["finalize: manual"]).await else { return };
    let playbooks = case.upgrade.write(case.scene.layout()).expect("playbooks");
    let early = case.scene.one("finalize", &playbooks[0]).await.expect("ends");
    early.must_be(3, "not_held");

    let ended = case.scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&ended), vec![(Some(0), "held", "held"); 3], "{ended:#?}");
    assert_eq!(case.upgraded().await, 2);
    case.is_still_at_3_4().await;
    assert!(case.scene.key("baton").await.expect("readable").is_null(), "a hold keeps no baton");
    let releases = case.scene.releases().await.expect("they serve");
    let owner = releases.iter().position(|release| *release == case.old).expect("the held one");

    let before = case.scene.pids();
    let again = case.scene.all("run", &playbooks).await.expect("ends");
    assert_eq!(ends(&again), vec![(Some(0), "held", "held"); 3], "{again:#?}");
    assert_eq!(case.scene.pids(), before, "nothing was touched");
    let complete = tests::agent::Agent::start("run", &playbooks[owner], &["--require-complete"]).expect("started");
    let complete = complete.ended(tests::scene::LIMIT).await.expect("ends");
    complete.must_be(5, "incomplete");

    let other = (owner + 1) % 3;
    let approved = case.scene.one("finalize", &playbooks[other]).await.expect("ends");
    approved.must_be(0, "approved");
    let name = &case.scene.layout().members[owner].name;
    assert!(said(&approved, "message").contains(name.as_str()), "{approved:#?}");
    assert!(said(&approved, "next").starts_with("agent run "), "{approved:#?}");
    assert_eq!(case.scene.pids(), before, "saying so touches nothing");

    let done = case.scene.one("run", &playbooks[owner]).await.expect("ends");
    done.must_be(0, "done");
    let after = case.scene.one("finalize", &playbooks[other]).await.expect("ends");
    after.must_be(0, "nothing_to_do");
    case.ends_upgraded().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn finalize_on_the_owners_host_takes_the_last_step() {
    let Some(case) = Case::set(&["finalize: manual"]).await else { return };
    let playbooks = case.upgrade.write(case.scene.layout()).expect("playbooks");
    case.scene.all("run", &playbooks).await.expect("ends");
    let releases = case.scene.releases().await.expect("they serve");
    let owner = releases.iter().position(|release| *release == case.old).expect("the held one");
    let done = case.scene.one("finalize", &playbooks[owner]).await.expect("ends");
    done.must_be(0, "done");
    case.ends_upgraded().await;
}
