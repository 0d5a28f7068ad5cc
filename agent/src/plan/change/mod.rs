//! What each kind of change asks of a run: one file a kind, and every kind answers the same questions.
//!
//! A rule asks [`Change::kind`] and never which kind it is. Pure. A new kind is a file here, an arm in `Change::kind`,
//! its part of the playbook (`playbook/parse/kind.rs`), and its words (`report/change.rs`).

mod downgrade;
mod replace;
mod restart;
mod scale;
mod upgrade;

use proto::{ClusterVersion, Release};
use semver::VersionReq;

use super::{
    Case, Next, Verb,
    refusal::Refusal,
    target::{Seated, Target},
};
use crate::{
    journal::restart::Direction,
    keys::change::Change,
    observe::view::{ClusterView, Member},
};

/// What is answered here is what a kind says that brings nobody to another release.
pub trait Kind {
    fn target(&self) -> Target<'_> {
        same_seats(None)
    }

    /// What a member must run to take part, unless it is at the target; `None`: whatever it runs.
    fn from(&self) -> Option<&VersionReq> {
        None
    }

    /// Whether a member has reached the end of this direction; every other one is undone.
    fn is_at(&self, case: &Case, member: &Member, direction: Direction) -> bool;

    /// Whether a member on this release gets to its target without leaving out a minor.
    fn is_one_step_from(&self, release: &Release) -> bool {
        let _ = release;
        true
    }

    /// What would keep a run from its end for ever, at any time.
    fn hindrance(&self, view: &ClusterView) -> Option<Refusal> {
        let _ = view;
        None
    }

    /// What a run does not begin with.
    fn unready(&self, view: &ClusterView) -> Option<Refusal> {
        let _ = view;
        None
    }

    /// What the cluster needs before any member goes forward.
    fn before_members(&self, case: &Case) -> Option<Next> {
        let _ = case;
        None
    }

    /// What the cluster needs before any member goes back, or the run that goes back may end.
    fn before_members_go_back(&self, case: &Case) -> Option<Next> {
        let _ = case;
        None
    }

    /// What this member needs before it goes.
    fn before_member(&self, case: &Case, member: &Member) -> Option<Next> {
        let _ = (case, member);
        None
    }

    /// The point of no return: an old binary starts only below this cluster version. `None`: whatever that is.
    fn old_starts_below(&self) -> Option<ClusterVersion> {
        None
    }

    /// The cluster version that every member must hold before the run has settled.
    fn settled_version(&self, view: &ClusterView, back: bool) -> Option<ClusterVersion> {
        let _ = back;
        common_version(view)
    }

    /// The cluster version that etcd's downgrade leads to. The run enables that one, and has settled once it is over.
    fn lowers_to(&self) -> Option<ClusterVersion> {
        None
    }

    /// Why it does not allow what was typed: without another release there is none to go back to.
    fn refuses(&self, verb: Verb) -> Option<Refusal> {
        (verb == Verb::Rollback).then_some(Refusal::NothingToRollBack)
    }

    /// In a phrase, for a playbook of another kind.
    fn phrase(&self) -> String;

    /// By name in the playbook, what two changes of this kind may differ in.
    fn parts(&self) -> Vec<(&'static str, String)>;
}

impl Change {
    /// What answers for its kind.
    pub fn kind(&self) -> &dyn Kind {
        match self {
            Self::Upgrade(upgrade) => upgrade,
            Self::Downgrade(downgrade) => downgrade,
            Self::Restart(restart) => restart,
            Self::Scale(scale) => scale,
            Self::Replace(replace) => replace,
        }
    }

    /// Whether members come and go by it.
    pub fn changes_members(&self) -> bool {
        matches!(self, Self::Scale(_) | Self::Replace(_))
    }

    /// Whether a member of this name is to go.
    pub fn drops(&self, name: &str) -> bool {
        match self {
            Self::Scale(scale) => !scale.members.iter().any(|wanted| **wanted == *name),
            Self::Replace(replace) => *replace.member == *name,
            Self::Upgrade(_) | Self::Downgrade(_) | Self::Restart(_) => false,
        }
    }

    /// The release that every member is to run; `None` where each keeps its own.
    pub fn to(&self) -> Option<&Release> {
        self.kind().target().release
    }
}

/// Nobody comes and nobody goes.
fn same_seats(release: Option<&Release>) -> Target<'_> {
    Target { seats: Seated::AsListed, release }
}

fn is_at_release(case: &Case, member: &Member, direction: Direction, to: &Release) -> bool {
    let written = || case.current_run().is_some_and(|run| run.done.contains(&member.id));
    let is_new = member.release().map_or_else(written, |release| release == to);
    is_new == (direction == Direction::Forward)
}

/// Of one major, and no minor lies between them.
fn is_one_step_up(lower: &Release, higher: &Release) -> bool {
    let (lower, higher) = (&lower.0, &higher.0);
    lower.major == higher.major && (lower.minor == higher.minor || lower.minor + 1 == higher.minor)
}

/// What the first member says, and so what all must say alike.
fn common_version(view: &ClusterView) -> Option<ClusterVersion> {
    view.started().next()?.report()?.cluster_version
}

fn parts_of(from: &VersionReq, to: &Release) -> Vec<(&'static str, String)> {
    vec![("from", from.to_string()), ("to", to.to_string())]
}
