//! What a downgrade does not begin with: an upgrade that has not ended, and a learner.

use std::fs;

use proto::etcdserverpb::{MemberAddRequest, MemberRemoveRequest, cluster_client::ClusterClient};
use tests::{
    case::Case,
    ended::all_must_leave,
    on_both,
    rollout::{Ends, LIMIT},
    system::System,
    wait,
};

use crate::{begin, is_down};

on_both! {
    in_the_middle_of_an_upgrade_it_is_refused_and_the_upgrade_ends, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn in_the_middle_of_an_upgrade_it_is_refused_and_the_upgrade_ends(system: System) {
    let Some(case) = Case::path(system, ("3.5", "3.6"), |_| {}).await else { return };
    let mut rollout = case.begin().await;
    let leader = rollout.leader().await;
    rollout.one("run", (leader + 1) % 3).await.must_be(0, "partial");

    // Down again, by another playbook than the run's own.
    let sound = rollout.upgrade.clone();
    (rollout.upgrade.from, rollout.upgrade.to) = (">=3.6.0, <3.7".into(), rollout.from.release.clone());
    rollout.upgrade.source = rollout.from.executable();
    rollout.playbooks = rollout.write();
    for playbook in &rollout.playbooks {
        let text = fs::read_to_string(playbook).expect("readable");
        fs::write(playbook, text.replace("kind: Upgrade", "kind: Downgrade")).expect("written");
    }
    let before = rollout.pids();
    rollout.one("run", 0).await.must_be(6, "other_run");
    for verb in ["plan", "run"] {
        let refused = rollout.start_with(verb, 0, &["--replace"]).ends().await;
        refused.must_be(3, "mixed");
        assert!(refused.said("left").contains("roll it back"), "{refused}");
    }
    assert_eq!(rollout.pids(), before, "nothing was touched");

    rollout.upgrade = sound;
    rollout.playbooks = rollout.write();
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    rollout.done().await;
}

/// Of etcd alone: the bundled node's members are those that it was founded with.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: what leads elsewhere is refused by default"]
async fn with_a_learner_it_is_refused() {
    let Some(rollout) = begin(System::Etcd).await else { return };
    let before = rollout.pids();
    let mut members = ClusterClient::new(rollout.client(0).channel());
    // Nobody ever starts it. Members that have not been connected for five seconds are no healthy cluster to etcd.
    let learner = MemberAddRequest { peer_urls: vec!["http://127.0.0.1:1".into()], is_learner: true };
    let added = wait::until("a learner to be added", LIMIT, || {
        let (mut members, learner) = (members.clone(), learner.clone());
        async move { members.member_add(learner).await.map_err(|status| status.to_string()) }
    });
    let learner = added.await.expect("added").into_inner().member.expect("a member");
    let refused = rollout.one("run", 0).await;
    refused.must_be(3, "learner");
    assert!(refused.said("left").contains("member promote"), "{refused}");
    assert_eq!(rollout.pids(), before, "nothing was touched");
    let status = rollout.client(0).status().await.expect("answered");
    assert!(!status.downgrade_info.is_some_and(|info| info.enabled), "nothing is enabled for a run that is refused");

    members.member_remove(MemberRemoveRequest { id: learner.id }).await.expect("removed");
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    is_down(rollout).await;
}
