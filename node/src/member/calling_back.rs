//! Keeps connections open to every other member for it to call this one by ([`crate::peer::CallBacks`]).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use consensus::Peer;
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::Shared;
use crate::peer::CONNECTIONS;

/// Before one that has ended is opened again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// Between two looks at who is a member, where nothing was heard of a change.
const LOOK: Duration = Duration::from_secs(1);

/// Until this member ends; to these, as long as it knows of no membership.
pub(super) async fn run(shared: Arc<Shared>, first: Arc<BTreeMap<u64, String>>) {
    let mut cluster = shared.machine.cluster_changed();
    let mut open = BTreeMap::new();
    loop {
        cluster.borrow_and_update();
        let mut members = shared.group.members();
        if members.is_empty() {
            // One that nobody can dial is told of no membership before it has called the others.
            members.clone_from(&first);
        }
        members.remove(&shared.identity.member.0);
        open.retain(|id, _| members.contains_key(id));
        for (id, address) in members {
            let keep = || AbortOnDropHandle::new(tokio::spawn(keep_open(shared.clone(), Peer { id, address })));
            open.entry(id).or_insert_with(keep);
        }
        let _ = timeout(LOOK, cluster.changed()).await;
    }
}

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
