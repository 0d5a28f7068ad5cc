//! What is known to hurt of etcd's releases alone. The bundled node, which goes by the same numbers, is none of it.

use tests::{case::Case, ended::all_must_be, system::System};

use crate::is_refused;

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_hurts_on_the_way_is_refused_until_it_is_accepted() {
    let Some(case) = Case::path(System::Etcd, ("3.5.1", "3.6"), |_| {}).await else { return };
    let mut rollout = case.begin().await;
    let planned = rollout.one("plan", 0).await;
    planned.must_be(3, "hazard");
    let words = ["floor-36, of m", "m1", "m2", "m3", "members that were removed come back"];
    for agent in is_refused(&rollout, 0..3, (3, "hazard"), &words).await {
        let left = agent.said("left");
        assert!(left.contains("take 3.5.26 or later first"), "{agent}");
        assert!(left.contains("`strategy.accept_hazards: [floor-36]`"), "{agent}");
    }
    rollout.upgrade.strategy.push("accept_hazards: [floor-36]".into());
    let agents = rollout.together().await;
    all_must_be(&agents, 0, "done");
    let said = |words: &str| agents.iter().any(|agent| agent.warnings().contains(words));
    assert!(said("floor-36 is accepted by the playbook"), "{agents:#?}");
    assert!(said("known of etcd 3.5.1") && said("35-inconsistent"), "{agents:#?}");
    rollout.done().await;
}
