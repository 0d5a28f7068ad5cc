//! The catalogue: what is known to hurt an etcd cluster whose members are restarted or change their release.
//!
//! Data, one shape an entry. `on_the_way.rs` has what stops an upgrade or the one after it, `certificates.rs` what a newer Go refuses,
//! `restarts.rs` what members of a release do when they go down and come back, `going_down.rs` what stops a downgrade. Read off etcd's
//! change logs, sources, guides and issues up to 3.5.33, 3.6.14 and 3.7.1.

mod certificates;
mod going_down;
mod on_the_way;
mod restarts;

use proto::Release;
use semver::{Version, VersionReq};
use serde::Serialize;

/// Something that is known to hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hazard {
    /// An entry's own for ever: scripts and playbooks name it.
    pub id: &'static str,
    #[serde(flatten)]
    pub releases: Releases,
    pub symptom: &'static str,
    /// What else must be so; nothing where the releases decide.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub when: &'static str,
    pub found_in: Place,
    pub act: Act,
    /// Whether a member that meets it does not start any more, whatever else is so.
    #[serde(skip_serializing_if = "is_false")]
    pub is_certain: bool,
    /// Nothing where there is nothing to do but know.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub remedy: &'static str,
    pub proof: &'static [Proof],
    /// `etcd#20967` is an issue or a change of etcd-io/etcd; other repositories have their whole name; else a document of etcd's.
    pub sources: &'static [&'static str],
}

/// Which releases it is about. Each is a requirement such as `>=3.5.0, <3.5.26`, and several with `||` between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Releases {
    /// Members of the first are started with the second.
    Way { from: &'static str, to: &'static str },
    /// The same, on the way down.
    Back { from: &'static str, to: &'static str },
    /// Members run it, before or after.
    Run { any_of: &'static str },
}

/// Where it is found, without stopping anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The releases decide.
    Releases,
    /// The database of each member against what it says of the members.
    Store,
    /// Flags, environment and configuration file of each member.
    Settings,
    /// Snapshots and log of each member.
    Log,
    /// Revisions and hashes of all members against each other.
    Revisions,
    /// What a member is in the middle of.
    Activity,
    Certificates,
    /// What the members say of themselves and of each other.
    Members,
    /// Outside of etcd: in its users' tools.
    Nowhere,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Nothing is stopped before it is mended.
    Refuse,
    Warn,
    /// It passes.
    Wait,
    /// A tool must not do it.
    Never,
    /// It is good to know.
    Tell,
}

/// How well it is proved, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// On real binaries.
    Seen,
    /// Read in etcd's source or change log.
    Source,
    /// etcd's own guide says so.
    Guide,
    /// Reported in an issue.
    Reported,
    /// It follows from the source, and was not seen to happen.
    Deduced,
    /// General knowledge that nobody has looked up.
    Heard,
}

/// What the agent sees to besides what the releases decide: `execute/certificates.rs`, `execute/data_dir.rs`, `execute/v2_api.rs`, `execute/releases.rs`, `execute/lost_settings.rs`,
/// `execute/next_start.rs`,
/// `plan/rules/differing.rs`, `plan/rules/busy.rs`, `plan/in_store.rs`, `plan/change/downgrade.rs`, `plan/membership/`, and `host/process/connections.rs`, which names who keeps a member from its end.
const SEEN_TO: &[&str] = &[
    "hop-too-fast-37",
    "flags-gone-35",
    "flags-gone-36",
    "flags-gone-37",
    "flags-gone-38",
    "down-flags-36-35",
    "old-binary-after-rise",
    "newer-data-dir",
    "down-wal-newer",
    "down-cancels-itself",
    "add-while-one-down",
    "promote-unstarted",
    "update-promotes",
    "silent-connection",
    "setting-lost",
    "no-fsync",
    "environment-differs",
    "zombie-members",
    "member-only-v2",
    "learner-returns",
    "peer-url-clients",
    "auth-34-35",
    "auth-not-loaded",
    "auth-start-panic",
    "down-auth-35-34",
    "v2-content-snap",
    "v2-content-wal",
    "v2-still-on",
    "v3-db-missing",
    "tls-cn-only",
    "tls-118",
    "tls-123",
    "tls-124",
    "certificate-not-valid",
    "data-differs",
    "users-differ",
    "defrag-while-snapshot",
    "crash-in-defrag",
    "kill-in-compaction",
];

impl Hazard {
    const fn new(id: &'static str, releases: Releases, symptom: &'static str) -> Self {
        let (when, found_in, act, remedy, is_certain) = ("", Place::Releases, Act::Tell, "", false);
        Self { id, releases, symptom, when, found_in, act, is_certain, remedy, proof: &[], sources: &[] }
    }

