//! An upgrade while a downgrade is enabled: no version rises then.

use proto::etcdserverpb::{
    DowngradeRequest, downgrade_request::DowngradeAction, maintenance_client::MaintenanceClient,
};
use tests::{case::Case, ended::all_must_be, on_both, system::System};

use crate::{is_refused, untouched};

on_both! {
    an_upgrade_while_a_downgrade_is_enabled, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn an_upgrade_while_a_downgrade_is_enabled(system: System) {
    // etcd's 3.7 takes minutes to build, and to be at the target already is no reason to say that all is well.
    let to = if system == System::Node { "3.7" } else { "3.6" };
    let Some(case) = Case::path(system, ("3.6", to), |_| {}).await else { return };
    case.cluster.settled(case.from.release.cluster_version()).await.expect("there is a version to lower");
    let order = |action: DowngradeAction| {
        let (mut client, version) = (MaintenanceClient::new(case.client(1).channel()), "3.5.0".to_owned());
        async move { client.downgrade(DowngradeRequest { action: action.into(), version }).await }
    };
    order(DowngradeAction::Enable).await.expect("enabled");
    let cancel = order(DowngradeAction::Cancel);
    let rollout = case.begin().await;
    let words = ["a downgrade to 3.5 is enabled", "needs a version that rises"];
    let agents = is_refused(&rollout, 0..3, (3, "going_down"), &words).await;
    assert!(agents[0].said("left").contains("etcdctl downgrade cancel"), "{}", agents[0]);
    cancel.await.expect("cancelled");
    rollout.cluster.settled(rollout.from.release.cluster_version()).await.expect("it rises again");
    match system {
        System::Node => {
            all_must_be(&rollout.all("run").await, 0, "done");
            rollout.done().await;
        }
        System::Etcd => {
            all_must_be(&rollout.all("run").await, 0, "nothing_to_do");
            untouched(rollout).await;
        }
    }
}
