//! Who leads, said whenever that changes; and that nobody does.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::Shared;

/// Until this member ends.
pub(super) async fn run(shared: Arc<Shared>) {
    shared.handshake.is_in().await;
    let mut raft_status = shared.group.raft_status();
    let own = shared.identity.member.0;
    let mut said = None;
    loop {
        let now = *raft_status.borrow_and_update();
        let patience = match now.leader {
            Some(leader) if said != Some((leader, now.term)) => {
                if leader != own {
                    tracing::info!(leader = format!("{leader:x}"), term = now.term, "follows");
                }
                said = Some((leader, now.term));
                None
            }
            Some(_) => None,
            // An election is no news; that nobody wins one is.
            None => Some(2 * shared.limits.election),
        };
        let changed = match patience {
            None => raft_status.changed().await,
            Some(patience) => match timeout(patience, raft_status.changed()).await {
                Ok(changed) => changed,
                Err(_) => {
                    tracing::warn!(term = now.term, "there is no leader: too few members are heard");
                    // A learner calls nobody by itself: whether it was removed it hears by this.
                    shared.announce(&shared.group.members()).await;
                    match timeout(QUIET, raft_status.wait_for(|now| now.leader.is_some())).await {
                        Ok(Err(_)) => return,
                        _ => continue,
                    }
                }
            },
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Before it is said again.
const QUIET: Duration = Duration::from_secs(60);