    const fn way(id: &'static str, from: &'static str, to: &'static str, symptom: &'static str) -> Self {
        Self::new(id, Releases::Way { from, to }, symptom)
    }

    const fn back(id: &'static str, from: &'static str, to: &'static str, symptom: &'static str) -> Self {
        Self::new(id, Releases::Back { from, to }, symptom)
    }

    const fn run(id: &'static str, any_of: &'static str, symptom: &'static str) -> Self {
        Self::new(id, Releases::Run { any_of }, symptom)
    }

    const fn when(self, found_in: Place, when: &'static str) -> Self {
        Self { found_in, when, ..self }
    }

    const fn act(self, act: Act, remedy: &'static str) -> Self {
        Self { act, remedy, ..self }
    }

    const fn certain(self) -> Self {
        Self { is_certain: true, ..self }
    }

    const fn known(self, proof: &'static [Proof], sources: &'static [&'static str]) -> Self {
        Self { proof, sources, ..self }
    }

    /// Whether a run of the agent is refused, warned, or goes about it so that it does not happen; else it is for a person to look at.
    pub fn is_seen_to(&self) -> bool {
        self.found_in == Place::Releases || SEEN_TO.contains(&self.id)
    }

    /// Whether a person may pass it: only what a run is refused for, and what is not certain to keep a member down.
    pub fn can_be_accepted(&self) -> bool {
        self.act == Act::Refuse && !self.is_certain
    }

    /// Whether this is to be done about it where members of the first are started with the second, whatever else is so.
    pub fn calls_for(&self, act: Act, from: &Release, to: &Release) -> bool {
        self.act == act && self.found_in == Place::Releases && self.concerns(Some(from), Some(to))
    }

    /// Whether it is met on this way by whoever has what `when` names, whichever patch brought him to that.
    pub fn is_ahead(&self, from: &Release, to: &Release) -> bool {
        match self.releases {
            Releases::Way { to: after, .. } => from < to && holds(after, to) && !holds(after, from),
            _ => self.concerns(Some(from), Some(to)),
        }
    }

    /// Whether the releases let it happen where members of the first are started with the second.
    pub fn concerns(&self, from: Option<&Release>, to: Option<&Release>) -> bool {
        let fits = |spans: &str, release: Option<&Release>| release.is_none_or(|release| holds(spans, release));
        match self.releases {
            // Who runs such a release already meets nothing new in another patch of it.
            Releases::Way { from: "*", to: after } if after != "*" => {
                fits(after, to) && (to.is_none() || from.is_none_or(|from| !holds(after, from)))
            }
            Releases::Way { from: before, to: after } => fits(before, from) && fits(after, to),
            Releases::Back { from: before, to: after } => {
                let is_down = from.zip(to).is_none_or(|(from, to)| to < from);
                is_down && fits(before, from) && fits(after, to)
            }
            Releases::Run { any_of } => match (from, to) {
                (None, None) => true,
                (from, to) => [from, to].into_iter().flatten().any(|release| holds(any_of, release)),
            },
        }
    }
}

/// As serde wants it.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Whether one of these requirements takes the release. One that cannot be read takes none. Candidates and distributors' builds, such as
/// `3.5.21-k3s1`, count as the release that they are named after.
fn holds(spans: &str, release: &Release) -> bool {
    let plain = Version::new(release.0.major, release.0.minor, release.0.patch);
    spans.split("||").any(|span| VersionReq::parse(span.trim()).is_ok_and(|span| span.matches(&plain)))
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Hazard> {
    [on_the_way::HAZARDS, certificates::HAZARDS, restarts::HAZARDS, going_down::HAZARDS].into_iter().flatten()
}

/// The one of this id.
pub fn find(id: &str) -> Option<&'static Hazard> {
    all().find(|hazard| hazard.id == id)
}

/// One that a person may pass by this id.
///
/// # Errors
/// Why there is none.
pub fn acceptable(id: &str) -> Result<&'static Hazard, String> {
    match find(id) {
        None => Err(format!("there is no hazard `{id}`")),
        Some(hazard) if hazard.can_be_accepted() => Ok(hazard),
        Some(hazard) if hazard.act == Act::Refuse => {
            Err(format!("`{id}` is never accepted: a member that meets it does not start any more"))
        }
        Some(_) => Err(format!("no run is refused for `{id}`, so there is nothing to accept")),
    }
}

#[cfg(test)]
#[path = "hazards_test.rs"]
mod tests;
