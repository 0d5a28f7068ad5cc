//! Two kinds of version that must never be compared by accident: what a member runs ([`Release`]) and
//! what the cluster has agreed on ([`ClusterVersion`]).

use std::{fmt, str::FromStr};

use semver::Version;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The exact release of one binary, such as `3.5.30`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(pub Version);

impl Release {
    /// A release without pre-release or build tags.
    pub fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self(Version::new(major, minor, patch))
    }

    /// The cluster version that a cluster of members of this release settles at.
    pub fn cluster_version(&self) -> ClusterVersion {
        ClusterVersion { major: self.0.major, minor: self.0.minor }
    }
}

/// What the members agreed on: a minor, never a patch (etcd, `etcdcluster` in `GET /version`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterVersion {
    /// Major number.
    pub major: u64,
    /// Minor number.
    pub minor: u64,
}

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no version such as {example}")]
pub struct VersionError {
    text: String,
    example: &'static str,
}

impl FromStr for Release {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        Version::parse(text).map(Self).map_err(|_| VersionError { text: text.into(), example: "3.5.30" })
    }
}

impl FromStr for ClusterVersion {
    type Err = VersionError;

    /// Reads `3.5` and, as etcd prints it, `3.5.0`.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError { text: text.into(), example: "3.5" };
        let mut numbers = text.splitn(3, '.');
        let mut next = || numbers.next().and_then(|n| n.parse().ok()).ok_or_else(error);
        Ok(Self { major: next()?, minor: next()? })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ClusterVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

macro_rules! as_text {
    ($name:ident) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    };
}

as_text!(Release);
as_text!(ClusterVersion);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_version_is_a_minor_however_it_is_written() {
        assert_eq!("3.5".parse(), Ok(ClusterVersion { major: 3, minor: 5 }));
        assert_eq!("3.5.0".parse(), Ok(ClusterVersion { major: 3, minor: 5 }));
        for bad in ["", "3", "3.", "not_decided", "3.x"] {
            assert!(bad.parse::<ClusterVersion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_release_is_exact() {
        assert_eq!("3.5.30".parse::<Release>().map(|r| r.cluster_version().to_string()), Ok("3.5".into()));
        assert!("3.5".parse::<Release>().is_err());
    }
}
