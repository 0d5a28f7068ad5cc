//! An alarm stands: etcd asks for none before an upgrade, and takes no writes while this one does.

use crate::{case, is_refused, untouched};

#[tokio::test(flavor = "multi_thread")]
async fn the_space_is_used_up() {
    let Some(case) = case("3.4", "3.5", |_| {}).await else { return };
    let rollout = case.begin().await;
    let client = rollout.client(1);
    client.alarm_no_space(true).await.expect("raised");
    is_refused(&rollout, 0..3, (3, "alarm"), &["NOSPACE", "m2 ("]).await;
    client.alarm_no_space(false).await.expect("taken back");
    untouched(rollout).await;
}
