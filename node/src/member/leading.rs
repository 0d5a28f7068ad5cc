//! What only the leader does, for as long as it leads in one term: it hears every member, decides cluster version and
//! gate, ends leases, and compares what they hold.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use consensus::Peer;
use futures_util::StreamExt;
use proto::{LogIndex, MemberId};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tonic::Status;

use super::{Shared, comparing, lease_clock, others::with_each, wire};
use crate::{
    cluster::{
        entry::Entry,
        leader_proposals::{self, Heard},
    },
    config::Config,
    entry::EntryKind,
    identity::founders,
    state::Applied,
};

/// Before a member that was not heard is called again, and before a decision that fell is made anew.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

pub(super) type AllHeard = watch::Sender<BTreeMap<MemberId, Heard>>;

/// Leads whenever this member is the leader.
pub(super) async fn run(shared: Arc<Shared>, config: Arc<Config>) {
    let mut raft_status = shared.group.raft_status();
    let own = shared.identity.member.0;
    loop {
        let Ok(term) = raft_status.wait_for(|raft_status| raft_status.leader == Some(own)).await.map(|now| now.term)
        else {
            return;
        };
        tokio::select! {
            () = lead(&shared, &config, term) => {}
            _ = raft_status.wait_for(|now| now.leader != Some(own) || now.term != term) => {}
        }
        shared.clock.stop();
    }
}

async fn lead(shared: &Arc<Shared>, config: &Config, term: u64) {
    // Before it has applied an entry of its own term a leader does not know what was decided before it.
    while shared.read_index_here().await.is_err() {
        sleep(RETRY_INTERVAL).await;
    }
    // It may have led in this term before, without a quorum for a while: what it proposed then may be committed yet, such as
    // the end of a lease. Until that is done it takes up nothing.
    let Ok(last) = shared.group.last_index().await.map(LogIndex) else { return };
    if shared.machine.applied().wait_for(|applied| *applied >= last).await.is_err() {
        return;
    }
    tracing::info!(term, "leads");
    let heard = Arc::new(AllHeard::default());
    tokio::join!(
        greet_all(shared, term, &heard),
        decide(shared, config, term, &heard),
        lease_clock::run(shared, term),
        comparing::run(shared, term, config.corrupt_check_time, &heard),
    );
}

/// Calls every other member and holds on, so that a member counts as heard for as long as its process lives.
async fn greet_all(shared: &Arc<Shared>, term: u64, heard: &Arc<AllHeard>) {
    let own = Heard { release: shared.identity.release.clone(), starts: shared.identity.starts };
    heard.send_modify(|heard| drop(heard.insert(shared.identity.member, own)));
    let forget_others = |members: &BTreeMap<u64, String>| {
        heard.send_if_modified(|heard| {
            let before = heard.len();
            heard.retain(|id, _| members.contains_key(&id.0));
            heard.len() != before
        });
    };
    let keep = |peer| keep_greeting(shared.clone(), peer, term, heard.clone());
    with_each(shared, &BTreeMap::new(), forget_others, keep).await;
}

async fn keep_greeting(shared: Arc<Shared>, peer: Peer, term: u64, heard: Arc<AllHeard>) {
    loop {
        if let Err(status) = greet(&shared, &peer, term, &heard).await {
            tracing::debug!(member = format!("{:x}", peer.id), %status, "a member is not heard");
        }
        heard.send_if_modified(|heard| heard.remove(&MemberId(peer.id)).is_some());
        sleep(RETRY_INTERVAL).await;
    }
}

async fn greet(shared: &Shared, peer: &Peer, term: u64, heard: &AllHeard) -> Result<(), Status> {
    let mut client = shared.links.other(peer)?;
    let call = client.greet(shared.links.call(peer.id, wire::Frame::carrying(&wire::Greeting { term })));
    let answer = timeout(shared.limits.round, call).await.map_err(|_| Status::unavailable("it does not answer"))??;
    let remote = shared.links.answerer(peer.id, &answer)?;
    let mut beats = answer.into_inner();
    // Raft may not have tried it again yet.
    let _ = shared.group.is_back(peer.id).await;
    let is_heard = Heard { release: remote.release, starts: remote.starts };
    heard.send_modify(|heard| drop(heard.insert(remote.member, is_heard)));
    while let Some(beat) = beats.next().await {
        beat?;
    }
    Ok(())
}

/// Proposes what is due, one after the other, whenever something has changed that it is decided from.
async fn decide(shared: &Shared, config: &Config, term: u64, heard: &AllHeard) {
    let (mut hearing, mut cluster) = (heard.subscribe(), shared.machine.cluster_changed());
    loop {
        cluster.borrow_and_update();
        let now = hearing.borrow_and_update().clone();
        let (due, target) = shared.machine.read(|state| match state.cluster.members.is_empty() {
            true => (Some(found(shared, config)), None),
            false => (leader_proposals::of_leader(&state.cluster, &now), state.cluster.downgrade),
        });
        let Some(entry) = due else {
            tokio::select! {
                _ = hearing.changed() => {}
                _ = cluster.changed() => {}
            }
            continue;
        };
        tracing::info!(?entry, "decides");
        if let (Entry::Downgrade { to: None }, Some(target)) = (&entry, target) {
            // What operators of etcd wait for (etcd, `CancelDowngradeIfNeeded` in server/etcdserver/version/monitor.go).
            tracing::info!(cluster_version = format!("{target}.0"), "the cluster has been downgraded");
        }
        match shared.propose_as_leader(term, EntryKind::Cluster(entry)).await {
            Ok(Applied::Cluster { changed: true }) => {}
            // It came too late, or not at all: what it was made from has changed, or will.
            _ => sleep(RETRY_INTERVAL).await,
        }
    }
}

fn found(shared: &Shared, config: &Config) -> Entry {
    let members = founders(config).into_iter().map(|(id, name, urls)| (id, (name, urls))).collect();
    Entry::Bootstrap { id: shared.identity.cluster, members }
}
