//! A run with another intent stands.

use tests::{ended::all_must_be, skip::etcd_or_skip};

use crate::{case, is_refused};

/// One host went to a patch that nobody wants any more; the others' playbooks name another one.
#[tokio::test(flavor = "multi_thread")]
async fn another_intent_is_refused_and_replaces_on_demand() {
    let Some(mut case) = case("3.4", "3.5", |_| {}).await else { return };
    let Some(early) = etcd_or_skip("3.5.1") else { return };
    let wanted = case.upgrade.clone();
    (case.upgrade.to, case.upgrade.source) = (early.release.clone(), early.executable());
    let mut rollout = case.begin().await;
    rollout.one("run", 0).await.must_be(0, "partial");

    rollout.upgrade = wanted;
    rollout.upgrade.from = ">=3.4.23, <3.6".into();
    rollout.write();
    for agent in is_refused(&rollout, 1..3, (6, "other_run"), &["from", "to"]).await {
        assert!(agent.said("next").contains("agent run --replace"), "{agent}");
    }

    rollout.start_with("run", 1, &["--replace"]).ends().await.must_be(0, "partial");
    all_must_be(&rollout.run([0, 2]).await, 0, "done");
    rollout.done().await;
}
