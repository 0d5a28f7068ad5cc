//! What a member's flags say of features is tried on the release that it is brought to, before its step.

use crate::nodes::{GATE, Nodes, executable};

#[tokio::test(flavor = "multi_thread")]
async fn a_feature_that_the_target_does_not_know_is_refused_before_any_step() {
    let nodes = Nodes::start("3.5", [true; 3]).await;
    let source = executable("3.6").display().to_string();
    let upgrade = format!("kind: Upgrade\nfrom: \">=3.5.0, <3.6\"\nto: 3.6.0\nartifact: {{ source: {source} }}");
    let playbooks = nodes.playbooks(&upgrade, "");
    nodes.run_one("plan", &playbooks[0]).await.must_be(0, "planned");

    nodes.change(0, GATE, "ClusterLeaseCheckpiont");
    for verb in ["plan", "run"] {
        let refused = nodes.run_one(verb, &playbooks[0]).await;
        refused.must_be(3, "unprepared");
        let said = refused.message();
        assert!(said.contains("m1") && said.contains("ClusterLeaseCheckpiont") && said.contains(GATE), "{refused}");
    }
    nodes.change(0, "ClusterLeaseCheckpiont", GATE);
    nodes.run_one("plan", &playbooks[0]).await.must_be(0, "planned");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_3_5_below_the_newest_is_warned_of_and_goes_all_the_same() {
    let nodes = Nodes::start("3.5", [true; 3]).await;
    let source = executable("3.6").display().to_string();
    let upgrade = format!("kind: Upgrade\nfrom: \">=3.5.0, <3.6\"\nto: 3.6.0\nartifact: {{ source: {source} }}");
    let planned = nodes.run_one("plan", &nodes.playbooks(&upgrade, "")[0]).await;
    planned.must_be(0, "planned");
    assert!(planned.warnings().contains(" run a 3.5 below 3.5."), "{planned}");
    let again = "kind: Restart\nrestart: { id: again }";
    let planned = nodes.run_one("plan", &nodes.playbooks(again, "")[0]).await;
    assert_eq!(planned.warnings(), "[]", "{planned}");
}
