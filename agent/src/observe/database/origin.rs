//! The cluster that a saved database is of: what a new cluster is made from. Source: etcd v3.6.14, `server/storage/schema/`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
};

use proto::{ClusterVersion, Revision};
use serde::Deserialize;

use super::{
    bbolt::Database,
    content::{self, NotUnderstood},
};

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The voters by name, each with its peer URLs; those that were removed, or never said their name, are left out.
    pub voters: BTreeMap<String, BTreeSet<String>>,
    /// The cluster version; `None` before a leader had decided it.
    pub version: Option<ClusterVersion>,
    /// Of its last write.
    pub revision: Option<Revision>,
}

/// A member as etcd writes it, as JSON.
#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    name: String,
    #[serde(rename = "peerURLs", default)]
    peer_urls: BTreeSet<String>,
    #[serde(rename = "isLearner", default)]
    is_learner: bool,
}

impl Origin {
    /// Reads a database of etcd, with or without a checksum behind it.
    ///
    /// # Errors
    /// [`NotUnderstood`].
    pub fn read(file: File) -> Result<Self, NotUnderstood> {
        let revision = content::revision(file.try_clone().map_err(super::bbolt::Unread::from)?);
        let database = Database::open(file)?;
        let stored = database.bucket("members")?.ok_or(NotUnderstood::NoBucket("members"))?;
        // A database may list somebody who was removed (etcd issue 20967).
        let removed: BTreeSet<_> =
            database.bucket("members_removed")?.unwrap_or_default().into_iter().map(|(key, _)| key).collect();
        let mut voters = BTreeMap::new();
        for (key, value) in stored.into_iter().filter(|(key, _)| !removed.contains(key)) {
            let not_understood = || NotUnderstood::Member(String::from_utf8_lossy(&key).chars().take(32).collect());
            let member: Stored = serde_json::from_slice(&value).map_err(|_| not_understood())?;
            if !member.is_learner && !member.name.is_empty() {
                voters.insert(member.name, member.peer_urls);
            }
        }
        let cluster = database.bucket("cluster")?.unwrap_or_default();
        let version = cluster.iter().find(|(key, _)| key == b"clusterVersion");
        let version = version.and_then(|(_, value)| String::from_utf8_lossy(value).parse::<proto::Release>().ok());
        Ok(Self { voters, version: version.map(|release| release.cluster_version()), revision })
    }
}
