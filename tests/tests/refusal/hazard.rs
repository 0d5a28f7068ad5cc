//! What is known to hurt of etcd's releases alone. The bundled node, which goes by the same numbers, is none of it.

use std::process::Command;

use rustix::process::Signal;
use tests::{
    case::Case,
    ended::{Ended, all_must_be},
    skip::build_or_skip,
    system::System,
};

use crate::is_refused;

/// A patch from which 3.6 may be reached.
const SOUND: &str = "3.5";

/// A patch from which 3.6 must not be reached; members of these indexes were brought to a sound one.
async fn begun(sound: &[usize]) -> Option<Case> {
    let case = Case::path(System::Etcd, ("3.5.1", "3.6"), |_| {}).await?;
    for index in sound {
        brought_to(&case, SOUND, *index).await?;
    }
    Some(case)
}

async fn brought_to(case: &Case, release: &str, index: usize) -> Option<()> {
    let (build, member) = (build_or_skip(System::Etcd, release)?, case.member(index));
    member.install(&build).expect("installed");
    member.end(Signal::TERM).expect("ended");
    member.start().expect("started");
    case.cluster.ready().await.expect("ready again");
    Some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_hurts_on_the_way_is_refused_until_it_is_accepted() {
    let Some(case) = begun(&[0]).await else { return };
    let mut rollout = case.begin().await;
    rollout.one("plan", 1).await.must_be(3, "hazard");
    for agent in
        is_refused(&rollout, [1, 2], (3, "hazard"), &["floor-36, of m", "members that were removed come"]).await
    {
        assert!(agent.said("left").contains("take 3.5.26 or later first"), "{agent}");
        assert!(agent.said("left").contains("`strategy.accept_hazards: [floor-36]`"), "{agent}");
        assert!(agent.said("next").contains("agent hazards --explain floor-36"), "{agent}");
    }
    // One whose own member is sound knows it from what the others say.
    is_refused(&rollout, [0], (3, "hazard"), &["floor-36, of m", "m2", "m3"]).await;

    rollout.upgrade.strategy.push("accept_hazards: [floor-36]".into());
    let agents = rollout.together().await;
    all_must_be(&agents, 0, "done");
    let said = |words: &str| agents.iter().any(|agent| agent.warnings().contains(words));
    assert!(said("floor-36 is accepted by the playbook"), "{agents:#?}");
    assert!(said("known of etcd 3.5.1") && said("35-inconsistent"), "{agents:#?}");
    rollout.done().await;
}

/// No run is asked twice whether it may begin: a member's own host looks before its step.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_fell_back_in_the_middle_is_refused_by_its_own_host() {
    let Some(case) = begun(&[0, 1, 2]).await else { return };
    case.layout().make_leader(case.member(1)).await.expect("it leads");
    let mut rollout = case.strategy(&["join_window: 0s"]).begin().await;
    rollout.one("run", 0).await.must_be(0, "partial");
    brought_to(&rollout, "3.5.1", 2).await.expect("it was there before");
    let pids = rollout.pids();
    let own = rollout.one("run", 2).await;
    own.must_be(3, "hazard");
    assert!(own.message().contains("floor-36, of m3"), "{own}");
    assert_eq!(rollout.pids(), pids, "nobody was stopped");

    brought_to(&rollout, SOUND, 2).await.expect("it was there before");
    rollout.together().await.iter().for_each(Ended::must_succeed);
    rollout.arrives().await;
    rollout.end(1).await;
}

#[test]
#[ignore = "slow: minutes, and etcd 3.7 is built from source"]
fn hazards_are_seen_on_real_members() {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/hazards")).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("counted: {}", said.lines().last().unwrap_or_default());
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
