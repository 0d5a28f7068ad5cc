//! Keeps connections open to every other member for it to call this one by ([`crate::peer::CallBacks`]).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use consensus::Peer;
use futures_util::future::join_all;
use tokio::time::sleep;

use super::{Shared, others::with_each};
use crate::peer::CONNECTIONS;

/// Before one that has ended is opened again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Until this member ends; to these, as long as it knows of no membership: one that nobody can dial is told of none before it has
/// called the others.
pub(super) async fn run(shared: Arc<Shared>, first: Arc<BTreeMap<u64, String>>) {
    with_each(&shared, &first, |_| (), |by| keep_open(shared.clone(), by)).await;
}

/// A member closes them once it has applied that this one is removed, and says so when they are opened again.
async fn keep_open(shared: Arc<Shared>, by: Peer) {
    join_all((0..CONNECTIONS).map(async |_| {
        loop {
            if let Err(status) = shared.links.be_called_back(&by).await {
                tracing::debug!(member = format!("{:x}", by.id), %status, "a member cannot call back");
            }
            sleep(RETRY_INTERVAL).await;
        }
    }))
    .await;
}
