//! Whether a member may take part beside another: by the protocols that both speak, by its release and the cluster version, and by
//! what either demands of the other.
//!
//! Pure. Source: etcd's proposal for join control (leader and follower each look, and who does not fit waits); KEP-4647, "Restart";
//! etcd, `checkVersionCompatibility` in server/etcdserver/api/rafthttp.

use std::fmt;

use proto::{ClusterVersion, Release};

use crate::config::JoinPolicy;

/// What is spoken between members: the lowest and the highest, apart from any release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    pub lowest: u32,
    pub highest: u32,
}

impl Protocols {
    /// Of this source.
    pub const OWN: Self = Self { lowest: 1, highest: 1 };

    fn shares_one_with(self, other: Self) -> bool {
        self.lowest <= other.highest && other.lowest <= self.highest
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lowest == self.highest {
            true => write!(f, "{}", self.lowest),
            false => write!(f, "{} to {}", self.lowest, self.highest),
        }
    }
}

/// What counts of a member when it comes, and of the one that it comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    pub release: Release,
    pub protocols: Protocols,
    /// Not said by releases that know no policy.
    pub policy: Option<JoinPolicy>,
}

/// Why a member may not take part yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("it speaks protocol {joiner}, and the cluster {cluster}: start it with a release that speaks the same")]
    Protocol { joiner: Protocols, cluster: Protocols },
    /// It would stop at the first entry that it does not know.
    #[error(
        "it runs {release}, below cluster version {version}: start it with a release of {version}, or lower the cluster first, \
         one minor at a time (`etcdctl downgrade enable`)"
    )]
    Below { release: Release, version: ClusterVersion },
    /// No minor is left out on the way up.
    #[error(
        "it runs {release}, more than one minor above cluster version {version}: start it with a release of {version} or the \
         minor above it, and bring the whole cluster up one minor at a time"
    )]
    Above { release: Release, version: ClusterVersion },
    #[error(
        "it runs {joiner}, and a member of the cluster {cluster}: --join-policy=strict lets in equal releases only. Start all \
         members with one release, or with --join-policy=compatible"
    )]
    Strict { joiner: Release, cluster: Release },
}

impl Mismatch {
    /// Whether a member so is not talked to at all, in whatever it says that it knows.
    pub fn forbids_talk(&self) -> bool {
        match self {
            Self::Protocol { .. } | Self::Below { .. } => true,
            // Who runs already keeps running: its cluster may have been lowered under it.
            Self::Above { .. } | Self::Strict { .. } => false,
        }
    }
}

