//! What a member says of itself, whenever the log says something else (KEP-4647, "Consensus Algorithm", step 2).

use std::{sync::Arc, time::Duration};

use disk::Folder;
use tokio::time::sleep;

use super::{Member, Shared};
use crate::{
    cluster::{
        entry::Entry,
        leader_proposals::{self, Own},
        member::{Attributes, Proposal},
    },
    config::Config,
    entry::EntryKind,
    state::Applied,
};

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Publishes what is news, for as long as the member runs. Not before it has caught up: an old cluster version in the log
/// that is replayed is none to make a proposal at.
pub(super) async fn run(shared: Arc<Shared>, config: Arc<Config>, data_dir: Arc<dyn Folder>) {
    shared.handshake.is_in().await;
    let member = Member { shared: shared.clone() };
    while member.linearize().await.is_err() {
        sleep(RETRY_INTERVAL).await;
    }
    let own = Own {
        id: shared.identity.member,
        starts: shared.identity.starts,
        start_id: shared.identity.start_id,
        incarnation: shared.identity.incarnation,
        name: shared.identity.name.clone(),
        client_urls: config.advertise_client_urls.iter().map(ToString::to_string).collect(),
        overrides: config.cluster_feature_gates.clone(),
    };
    let mut cluster = shared.machine.cluster_changed();
    loop {
        cluster.borrow_and_update();
        // Its own log tells it so, too, and before any other member does where that one has not heard of it yet.
        if let Some(told) = shared.handshake.own_loss() {
            return shared.end(&told);
        }
        let registry = shared.machine.registry();
        let (due, version) = shared
            .machine
            .read(|state| (leader_proposals::of_member(&state.cluster, &own, registry), state.cluster.version));
        let Some(entry) = due else {
            if cluster.changed().await.is_err() {
                return;
            }
            continue;
        };
        if let Some(version) = version {
            for feature in registry.overruled(version, &own.overrides) {
                tracing::warn!(feature, %version, "--cluster-feature-gates is overruled: the cluster version locks it");
            }
        }
        let differs = |wants| shared.machine.read(|state| state.cluster.differs(own.id, wants, registry));
        if let Entry::Publish { attributes: Attributes { proposal: Some(Proposal { features, .. }), .. }, .. } = &entry
            // What was proposed once may be committed yet.
            && shared.identity.published() != shared.identity.start()
            && let Some(differs) = differs(features)
        {
            return shared.group.end(differs.to_string());
        }
        // Before anybody can know of it.
        if let Err(error) = shared.identity.publish(&*data_dir) {
            return shared.group.end(consensus::with_causes(&error));
        }
        match shared.propose(EntryKind::Cluster(entry).into()).await {
            Ok(Applied::Cluster { changed: true }) => {}
            outcome => {
                tracing::debug!(?outcome, "this member's attributes are not published yet");
                sleep(RETRY_INTERVAL).await;
            }
        }
    }
}
