//! The releases that a playbook leads to, one after the other, and where each of them comes from.

use std::path::PathBuf;

use proto::Release;
use semver::VersionReq;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{Sha256, secret};

/// One or more hops, in the order in which they are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hops {
    before: Vec<Hop>,
    last: Hop,
}

/// Every member from one release to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// What every member must run before, or already be at `to`. A pre-release never satisfies a
    /// requirement that does not name one (semver's own rule).
    pub from: VersionReq,
    pub to: Release,
    /// Where that release comes from.
    pub artifact: Artifact,
}

/// A release to be installed: a directory, one executable, or a `.tar.gz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    #[serde(flatten)]
    pub source: Source,
    /// The executable's file name inside a directory or archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<String>,
}

/// Where an artifact is, its templates already expanded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Source {
    /// Fetched over http or https; never used before the digest was compared.
    Url {
        /// The address. Its query is not written out.
        #[serde(rename = "source", serialize_with = "secret::without_query")]
        url: String,
        /// The digest that the bytes must have.
        sha256: Sha256,
    },
    /// A file or directory of this host.
    Path {
        #[serde(rename = "source")]
        path: PathBuf,
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<Sha256>,
    },
}

impl Hops {
    pub fn one(hop: Hop) -> Self {
        Self { before: Vec::new(), last: hop }
    }

    /// In the order in which they are gone; `None` where there is not one.
    pub fn new(mut hops: Vec<Hop>) -> Option<Self> {
        let last = hops.pop()?;
        Some(Self { before: hops, last })
    }

    pub fn first(&self) -> &Hop {
        self.before.first().unwrap_or(&self.last)
    }

    /// The one whose release every member runs in the end.
    pub fn last(&self) -> &Hop {
        &self.last
    }

    pub fn iter(&self) -> impl Iterator<Item = &Hop> {
        self.before.iter().chain([&self.last])
    }

    /// Whether there is more than one.
    pub fn are_several(&self) -> bool {
        !self.before.is_empty()
    }
}

/// As it is written in a playbook: `from` of the first, `to` of the last, and what all need.
impl Serialize for Hops {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("from", &self.first().from.to_string())?;
        map.serialize_entry("to", &self.last.to)?;
        match self.are_several() {
            false => map.serialize_entry("artifact", &self.last.artifact)?,
            true => map.serialize_entry("artifacts", &ByRelease(self))?,
        }
        map.end()
    }
}

struct ByRelease<'a>(&'a Hops);

impl Serialize for ByRelease<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|hop| (hop.to.to_string(), &hop.artifact)))
    }
}

impl Source {
    /// The digest that the artifact must have, if one was given.
    pub fn sha256(&self) -> Option<&Sha256> {
        match self {
            Self::Url { sha256, .. } => Some(sha256),
            Self::Path { sha256, .. } => sha256.as_ref(),
        }
    }
}