/// Whether `joiner` may take part in a cluster at this version, of which the other is a member. A version that nobody knows yet forbids
/// nothing: a new cluster's first may be any. While a downgrade goes on it is lowered before any member is.
///
/// # Errors
/// [`Mismatch`]: the first there is.
pub fn judge(joiner: &Terms, member: &Terms, version: Option<ClusterVersion>) -> Result<(), Mismatch> {
    if !joiner.protocols.shares_one_with(member.protocols) {
        return Err(Mismatch::Protocol { joiner: joiner.protocols, cluster: member.protocols });
    }
    let release = || joiner.release.clone();
    let runs = joiner.release.cluster_version();
    match version {
        Some(version) if runs < version => return Err(Mismatch::Below { release: release(), version }),
        Some(version) if runs.major > version.major || runs.minor > version.minor + 1 => {
            return Err(Mismatch::Above { release: release(), version });
        }
        _ => {}
    }
    let is_strict = [joiner.policy, member.policy].contains(&Some(JoinPolicy::Strict));
    match is_strict && joiner.release != member.release {
        true => Err(Mismatch::Strict { joiner: release(), cluster: member.release.clone() }),
        false => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn terms(release: &str, (lowest, highest): (u32, u32), policy: Option<JoinPolicy>) -> Terms {
        Terms { release: release.parse().unwrap(), protocols: Protocols { lowest, highest }, policy }
    }

    #[test]
    fn who_may_take_part_is_said_by_protocol_version_and_policy() {
        const COMPATIBLE: Option<JoinPolicy> = Some(JoinPolicy::Compatible);
        const STRICT: Option<JoinPolicy> = Some(JoinPolicy::Strict);
        let of = |policy| move |release| terms(release, (1, 1), policy);
        let (compatible, strict, old) = (of(COMPATIBLE), of(STRICT), of(None));
        for (joiner, member, version, refused) in [
            (compatible("3.6.0"), compatible("3.6.0"), "3.6", ""),
            (compatible("3.6.0"), compatible("3.5.0"), "3.5", ""), // the first of a rolling upgrade
            (compatible("3.5.9"), compatible("3.6.0"), "3.5", ""), // the last, started once more
            (compatible("3.6.0"), compatible("3.7.0"), "3.6", ""), // a downgrade: the version falls first
            (old("3.6.0"), compatible("3.7.0"), "3.6", ""),
            (compatible("3.6.0"), compatible("3.7.0"), "3.7", "below cluster version 3.7"),
            (compatible("3.5.0"), compatible("3.7.0"), "3.7", "below cluster version 3.7"),
            (old("3.6.0"), compatible("3.7.0"), "3.7", "below cluster version 3.7"),
            (compatible("3.7.0"), compatible("3.5.0"), "3.5", "more than one minor above cluster version 3.5"),
            (compatible("4.0.0"), compatible("3.7.0"), "3.7", "more than one minor above"),
            (compatible("3.5.0"), compatible("3.7.0"), "", ""), // a new cluster
            (strict("3.6.0"), strict("3.6.0"), "3.6", ""),
            (strict("3.6.1"), strict("3.6.0"), "3.6", "strict lets in equal releases only"),
            (strict("3.6.0"), compatible("3.5.0"), "3.5", "it runs 3.6.0, and a member of the cluster 3.5.0"),
            (compatible("3.6.0"), strict("3.5.0"), "3.5", "strict lets in equal releases only"),
            (old("3.6.0"), strict("3.5.0"), "3.5", "strict lets in equal releases only"),
            (strict("3.6.0"), old("3.5.0"), "3.5", "strict lets in equal releases only"),
            (terms("3.6.0", (2, 3), COMPATIBLE), terms("3.6.0", (1, 2), COMPATIBLE), "3.6", ""),
            (terms("3.6.0", (1, 2), COMPATIBLE), terms("3.6.0", (2, 3), COMPATIBLE), "3.6", ""),
            (
                terms("3.6.0", (3, 4), COMPATIBLE),
                terms("3.6.0", (1, 2), STRICT),
                "3.6",
                "speaks protocol 3 to 4, and the",
            ),
            (
                terms("3.6.0", (1, 1), COMPATIBLE),
                terms("3.6.0", (2, 3), COMPATIBLE),
                "3.6",
                "protocol 1, and the cluster 2 to 3",
            ),
        ] {
            let version = version.parse().ok();
            let found = judge(&joiner, &member, version).err();
            let said = found.as_ref().map(ToString::to_string).unwrap_or_default();
            let fits = if refused.is_empty() { found.is_none() } else { said.contains(refused) };
            assert!(fits, "{joiner:?} to {member:?} at {version:?}: {said}, not {refused}");
        }
    }

    #[test]
    fn a_member_that_runs_is_cut_off_for_no_more_than_it_must() {
        let fits = terms("3.6.0", (1, 1), None);
        let at = |joiner: &Terms, version: &str| judge(joiner, &fits, version.parse().ok()).unwrap_err().forbids_talk();
        assert!(at(&fits, "3.7"), "it would stop at what it does not know");
        assert!(at(&terms("3.6.0", (2, 2), None), "3.6"));
        assert!(!at(&terms("3.8.0", (1, 1), None), "3.6"), "its cluster was lowered under it");
        assert!(!at(&terms("3.7.0", (1, 1), Some(JoinPolicy::Strict)), "3.6"));
    }
}
