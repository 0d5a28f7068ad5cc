//! An entry as bytes: how it is written. Equal entries give equal bytes.

use prost::Message;
use proto::ClusterVersion;

use super::{Entry, EntryKind};
use crate::{
    cluster::{
        self,
        gate::Gate,
        member::{Attributes, Incarnation, StartId},
    },
    features::Features,
    stored::{
        cluster as written,
        entry::{self as stored, entry::What as Written},
    },
};

impl Entry {
    /// The bytes for the log.
    pub fn encode(&self) -> Vec<u8> {
        let bytes = |message: &dyn Fn() -> Vec<u8>| message().into();
        let what = match &self.what {
            EntryKind::Put(request) => Written::Put(bytes(&|| request.encode_to_vec())),
            EntryKind::DeleteRange(request) => Written::DeleteRange(bytes(&|| request.encode_to_vec())),
            EntryKind::Txn(request) => Written::Txn(bytes(&|| request.encode_to_vec())),
            EntryKind::Compact(request) => Written::Compact(bytes(&|| request.encode_to_vec())),
            EntryKind::LeaseGrant(request) => Written::LeaseGrant(bytes(&|| request.encode_to_vec())),
            EntryKind::LeaseRevoke(request) => Written::LeaseRevoke(bytes(&|| request.encode_to_vec())),
            EntryKind::LeaseCheckpoint(request) => Written::LeaseCheckpoint(bytes(&|| request.encode_to_vec())),
            EntryKind::CounterAdd(request) => Written::CounterAdd(bytes(&|| request.encode_to_vec())),
            EntryKind::Alarm(request) => Written::Alarm(bytes(&|| request.encode_to_vec())),
            EntryKind::Cluster(entry) => of_cluster(entry),
        };
        let since = Some(version(self.since()));
        stored::Entry { since, requires: self.requires.clone(), what: Some(what) }.encode_to_vec()
    }
}

fn of_cluster(entry: &cluster::entry::Entry) -> Written {
    use cluster::entry::Entry as E;
    match entry {
        E::Bootstrap { id, members } => {
            let founder = |(id, (name, peer_urls)): (&proto::MemberId, &(String, Vec<String>))| written::Founder {
                id: id.0,
                name: name.clone(),
                peer_urls: peer_urls.clone(),
            };
            Written::Found(stored::Found { cluster: id.0, members: members.iter().map(founder).collect() })
        }
        E::Publish { member, starts, start_id, incarnation, attributes: said } => Written::Publish(stored::Publish {
            member: member.0,
            starts: starts.0,
            attributes: Some(attributes(said)),
            incarnation: Incarnation::written(*incarnation),
            start_id: StartId::written(*start_id),
        }),
        E::Move { member, peer_urls } => {
            Written::Moved(stored::Moved { member: member.0, peer_urls: peer_urls.clone() })
        }
        E::Reset { prepares } => {
            let purpose = Some(written::cluster_feature_gate_set::Purpose::Prepares(version(*prepares)));
            Written::SetGate(written::ClusterFeatureGateSet { feature_gates: Vec::new(), purpose })
        }
        E::Decide { features: decided, inputs } => {
            let purpose = Some(written::cluster_feature_gate_set::Purpose::Inputs(inputs.0));
            Written::SetGate(written::ClusterFeatureGateSet { feature_gates: features(decided), purpose })
        }
        E::Downgrade { to } => Written::Downgrade(stored::Downgrade { to: to.map(version) }),
        E::SetVersion { version: to, heard } => {
            let heard = heard.iter().map(|(id, starts)| stored::Heard { member: id.0, starts: starts.0 });
            Written::SetVersion(stored::SetVersion { version: Some(version(*to)), heard: heard.collect() })
        }
    }
}

/// A cluster as it is stored.
pub(crate) fn cluster(cluster: &cluster::Cluster) -> written::Cluster {
    let members = cluster.members.iter().map(|(id, member)| written::Member {
        id: id.0,
        peer_urls: member.peer_urls.clone(),
        is_learner: member.is_learner,
        starts: member.starts.0,
        incarnation: Incarnation::written(member.incarnation),
        start_id: StartId::written(member.start_id),
        attributes: Some(attributes(&Attributes {
            name: member.name.clone(),
            client_urls: member.client_urls.clone(),
            proposal: member.proposal.clone(),
        })),
    });
    let gate = match &cluster.gate {
        Gate::Undecided => written::Gate::default(),
        Gate::Decided(decided) => written::Gate { decided: true, features: features(decided) },
    };
    written::Cluster {
        id: cluster.id.0,
        version: cluster.version.map(version),
        members: members.collect(),
        gate: Some(gate),
        inputs: cluster.inputs.0,
        downgrade: cluster.downgrade.map(version),
        behind: cluster.behind.map_or(0, |behind| behind.0),
        lowered_offline: cluster.lowered_offline,
        removed: cluster.removed.iter().map(|id| id.0).collect(),
    }
}

fn attributes(said: &Attributes) -> written::Attributes {
    let proposed = said.proposal.as_ref().map(|proposal| features(&proposal.features));
    written::Attributes {
        name: said.name.clone(),
        client_urls: said.client_urls.clone(),
        proposed_feature_gates: proposed.unwrap_or_default(),
        proposed_at: said.proposal.as_ref().map(|proposal| version(proposal.version)),
    }
}

fn features(features: &Features) -> Vec<written::Feature> {
    features.iter().map(|(name, enabled)| written::Feature { name: name.to_owned(), enabled }).collect()
}

pub(crate) fn version(version: ClusterVersion) -> written::Version {
    written::Version { major: version.major, minor: version.minor }
}
