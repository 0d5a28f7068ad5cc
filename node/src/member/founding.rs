//! How a member that has no log yet comes to be one: it founds a cluster with others that are new, or joins one that runs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::{Shared, admission};
use crate::{
    config::{Config, InitialState, Url},
    host::Host,
    identity::founders,
    peer::{self, JoinError, Joined},
    transport::tls::ClientTls,
};

/// Nobody joins who has not heard of its cluster after so long.
const JOIN: Duration = Duration::from_secs(10);
/// A cluster that is there calls this member in this time, though its flags do not name who was added since.
const CALLED: Duration = Duration::from_millis(300);
/// After this it is said that nothing is founded.
const QUIET: Duration = Duration::from_secs(5);
/// Before the founders are asked again what they are.
const FOUNDERS_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The members that the flags found, each with its peer URLs.
pub(super) fn addresses(config: &Config) -> BTreeMap<u64, String> {
    founders(config).into_iter().map(|(id, _, urls)| (id.0, urls.join(","))).collect()
}

/// Who this member is, which is new and joins others.
pub(super) async fn joined(
    host: &Arc<dyn Host>,
    tls: Option<&Arc<ClientTls>>,
    config: &Config,
) -> Result<Joined, JoinError> {
    let urls = |urls: &Vec<Url>| urls.iter().map(ToString::to_string).collect::<Vec<_>>();
    let others = config.initial_cluster.iter().filter(|(name, _)| **name != config.name);
    let others: Vec<String> = others.map(|(_, of)| urls(of).join(",")).collect();
    let own = urls(&config.initial_advertise_peer_urls);
    peer::join(host, tls, &others, &own, JOIN).await
}

/// Makes the first membership, once a majority of the founders, and all that answer, say that they are new, as this one is: one
/// that has lost its data founds nothing beside a cluster that is there. The first by id waits for a call from that, the others until
/// nobody has called them for a while, so that they do not all stand for election at the same moment.
pub(super) async fn found(shared: Arc<Shared>, config: Arc<Config>, members: Arc<BTreeMap<u64, String>>) {
    let group = &shared.group;
    let is_first = members.keys().next() == Some(&shared.identity.member.0);
    // Who is away will find this member by itself.
    let known = if shared.handshake.is_new() { (*members).clone() } else { group.members() };
    if shared.handshake.waits() {
        admission::run(&shared, &known, shared.handshake.is_new()).await;
    }
    let mut heard = shared.announce(&known).await;
    if config.initial_cluster_state == InitialState::Existing {
        return;
    }
    let mut raft_status = group.raft_status();
    if !is_first {
        let _ =
            timeout(config.election_timeout, raft_status.wait_for(|raft_status| raft_status.leader.is_some())).await;
    }
    let (mut was_said, began) = (false, Instant::now());
    while shared.handshake.is_new() {
        if heard.elsewhere > 0 && !was_said {
            tracing::warn!(
                "founds no cluster: a founder is of another cluster already. If this member was added to that, start it with \
                 --initial-cluster-state=existing; if that was restored from a snapshot, restore this member from the same file \
                 (`node snapshot restore`); else give the same --initial-cluster and --initial-cluster-token"
            );
            was_said = true;
        }
        heard.old += usize::from(shared.handshake.is_known());
        if heard.old > 0 && !was_said && began.elapsed() > QUIET {
            tracing::warn!(
                "founds no cluster: one is there, and does not call this member. If it was added there, start it with \
                 --initial-cluster-state=existing; if it has lost its data, remove it there and add it again first"
            );
            was_said = true;
        }
        if heard.old == 0 && 2 * (heard.new + 1) > members.len() && began.elapsed() > CALLED {
            if let Err(error) = group.found(&members).await {
                tracing::error!(%error, "cannot found the cluster");
            }
            return;
        }
        if timeout(FOUNDERS_RETRY_INTERVAL, raft_status.wait_for(|status| status.leader.is_some())).await.is_ok() {
            return;
        }
        heard = shared.announce(&members).await;
    }
}
