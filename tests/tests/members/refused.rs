//! What is refused before anything is touched.

use std::fs;

use rustix::process::Signal;
use tests::{case::Case, newcomers::data, on_both, rollout::Ends as _, system::System};

on_both! {
    bad_changes_are_refused_and_touch_nothing, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn bad_changes_are_refused_and_touch_nothing(system: System) {
    let release = system.main_job().0;
    let Some(case) = Case::path(system, (release, release), |_| {}).await else { return };
    let mut newcomers = case.newcomers(1);
    let newcomer = newcomers.members.remove(0);
    let listed = case.listed(&case.client(0)).await;
    let refused = async |change: &tests::newcomers::Change, member, exit, reason, words: &str| {
        let ended = change.start(&case, member).ends().await;
        ended.must_be(exit, reason);
        assert!(ended.message().contains(words), "expected `{words}`: {ended}");
    };
    let five = case.scale(&["m1", "m2", "m3", "m4", "m5"]);

    refused(&case.scale(&["m1", "m2", "m4"]), &newcomer, 3, "target_refused", "adds m4 and leaves out m3").await;
    refused(&case.replace("m9", "m4"), &newcomer, 3, "target_refused", "m9").await;
    refused(&case.replace("m1", "m2"), &newcomer, 3, "name_taken", "m2").await;

    let mut same_url = newcomer.clone();
    let taken = case.member(0).peer_url();
    same_url.flags = same_url.flags.iter().map(|flag| flag.replace(&newcomer.peer_url(), &taken)).collect();
    refused(&five, &same_url, 3, "name_taken", &taken).await;

    let mut wrong_state = newcomer.clone();
    wrong_state.flags.push("--initial-cluster-state=new".into());
    refused(&five, &wrong_state, 3, "unprepared", "existing").await;
    // A plan says it, too.
    five.start_with(&case, &wrong_state, "plan", &[]).ends().await.must_be(3, "unprepared");

    let mut alone = newcomer.clone();
    alone.flags.retain(|flag| !flag.starts_with("--initial-cluster="));
    refused(&five, &alone, 3, "unprepared", "by which it finds the others").await;

    // The data of another cluster is left where it is.
    let other = Case::path(system, (release, release), |spec| spec.size = 1).await.expect("it can be had");
    other.member(0).end(Signal::KILL).expect("ended");
    let copied = std::process::Command::new("cp").arg("-a").args([data(other.member(0)), data(&newcomer)]).status();
    assert!(copied.expect("run").success());
    refused(&five, &newcomer, 3, "newcomer_unfit", "of the cluster").await;
    assert!(data(&newcomer).exists());
    fs::remove_dir_all(data(&newcomer)).expect("removed");

    // A member of this cluster is not put aside, either.
    let copied = std::process::Command::new("cp").arg("-a").args([data(case.member(0)), data(&newcomer)]).status();
    assert!(copied.expect("run").success());
    refused(&five, &newcomer, 3, "newcomer_unfit", "of m1").await;
    fs::remove_dir_all(data(&newcomer)).expect("removed");

    // One that is to stay is down: that is mended first.
    case.member(1).end(Signal::KILL).expect("ended");
    refused(&five, &newcomer, 3, "member_not_ready", "m2").await;
    case.member(1).start().expect("started");
    case.cluster.ready().await.expect("it is back");

    assert_eq!(case.listed(&case.client(0)).await, listed);
    assert_eq!(case.leftovers().await, Vec::<String>::new());
}
