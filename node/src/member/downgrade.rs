//! Makes what this member has stored fit for a lower release, once the cluster version has been lowered: a snapshot, behind
//! which that release finds nothing to replay that a higher version has shaped (KEP-4647, "Cluster Online Downgrade").

use std::{sync::Arc, time::Duration};

use proto::LogIndex;
use tokio::time::sleep;

use super::Shared;

/// Before it is looked at again whether the snapshot is stored, and the log behind it forgotten.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Stores a snapshot whenever one is wanted, for as long as the member runs.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut cluster = shared.machine.cluster_changed();
    let (release, mut said) = (&shared.identity.release, None);
    loop {
        cluster.borrow_and_update();
        let (wanted, target) = shared.machine.read(|state| (state.cluster.behind, state.cluster.downgrade));
        if wanted.is_none_or(|wanted| LogIndex(shared.group.snapshot_index()) >= wanted) {
            let ready = wanted.and(target).filter(|target| *target < release.cluster_version());
            if let Some(target) = ready.filter(|_| ready != said) {
                // etcd's words (`UpdateStorageVersionIfNeeded` in server/etcdserver/version/monitor.go).
                let target_version = format!("{target}.0");
                tracing::info!(target_version, server_version = %release, "The server is ready to downgrade");
            }
            said = ready;
            if let Some(wanted) = wanted {
                // A member that comes new would replay what no lower release knows (N-8).
                match shared.group.forget_to(wanted.0).await {
                    Ok(true) => shared.handshake.log_begins_behind(wanted),
                    Ok(false) => {
                        sleep(RETRY_INTERVAL).await;
                        continue;
                    }
                    Err(_) => return,
                }
            }
            if cluster.changed().await.is_err() {
                return;
            }
        } else if let Err(error) = shared.group.take_snapshot().await {
            tracing::error!(%error, "what is stored is not fit for a lower release, and will not be");
            return;
        } else {
            sleep(RETRY_INTERVAL).await;
        }
    }
}
