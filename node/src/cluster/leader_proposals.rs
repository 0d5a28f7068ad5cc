//! What is to be proposed next: by the leader for the cluster, and by each member for itself.
//!
//! Asked after every change and on every new term, and answered from what is: a leader that takes over between a reset
//! and what was to follow goes on where the other one stopped. Source: KEP-4647, "Consensus Algorithm"; etcd, the
//! leader's version monitor.

use std::collections::BTreeMap;

use proto::{ClusterVersion, MemberId, Release};

use super::{
    Cluster,
    apply::next,
    entry::Entry,
    gate::Gate,
    member::{Attributes, Incarnation, Proposal, StartId, Starts},
};
use crate::features::{Overrides, Registry};

/// What a leader has heard from a member over the connection that stands, in its own term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub release: Release,
    /// How often it has started.
    pub starts: Starts,
}

/// What the leader is to propose now, if anything. Not before it has applied an entry of its own term.
pub fn of_leader(cluster: &Cluster, heard: &BTreeMap<MemberId, Heard>) -> Option<Entry> {
    let ended = || ended(cluster, heard).then_some(Entry::Downgrade { to: None });
    change(cluster, heard).or_else(|| decision(cluster)).or_else(ended)
}

/// The version goes up once every member, learners too, runs a release that has it, and down where a downgrade leads;
/// one that is silent holds it where it is.
fn change(cluster: &Cluster, heard: &BTreeMap<MemberId, Heard>) -> Option<Entry> {
    let version = attainable(cluster, heard)?;
    if cluster.gate != Gate::Undecided {
        return Some(Entry::Reset { prepares: version });
    }
    let members = cluster.members.keys().filter_map(|id| Some((*id, heard.get(id)?.starts)));
    Some(Entry::SetVersion { version, heard: members.collect() })
}

/// The next version, if every member can have it.
fn attainable(cluster: &Cluster, heard: &BTreeMap<MemberId, Heard>) -> Option<ClusterVersion> {
    let of = |id: &MemberId| heard.get(id).map(|heard| heard.release.cluster_version());
    let all: Option<Vec<ClusterVersion>> = cluster.members.keys().map(of).collect();
    let lowest = all?.into_iter().min()?;
    match (cluster.version, cluster.downgrade) {
        (None, _) => Some(lowest),
        (Some(now), None) => Some(next(now)).filter(|next| *next <= lowest),
        (Some(now), Some(target)) => Some(target).filter(|target| now == next(*target)),
    }
}

/// Whether a downgrade is where it leads to: no member runs a release above its version. One below that waits to be let in.
fn ended(cluster: &Cluster, heard: &BTreeMap<MemberId, Heard>) -> bool {
    let runs = |id: &MemberId| heard.get(id).map(|heard| heard.release.cluster_version());
    cluster.downgrade.is_some()
        && cluster.members.keys().all(|id| runs(id).is_some_and(|runs| Some(runs) <= cluster.downgrade))
}

fn decision(cluster: &Cluster) -> Option<Entry> {
    let features = cluster.reconciled()?;
    let is_news = cluster.gate != Gate::Decided(features.clone());
    is_news.then_some(Entry::Decide { features, inputs: cluster.inputs })
}

/// Who keeps the gate undecided: voters whose proposal at this version is missing.
pub fn awaited(cluster: &Cluster) -> Vec<MemberId> {
    let Some(version) = cluster.version.filter(|_| cluster.has_gates()) else { return Vec::new() };
    cluster.voters().filter(|(_, member)| member.proposed_at(version).is_none()).map(|(id, _)| id).collect()
}

/// A member's own process: what it says of itself.
#[derive(Clone, Debug)]
pub struct Own {
    pub id: MemberId,
    /// How often it has started.
    pub starts: Starts,
    /// Which start that is.
    pub start_id: Option<StartId>,
    /// Which data directory it has.
    pub incarnation: Option<Incarnation>,
    pub name: String,
    pub client_urls: Vec<String>,
    /// `--cluster-feature-gates`
    pub overrides: Overrides,
}

/// What a member is to publish now, if anything. Not while it replays what it had applied before it started.
pub fn of_member(cluster: &Cluster, own: &Own, registry: &Registry) -> Option<Entry> {
    let member = cluster.members.get(&own.id)?;
    let version = cluster.version.filter(|_| cluster.has_gates());
    let proposal = version.map(|version| {
        let features = registry.proposal(version, &own.overrides);
        Proposal { version, features }
    });
    let attributes = Attributes { name: own.name.clone(), client_urls: own.client_urls.clone(), proposal };
    let is_news = !member.has_said(&attributes, own.starts);
    is_news.then_some(Entry::Publish {
        member: own.id,
        starts: own.starts,
        start_id: own.start_id,
        incarnation: own.incarnation,
        attributes,
    })
}
