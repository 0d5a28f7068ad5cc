//! The cluster that a database is of: what a new cluster is made from. Source: etcd v3.6.14, `server/storage/schema/`.

use std::{collections::BTreeSet, fs::File};

use proto::{ClusterVersion, MemberId, Revision, etcdserverpb::Member};
use serde::Deserialize;

use super::{
    bbolt::Database,
    content::{self, NotUnderstood},
};

/// What it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// Those that were removed are left out.
    pub members: Vec<Member>,
    /// The cluster version; `None` before a leader had decided it.
    pub version: Option<ClusterVersion>,
    /// Of its last write.
    pub revision: Option<Revision>,
    pub auth_is_on: bool,
}

/// A member as etcd writes it, as JSON.
#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    name: String,
    #[serde(rename = "peerURLs", default)]
    peer_urls: Vec<String>,
    #[serde(rename = "clientURLs", default)]
    client_urls: Vec<String>,
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
        let members = stored.into_iter().filter(|(key, _)| !removed.contains(key)).map(|(key, value)| {
            let key = String::from_utf8_lossy(&key);
            member(&key, &value).ok_or_else(|| NotUnderstood::Member(key.chars().take(32).collect()))
        });
        let members = members.collect::<Result<_, _>>()?;
        let auth_is_on = content::auth_is_on(&database)?;
        let cluster = database.bucket("cluster")?.unwrap_or_default();
        let version = cluster.iter().find(|(key, _)| key == b"clusterVersion");
        let version = version.and_then(|(_, value)| String::from_utf8_lossy(value).parse::<proto::Release>().ok());
        Ok(Self { members, version: version.map(|release| release.cluster_version()), revision, auth_is_on })
    }

    /// Those of its members that vote.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }
}

fn member(key: &str, value: &[u8]) -> Option<Member> {
    let MemberId(id) = key.parse().ok()?;
    let Stored { name, peer_urls, client_urls, is_learner } = serde_json::from_slice(value).ok()?;
    Some(Member { id, name, peer_urls, client_urls, is_learner })
}
