//! A snapshot of etcd's: where it stands in the log, and what of the v2 store is in it.
//!
//! The store is JSON, and may be long: it is read through, and nothing of it is kept. `/0` is the cluster's, `/1` has users' keys, `/2` their
//! authentication. Source: etcd v3.6.14, `server/etcdserver/api/snap/snapshotter.go` (`Read`), `membership/storev2.go` (`IsMetaStoreOnly`).

use std::fmt;

use prost::Message;
use proto::ClusterVersion;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host::files) struct Snapshot {
    pub(super) at: Position,
    /// What is in its store; `None` where that is not understood.
    pub(in crate::host::files) store: Option<Store>,
}

/// A place in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) index: u64,
    pub(super) term: u64,
}

/// What is in the v2 store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host::files) struct Store {
    /// The cluster version; a cluster that has just begun has none yet.
    pub(in crate::host::files) version: Option<ClusterVersion>,
    /// Whether 3.6 would not start on it.
    pub(super) has_content: bool,
}

/// `snappb.Snapshot`: a checksum (CRC-32C), and a `raftpb.Snapshot`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Checked {
    #[prost(uint32, optional, tag = "1")]
    pub(super) checksum: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) data: Option<Vec<u8>>,
}

/// `raftpb.Snapshot`: the v2 store as JSON, and where it stands in the log.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OfRaft {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) data: Option<Vec<u8>>,
    #[prost(message, optional, tag = "2")]
    pub(super) metadata: Option<Metadata>,
}

/// `raftpb.SnapshotMetadata`, without the members.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Metadata {
    #[prost(uint64, optional, tag = "2")]
    pub(super) index: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) term: Option<u64>,
}

impl Snapshot {
    /// `None` for a file that etcd passes over: one that is torn, or that it is writing.
    pub(in crate::host::files) fn read(file: &[u8]) -> Option<Self> {
        let checked = Checked::decode(file).ok()?;
        let data = checked
            .data
            .filter(|data| crc32c::crc32c(data) == checked.checksum.unwrap_or_default() || cfg!(fuzzing))?;
        let of_raft = OfRaft::decode(&*data).ok()?;
        let metadata = of_raft.metadata.unwrap_or_default();
        let at = Position { index: metadata.index.unwrap_or_default(), term: metadata.term.unwrap_or_default() };
        let top = serde_json::from_slice::<Json>(&of_raft.data.unwrap_or_default()).ok().and_then(|json| json.root);
        Some(Self { at, store: top.map(|top| top.children) })
    }
}

#[derive(Deserialize)]
struct Json {
    #[serde(rename = "Root")]
    root: Option<Top>,
}

#[derive(Deserialize)]
struct Top {
    #[serde(rename = "Children")]
    children: Store,
}

/// What lies below a node, or at one.
trait Below {
    /// Whether 3.6 takes it for content.
    fn is_content(&self) -> bool;
}

/// Something that counts because it is there.
struct There;

/// A folder of the store, or a key, which has no children.
#[derive(Deserialize)]
#[serde(bound = "T: Below + Deserialize<'de>")]
struct Node<T> {
    #[serde(rename = "Children")]
    children: Option<Any<T>>,
}

/// The children of a node, and whether any is content.
struct Any<T>(bool, std::marker::PhantomData<T>);

#[derive(Deserialize)]
struct OfTheCluster {
    #[serde(rename = "Children", default)]
    children: Option<OfTheClusterBelow>,
}

#[derive(Deserialize)]
struct OfTheClusterBelow {
    version: Option<Key>,
}

#[derive(Deserialize)]
struct Key {
    #[serde(rename = "Value")]
    value: String,
}

/// A name below a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Cluster,
    /// What authentication has there lies a folder further down, and is left empty by who takes it back.
    Auth,
    /// etcd does not list it, and so its check does not see it.
    Hidden,
    Other,
}

impl OfTheCluster {
    fn version(self) -> Option<ClusterVersion> {
        let release: proto::Release = self.children?.version?.value.parse().ok()?;
        Some(release.cluster_version())
    }
}

impl Below for There {
    fn is_content(&self) -> bool {
        true
    }
}

impl<T> Below for Node<T> {
    fn is_content(&self) -> bool {
        self.children.as_ref().is_some_and(|children| children.0)
    }
}

impl<'de> Deserialize<'de> for There {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;
        impl Visitor<'_> for Names {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "0" => Name::Cluster,
                    "2" => Name::Auth,
                    _ if name.starts_with('_') => Name::Hidden,
                    _ => Name::Other,
                })
            }
        }
        from.deserialize_str(Names)
    }
}

impl<'de, T: Below + Deserialize<'de>> Deserialize<'de> for Any<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Children<T>(std::marker::PhantomData<T>);
        impl<'de, T: Below + Deserialize<'de>> Visitor<'de> for Children<T> {
            type Value = bool;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("children by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut children: A) -> Result<bool, A::Error> {
                let mut found = false;
                while let Some(name) = children.next_key::<Name>()? {
                    match name {
                        Name::Hidden => drop(children.next_value::<IgnoredAny>()?),
                        _ => found |= children.next_value::<T>()?.is_content(),
                    }
                }
                Ok(found)
            }
        }
        let found = from.deserialize_map(Children::<T>(std::marker::PhantomData))?;
        Ok(Self(found, std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for Store {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Children;
        impl<'de> Visitor<'de> for Children {
            type Value = Store;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("children by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut children: A) -> Result<Store, A::Error> {
                let mut found = Store { version: None, has_content: false };
                while let Some(name) = children.next_key::<Name>()? {
                    match name {
                        Name::Cluster => found.version = children.next_value::<OfTheCluster>()?.version(),
                        Name::Auth => found.has_content |= children.next_value::<Node<Node<There>>>()?.is_content(),
                        Name::Hidden => drop(children.next_value::<IgnoredAny>()?),
                        Name::Other => found.has_content |= children.next_value::<Node<There>>()?.is_content(),
                    }
                }
                Ok(found)
            }
        }
        from.deserialize_map(Children)
    }
}
