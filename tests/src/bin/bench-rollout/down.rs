//! When a downgrade is over: every member runs the lower release, and none is enabled any more.

use std::time::Duration;

use proto::etcdserverpb::{
    DowngradeRequest, downgrade_request::DowngradeAction, maintenance_client::MaintenanceClient,
};
use tests::{Error, client::Client, cluster::Layout, system::Build, witness::now_in_ms};

/// The time between two looks.
const PERIOD: Duration = Duration::from_millis(5);

/// Waits for it; the time, in milliseconds since 1970.
pub async fn is_over(layout: Layout, to: Build) -> Result<u64, Error> {
    let clients = layout.members.iter().map(|member| layout.client(member)).collect::<Result<Vec<_>, _>>()?;
    let low = to.release.to_string();
    loop {
        if all_run(&clients, &low).await && !is_under_way(&clients[0]).await {
            return Ok(now_in_ms());
        }
        tokio::time::sleep(PERIOD).await;
    }
}

async fn all_run(clients: &[Client], release: &str) -> bool {
    for client in clients {
        if client.versions().await.ok().is_none_or(|said| said.server != release) {
            return false;
        }
    }
    true
}

/// A release before 3.6 says it only to whoever asks whether one more could begin.
async fn is_under_way(client: &Client) -> bool {
    let one_more = DowngradeRequest { action: DowngradeAction::Validate.into(), version: "3.4.0".into() };
    let said = MaintenanceClient::new(client.channel()).downgrade(one_more).await;
    said.is_err_and(|status| status.message().contains("in progress") || status.code() == tonic::Code::Unavailable)
}
