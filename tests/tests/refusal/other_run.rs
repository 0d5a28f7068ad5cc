//! A run with another intent stands.

use tests::{rollout::LIMIT, skip::etcd_or_skip};

use crate::{Case, done, is_refused};

/// One host went to a patch that nobody wants any more; the others' playbooks name another one.
#[tokio::test(flavor = "multi_thread")]
async fn another_intent_is_refused_and_replaces_on_demand() {
    let Some(mut case) = Case::set("3.4", "3.5", |_| {}).await else { return };
    let Some(early) = etcd_or_skip("3.5.1") else { return };
    let wanted = case.upgrade.clone();
    (case.upgrade.to, case.upgrade.source) = (early.release.clone(), early.executable());
    let rollout = case.begin().await;
    let first = rollout.run([0]).await.expect("ended");
    assert_eq!((first[0].exit, first[0].reason()), (Some(0), "partial"), "{first:#?}");

    case.upgrade = wanted;
    case.upgrade.from = ">=3.4.23, <3.6".into();
    case.write();
    for agent in is_refused(&rollout, 1..3, (6, "other_run"), &["from", "to"]).await {
        let next = agent.result.as_ref().and_then(|result| result["next"].as_str());
        assert!(next.is_some_and(|next| next.contains("agent run --replace")), "{agent:#?}");
    }

    let replaced = rollout.start_with(1, &["--replace"]).expect("started").ended(LIMIT).await.expect("ended");
    replaced.must_be(0, "partial");
    done(&rollout.run([0, 2]).await.expect("ended"));
    rollout.done().await.expect("sound");
}
