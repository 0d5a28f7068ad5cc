//! An alarm stands: etcd asks for none before an upgrade, and takes no writes while this one does.

use crate::{case, is_refused, untouched};
use tests::{on_both, system::System};

on_both! {
    the_space_is_used_up, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn the_space_is_used_up(system: System) {
    let Some(case) = case(system, |_| {}).await else { return };
    let rollout = case.begin().await;
    let client = rollout.client(1);
    client.alarm_no_space(true).await.expect("raised");
    is_refused(&rollout, 0..3, (3, "alarm"), &["NOSPACE", "m2 ("]).await;
    client.alarm_no_space(false).await.expect("taken back");
    untouched(rollout).await;
}
