//! An entry from bytes: how it is read back. Whatever the bytes are, the answer is an entry or an error.

use bytes::{Buf, Bytes};
use prost::Message;
use proto::{ClusterId, ClusterVersion, LogIndex, MemberId};

use super::{Entry, EntryError, EntryKind};
use crate::{
    cluster::{
        self, Cluster,
        gate::Gate,
        member::{Attributes, Incarnation, Member, Proposal, StartId, Starts},
    },
    features::Features,
    stored::{
        cluster as written,
        entry::{self as stored, entry::What as Written},
    },
};

type Read<T> = Result<T, EntryError>;

fn damaged(what: impl ToString) -> EntryError {
    EntryError::Damaged(what.to_string())
}

fn missing(what: &'static str) -> impl FnOnce() -> EntryError {
    move || damaged(format!("{what} is missing"))
}

fn message<M: Message + Default>(bytes: &Bytes) -> Read<M> {
    M::decode(&**bytes).map_err(damaged)
}

impl Entry {
    /// Reads an entry on a member that runs this minor.
    ///
    /// # Errors
    /// [`EntryError`]
    pub fn decode(bytes: impl Buf, own: ClusterVersion) -> Read<Self> {
        let entry = stored::Entry::decode(bytes).map_err(damaged)?;
        let since = version(&entry.since.ok_or_else(missing("its release"))?);
        if since > own {
            return Err(EntryError::Newer(since));
        }
        let what = match entry.what.ok_or_else(missing("what it does"))? {
            Written::Put(bytes) => EntryKind::Put(message(&bytes)?),
            Written::DeleteRange(bytes) => EntryKind::DeleteRange(message(&bytes)?),
            Written::Txn(bytes) => EntryKind::Txn(message(&bytes)?),
            Written::Compact(bytes) => EntryKind::Compact(message(&bytes)?),
            Written::LeaseGrant(bytes) => EntryKind::LeaseGrant(message(&bytes)?),
            Written::LeaseRevoke(bytes) => EntryKind::LeaseRevoke(message(&bytes)?),
            Written::LeaseCheckpoint(bytes) => EntryKind::LeaseCheckpoint(message(&bytes)?),
            Written::CounterAdd(bytes) => EntryKind::CounterAdd(message(&bytes)?),
            Written::Alarm(bytes) => EntryKind::Alarm(message(&bytes)?),
            cluster => EntryKind::Cluster(of_cluster(cluster)?),
        };
        Ok(Self { requires: entry.requires, what })
    }
}

fn of_cluster(what: Written) -> Read<cluster::entry::Entry> {
    use cluster::entry::Entry as E;
    Ok(match what {
        Written::Found(stored::Found { cluster, members }) => {
            let founder = |founder: written::Founder| (MemberId(founder.id), (founder.name, founder.peer_urls));
            E::Bootstrap { id: ClusterId(cluster), members: members.into_iter().map(founder).collect() }
        }
        Written::Publish(stored::Publish { member, starts, attributes: said, incarnation, start_id }) => E::Publish {
            member: MemberId(member),
            starts: Starts(starts),
            start_id: StartId::read(start_id),
            incarnation: Incarnation::read(incarnation),
            attributes: attributes(said.ok_or_else(missing("what is published"))?),
        },
        Written::Moved(stored::Moved { member, peer_urls }) => E::Move { member: MemberId(member), peer_urls },
        Written::SetGate(set) => match set.purpose.ok_or_else(missing("what the gate is set for"))? {
            written::cluster_feature_gate_set::Purpose::Prepares(to) => E::Reset { prepares: version(&to) },
            written::cluster_feature_gate_set::Purpose::Inputs(inputs) => {
                E::Decide { features: features(set.feature_gates), inputs: LogIndex(inputs) }
            }
        },
        Written::SetVersion(stored::SetVersion { version: to, heard }) => {
            let heard = heard.into_iter().map(|heard| (MemberId(heard.member), Starts(heard.starts)));
            E::SetVersion { version: version(&to.ok_or_else(missing("the version"))?), heard: heard.collect() }
        }
        Written::Downgrade(stored::Downgrade { to }) => E::Downgrade { to: to.as_ref().map(version) },
        _ => return Err(damaged("it is no entry about the cluster")),
    })
}

/// A cluster that was stored.
pub(crate) fn cluster(stored: written::Cluster) -> Cluster {
    let gate = stored.gate.unwrap_or_default();
    Cluster {
        id: ClusterId(stored.id),
        version: stored.version.as_ref().map(version),
        members: stored.members.into_iter().map(member).collect(),
        gate: if gate.decided { Gate::Decided(features(gate.features)) } else { Gate::Undecided },
        inputs: LogIndex(stored.inputs),
        downgrade: stored.downgrade.as_ref().map(version),
        behind: Some(LogIndex(stored.behind)).filter(|behind| behind.0 > 0),
        lowered_offline: stored.lowered_offline,
        removed: stored.removed.into_iter().map(MemberId).collect(),
    }
}

fn member(stored: written::Member) -> (MemberId, Member) {
    let written::Member { id, peer_urls, is_learner, starts, attributes: said, incarnation, start_id } = stored;
    let Attributes { name, client_urls, proposal } = attributes(said.unwrap_or_default());
    let (starts, start_id, incarnation) = (Starts(starts), StartId::read(start_id), Incarnation::read(incarnation));
    (MemberId(id), Member { name, peer_urls, client_urls, is_learner, starts, start_id, incarnation, proposal })
}

fn attributes(said: written::Attributes) -> Attributes {
    let proposed = said.proposed_feature_gates;
    let proposal = said.proposed_at.map(|at| Proposal { version: version(&at), features: features(proposed) });
    Attributes { name: said.name, client_urls: said.client_urls, proposal }
}

fn features(features: Vec<written::Feature>) -> Features {
    features.into_iter().map(|feature| (feature.name, feature.enabled)).collect()
}

pub(crate) fn version(version: &written::Version) -> ClusterVersion {
    ClusterVersion { major: version.major, minor: version.minor }
}
