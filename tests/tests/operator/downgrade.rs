//! The status of a downgrade: where it leads to, and who is not there yet.

use proto::etcdserverpb::{
    DowngradeRequest, downgrade_request::DowngradeAction, maintenance_client::MaintenanceClient,
};
use rustix::process::Signal;
use serde_json::Value;
use tests::{
    case::Case,
    ended::Ended,
    on_both,
    system::System,
    wait::{self, GENEROUS},
};

on_both! {
    a_downgrade_under_way_is_shown_with_whom_it_waits_for, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn downgrade(rollout: &tests::rollout::Rollout) -> Value {
    let looked = rollout.one("status", 0).await;
    looked.must_be(0, "looked");
    looked.result.unwrap_or_default()["downgrade"].clone()
}

async fn a_downgrade_under_way_is_shown_with_whom_it_waits_for(system: System) {
    let Some(case) = Case::path(system, ("3.6", "3.5"), |_| {}).await else { return };
    case.cluster.settled(case.from.release.cluster_version()).await.expect("there is a version to lower");
    let rollout = case.begin().await;
    assert_eq!(downgrade(&rollout).await, Value::Null);

    // A silent member keeps the version up.
    rollout.member(2).end(Signal::TERM).expect("ended");
    let enable = DowngradeRequest { action: DowngradeAction::Enable.into(), version: "3.5.0".into() };
    // It may time out and be done all the same.
    let _ = MaintenanceClient::new(rollout.client(0).channel()).downgrade(enable).await;
    let blocked = wait::until("the silent member to be named", GENEROUS, || async {
        let found = downgrade(&rollout).await;
        let names = |block: &&Value| block["member"] == "m3" && block["why"] == "it does not answer";
        let is_named = found["blocked_by"].as_array().is_some_and(|blocks| blocks.iter().any(|block| names(&block)));
        if is_named && found["target"] == "3.5" { Ok(found) } else { Err(found.to_string()) }
    });
    blocked.await.expect("named");

    rollout.member(2).start().expect("started");
    let agents = rollout.all("run").await;
    agents.iter().for_each(Ended::must_succeed);
    assert_eq!(downgrade(&rollout).await, Value::Null, "it is over");
    rollout.end(1).await;
}
