//! The rules: one a file, in the lists by which they are asked. The first that has something to say decides.
//!
//! Pure. A rule answers `None` where it has nothing to say. Source: agent/PROTOCOL.md, I-1 to I-7, R-1 to R-12.

mod abandoned;
mod alarm;
mod alone;
mod busy;
mod catching_up;
mod clocks;
pub(super) mod cluster_version;
mod differing;
mod examined;
pub(super) mod failed;
mod finished;
mod gates;
mod hindrance;
mod hold;
mod hop;
mod known_of_etcd;
mod needs;
mod never_started;
mod old_patch;
mod other_run;
mod others_first;
mod ownership;
mod paused;
pub(super) mod quorum;
mod quota;
mod settle;
mod step_lock;
mod strict_join;
mod turn;
pub mod twin;
mod unleased;
mod verb;
pub(super) mod versions;
mod way_back;
mod window;

use super::{Case, Next, warning::Warning};
use crate::observe::view::Member;

type Rule = fn(&Case) -> Option<Next>;

const ALWAYS: &[Rule] = &[
    twin::twin,
    ownership::ownership,
    unleased::unleased,
    hop::hop,
    other_run::other_run,
    versions::versions,
    hindrance::hindrance,
    step_lock::step_lock,
    abandoned::abandoned,
    gates::gates,
    finished::finished,
];

/// As a run stands, or is about to.
const WITHIN_A_RUN: &[Rule] = &[
    verb::verb,
    failed::failed,
    paused::paused,
    needs::before_members_go_back,
    settle::settle,
    hold::hold,
    turn::turn,
    alarm::alarm,
    needs::before_members,
];

/// Once before a run begins. Only rules behind `examined` find evidence.
const BEFORE_A_RUN: &[Rule] = &[
    cluster_version::cluster_version,
    strict_join::strict_join,
    needs::before_a_run,
    examined::examined,
    quota::quota,
    known_of_etcd::known_of_etcd,
    differing::differing,
];

/// Before this member is taken down.
const BEFORE_A_MEMBER: &[fn(&Case, &Member) -> Option<Next>] = &[
    window::before_member,
    busy::busy,
    catching_up::catching_up,
    quorum::quorum,
    needs::before_member,
    way_back::way_back,
    others_first::others_first,
];

/// Before a command that may take a host's members down; it is no part of a run.
const BEFORE_A_GUARD: &[Rule] =
    &[twin::twin, ownership::ownership, unleased::unleased, step_lock::step_lock, abandoned::abandoned];

/// Before members are changed; what else is asked of them stands in `plan/membership/`.
const BEFORE_MEMBERS_CHANGE: &[Rule] =
    &[twin::twin, unleased::unleased, other_run::other_run, abandoned::abandoned, failed::failed];

/// What is told and refuses nothing.
const WARNINGS: &[fn(&Case) -> Vec<Warning>] = &[
    alone::alone,
    never_started::never_started,
    old_patch::old_patch,
    quota::near_quota,
    known_of_etcd::told,
    differing::told,
    clocks::clocks,
];

/// What decides before it is asked who goes.
pub(super) fn before_any_member(case: &Case) -> Option<Next> {
    ALWAYS.iter().chain(WITHIN_A_RUN).find_map(|rule| rule(case))
}

/// What keeps a run from beginning.
pub(super) fn before_a_run(case: &Case) -> Option<Next> {
    BEFORE_A_RUN.iter().find_map(|rule| rule(case))
}

/// What keeps a guarded command from being thought of.
pub(super) fn before_a_guard(case: &Case) -> Option<Next> {
    BEFORE_A_GUARD.iter().find_map(|rule| rule(case))
}

/// What keeps a change of members from going on.
pub(super) fn before_members_change(case: &Case) -> Option<Next> {
    BEFORE_MEMBERS_CHANGE.iter().find_map(|rule| rule(case))
}

/// A step lock that stands.
pub(super) fn step_lock(case: &Case) -> Option<Next> {
    step_lock::step_lock(case)
}

/// What keeps a run's next step from beginning: its pause, or this host's window.
pub(super) fn at_rest(case: &Case) -> Option<Next> {
    paused::paused(case).or_else(|| window::window(case))
}

/// An alarm that stands.
pub(super) fn alarm(case: &Case) -> Option<Next> {
    alarm::alarm(case)
}

/// What keeps this member from going.
pub(super) fn before_a_member(case: &Case, pick: &Member) -> Option<Next> {
    BEFORE_A_MEMBER.iter().find_map(|rule| rule(case, pick))
}

/// What an agent waits for while an alarm stands.
pub(super) fn under_alarm(case: &Case, next: Next) -> Next {
    alarm::named(case, next)
}

/// What this member, or another one, is in the middle of.
pub(super) fn busy(case: &Case, pick: &Member) -> Option<Next> {
    busy::busy(case, pick)
}

/// What a person should know.
pub(super) fn warnings(case: &Case) -> Vec<Warning> {
    WARNINGS.iter().flat_map(|rule| rule(case)).collect()
}
