//! Scale and Replace: who joins, who is promoted, who leaves, and when.
//!
//! Pure, and without a memory: each look is judged anew by the run's list (`keys/membership.rs`), the members, and this host's
//! places. Nothing is written down by a host itself: whatever was begun is in the run or in the step lock, and an id goes one
//! way only, from learner to voter to removed. So whoever looks next goes on where another one ended.
//! Source: agent/MEMBERS.md.

mod begin;
pub mod forecast;
mod hold;
mod join;
mod leave;
mod promote;
pub mod refusal;
mod step;
pub mod survey;

use std::sync::Arc;

use proto::MemberId;

use super::{
    Case, Finish, Next, Verb, protection,
    refusal::{Refusal, Wait},
    rules,
};
use crate::{
    keys::{
        RunResult, RunState, StepLock,
        change::Change,
        host_id::HostId,
        host_record::HostRecord,
        membership::{Join, Membership, RoleChange},
        seat::Seat,
    },
    observe::view::{ClusterView, Member, Role},
};
pub use begin::membership as initial;
use refusal::MembersRefusal;
use survey::{Data, Place, Survey};

/// What is done next. All is looked at again after each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// Write this into the run.
    Note(Membership),
    /// Write this of a host; nothing is to be known of it any more where it is `None`.
    Host(HostId, Option<HostRecord>),
    /// Put the data in this seat's directory aside.
    Archive(usize),
    /// Have this seat's newcomer added as a learner.
    Add(usize),
    /// Start this seat's newcomer, which is listed by this id.
    Start(usize, MemberId),
    /// Remove a newcomer that was given up; it does not vote.
    TakeBack(MemberId),
    /// Stop this seat's process for good, and put its data aside.
    Retire(usize),
    HandOver {
        from: MemberId,
        to: MemberId,
    },
    /// Put the step lock, with the baton.
    Lock(RoleStep),
    /// Make the call that the step which stands is for, with the baton.
    Call(RoleStep),
    /// The newcomer of the step is to be promoted no more, but removed; with the baton.
    Turn(MemberId),
    /// The step has come to its end: it goes, and the run says this.
    End(Membership),
}

/// One change of a member's role: the action that can cost the quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoleStep {
    pub member: MemberId,
    pub change: RoleChange,
}

/// A run that stands, and what was found of its members.
#[derive(Clone, Copy)]
struct Standing<'a> {
    case: &'a Case<'a>,
    membership: &'a Membership,
    survey: &'a Survey,
}

pub(super) fn next(case: &Case) -> Next {
    let Some(survey) = case.survey else { return Next::Wait(Wait::Answer) };
    rules::before_members_change(case)
        .or_else(|| refused_verb(case))
        .or_else(|| clean(case, survey))
        .or_else(|| over(case))
        .unwrap_or_else(|| match case.current_run().map(|run| run.membership.as_deref()) {
            None => begin::begin(case, survey),
            Some(Some(membership)) => within(&Standing { case, membership, survey }),
            // Another run's place was taken (`--replace`).
            Some(None) => begin::take_over(case, survey),
        })
}

fn refused_verb(case: &Case) -> Option<Next> {
    match case.me.verb {
        Verb::Rollback => Some(Next::Refuse(Refusal::NothingToRollBack)),
        Verb::Finalize => Some(Next::Refuse(Refusal::NotHeld)),
        Verb::Resume if case.current_run().is_none() && !is_over_with_me(case) => {
            Some(Next::Refuse(Refusal::NothingToResume))
        }
        Verb::Run | Verb::Resume | Verb::Guard(_) => None,
    }
}

/// A member of this host that was removed is stopped for good. Nobody waits for that.
fn clean(case: &Case, survey: &Survey) -> Option<Next> {
    let joins = |name: &str| case.current_run().and_then(|run| run.membership.as_ref()?.join(name)).is_some();
    case.me.seats.0.iter().zip(&survey.places).enumerate().find_map(|(at, (seat, place))| {
        let is_ours = matches!(place.data, Data::Of { cluster, member }
            if cluster == case.view.cluster && !survey.listed.contains_key(&member));
        let is_wanted = wants(&case.me.intent.change, &seat.name);
        // What lies there may be an old folder, beside a member of this seat that serves: its process is not touched. Who is removed
        // may itself be the one that was looked at, and not know it yet.
        let serves = |member: &Member| *member.name == *seat.name && survey.listed.contains_key(&member.id);
        // Its step ends first: then others see to the end of the run meanwhile.
        let is_ours = is_ours && !case.view.members.iter().any(serves) && !ends_step(case, &place.data);
        // Where it is to come back, its old data is put aside once it has its place.
        let is_over = is_ours && !joins(&seat.name) && (!is_wanted || place.runs);
        is_over.then_some(Next::Members(Move::Retire(at)))
    })
}

/// Whether what is left to do in the step in hand is to say that this member of this host has gone.
fn ends_step(case: &Case, data: &Data) -> bool {
    let Data::Of { member, .. } = *data else { return false };
    let is_its =
        |lock: &StepLock| (lock.member, lock.host, lock.role) == (member, case.me.host, Some(RoleChange::Leave));
    case.view.member(member).is_none() && case.keys.step.as_ref().is_some_and(|lock| is_its(&lock.value))
}

fn over(case: &Case) -> Option<Next> {
    is_over_with_me(case).then_some(Next::Finish(Finish::Done(RunResult::Reached)))
}

/// The run that this process had a part in has come to its end.
fn is_over_with_me(case: &Case) -> bool {
    let run = case.keys.run.as_ref().map(|run| &run.value);
    run.is_some_and(|run| {
        run.state == RunState::Done { result: RunResult::Reached }
            && *run.intent == *case.me.intent
            && case.joined == Some(run.id)
    })
}

fn within(standing: &Standing) -> Next {
    let case = standing.case;
    if case.me.verb == Verb::Resume && case.may_resume && standing.foreign().is_some() {
        return accept(standing);
    }
    if let Some(member) = standing.foreign() {
        return refuse(MembersRefusal::ForeignChange { member, is_listed: standing.is_listed(member) });
    }
    let listed = |member| standing.is_listed(member);
    if let Some((host, record)) = protection::out_of_date(case.keys, listed, Some(standing.membership)) {
        return Next::Members(Move::Host(host, record));
    }
    if let Some(lock) = &case.keys.step {
        return step::step(standing, lock);
    }
    if let Some(alarm) = rules::alarm(case).or_else(|| rules::at_rest(case)) {
        return alarm;
    }
    let found: Vec<Next> =
        (0..case.me.seats.0.len()).filter_map(|at| standing.seat(at)).chain(leave::of_the_dead(standing)).collect();
    let acts = found.iter().find(|next| matches!(next, Next::Members(_))).cloned();
    let refuses = || found.iter().find(|next| matches!(next, Next::Refuse(_))).cloned();
    acts.or_else(refuses).or_else(|| found.first().cloned()).unwrap_or_else(|| standing.my_part_is_done())
}

/// Whether members of the run that stands are there, or gone, by somebody else's hand; or that is not known.
pub(super) fn has_foreign_change(case: &Case) -> bool {
    let Some(membership) = case.current_run().and_then(|run| run.membership.as_deref()) else { return false };
    case.survey.is_none_or(|survey| Standing { case, membership, survey }.foreign().is_some())
}

/// `agent resume`: the members are as they are to be. A step may stand meanwhile, and could not end before that.
fn accept(standing: &Standing) -> Next {
    let Standing { case, membership, survey } = *standing;
    let expected = begin::listed(case.view, survey, &membership.joins);
    let leaving = begin::leaving_now(case, membership);
    Next::Members(Move::Note(Membership { expected, leaving, ..membership.clone() }))
}

/// Whether a member of this name is to vote at the end.
pub fn wants(change: &Change, name: &str) -> bool {
    match change {
        Change::Scale(scale) => scale.members.iter().any(|one| **one == *name),
        Change::Replace(replace) => *replace.by == *name,
        Change::Upgrade(_) | Change::Downgrade(_) | Change::Restart(_) => false,
    }
}

/// Who is to come, in order.
fn wanted(change: &Change) -> Vec<Arc<str>> {
    match change {
        Change::Scale(scale) => scale.members.clone(),
        Change::Replace(replace) => vec![replace.by.clone()],
        Change::Upgrade(_) | Change::Downgrade(_) | Change::Restart(_) => Vec::new(),
    }
}

impl<'a> Standing<'a> {
    fn is_listed(&self, member: MemberId) -> bool {
        self.survey.listed.contains_key(&member)
    }

    /// The voter of this name that is not about to go.
    fn voter(&self, name: &str) -> Option<&'a Member> {
        let is_it = |member: &&Member| *member.name == *name && !self.membership.leaving.contains(&member.id);
        self.case.view.voters().find(is_it)
    }

    /// The members that are to go and are listed yet.
    fn leavers(&self) -> impl Iterator<Item = &'a Member> + use<'a> {
        let Self { case, membership, survey } = *self;
        let ids = membership.leaving.iter().filter(move |id| survey.listed.contains_key(id));
        ids.filter_map(move |id| case.view.member(*id))
    }

    /// A member that is there, or is gone, by somebody else's hand. A learner that never started costs nothing, and may be what a call
    /// of ours left that came late; a voter counts as soon as it is listed, and is added by nobody here.
    fn foreign(&self) -> Option<MemberId> {
        let Self { case, membership, survey } = *self;
        let is_known = |id: &MemberId| {
            membership.is_expected(*id)
                || membership.joins.iter().any(|join| join.member == Some(*id))
                || case.view.member(*id).is_none_or(is_idle)
        };
        let goes = |id: MemberId| {
            let lock = case.keys.step.as_ref().map(|lock| (lock.value.member, lock.value.role));
            lock == Some((id, Some(RoleChange::Leave)))
        };
        let unexpected = survey.listed.keys().find(|id| !is_known(id)).copied();
        let missing = || membership.expected.iter().map(|one| one.member).find(|id| !self.is_listed(*id) && !goes(*id));
        unexpected.or_else(missing)
    }

    /// The newcomer's id, where it is listed by what it is to be reached at.
    fn listed_at(&self, urls: &[String]) -> Option<MemberId> {
        let has = |listed: &std::collections::BTreeSet<String>| urls.iter().any(|url| listed.contains(url));
        self.survey.listed.iter().find(|(_, listed)| has(listed)).map(|(id, _)| *id)
    }

    /// This host's place that has the data of this member, and whether its process runs.
    fn place_of(&self, seat: &str, id: MemberId) -> Option<(usize, bool)> {
        let mut places = self.case.me.seats.0.iter().zip(&self.survey.places).enumerate();
        let is_its = |data: &Data| matches!(data, Data::Of { member, .. } if *member == id);
        let found = places.find(|(_, (own, place))| *own.name == *seat && is_its(&place.data));
        found.map(|(at, (_, place))| (at, place.runs))
    }

    /// What is next for one seat of this host.
    fn seat(&self, at: usize) -> Option<Next> {
        let Self { case, membership, survey } = *self;
        let (seat, place) = (case.me.seats.0.get(at)?, survey.places.get(at)?);
        if let Some(join) = membership.join(&seat.name) {
            return join::next(self, at, place, join);
        }
        let leaver = self.leavers().find(|member| member.name == seat.name);
        if let Some(gone) = emptied(case.view, &membership.leaving, seat, place) {
            return Some(refuse(gone));
        }
        match leaver {
            Some(leaver) if leaver.is_ready() => leave::of_the_ready(self, leaver),
            // It is brought up first, if that can be done.
            Some(_) if !wants(&case.me.intent.change, &seat.name) => None,
            _ if wants(&case.me.intent.change, &seat.name) => join::reserve(self, at, place),
            _ => None,
        }
    }

    /// Nothing is left for this host. Whoever is left may be at work, or may still come.
    fn my_part_is_done(&self) -> Next {
        let Self { case, membership, .. } = *self;
        let change = &case.me.intent.change;
        let missing = wanted(change).into_iter().filter(|name| self.voter(name).is_none());
        let mut left: Vec<Arc<str>> = missing.chain(self.leavers().map(|member| member.name.clone())).collect();
        left.extend(membership.joins.iter().map(|join| join.seat.clone()));
        left.sort();
        left.dedup();
        let is_at_work = |name: &Arc<str>| {
            let mut seats = case.keys.agents.values().flat_map(|agent| &agent.value.seats.0);
            seats.any(|seat| seat.name == *name)
        };
        let is_own = |name: &Arc<str>| case.me.seats.0.iter().any(|seat| seat.name == *name);
        let mut others = left.iter().filter(|name| !is_own(name));
        match others.any(is_at_work) {
            _ if left.is_empty() => self.settle(),
            true => Next::Wait(Wait::Seats { seats: left }),
            false if !case.is_window_over() => Next::Wait(Wait::OthersToJoin),
            false => Next::Finish(Finish::Unseated { seats: left }),
        }
    }

    fn settle(&self) -> Next {
        let sick = self.case.view.voters().find(|member| !member.is_ready());
        sick.map_or(Next::Settle, |member| super::order::another_is_sick(self.case, member.id))
    }

    /// A voter that is not ready and is to stay, or that stands beside what is about to be done.
    fn sick_beside(&self, member: MemberId) -> Option<&'a Member> {
        self.case.view.voters().find(|other| other.id != member && !other.is_ready())
    }
}

/// A member of this host's seat that is to stay, and has lost its data: it would begin anew under an id that others count on.
fn emptied(view: &ClusterView, leaving: &[MemberId], seat: &Seat, place: &Place) -> Option<MembersRefusal> {
    let stays = |voter: &&Member| voter.name == seat.name && !leaving.contains(&voter.id);
    let voter = view.voters().find(stays).filter(|voter| place.is_empty() && !voter.is_ready())?;
    Some(MembersRefusal::DataGone { seat: seat.name.clone(), member: voter.id })
}

fn refuse(refusal: MembersRefusal) -> Next {
    Next::Refuse(Refusal::Members(refusal))
}

/// Waits for a member that is not ready, or refuses where nobody sees to it.
fn waits_for(case: &Case, member: MemberId) -> Next {
    super::order::another_is_sick(case, member)
}

/// How many voters etcd wants started before it promotes one (`isConnectedToQuorumSinceNewlyAdded`, `IsReadyToPromoteMember`).
fn enough_to_promote(voters: usize, ready: usize) -> bool {
    voters == 1 || ready > voters.div_ceil(2)
}

fn is_learner(member: &Member) -> bool {
    member.role == Role::Learner
}

/// Added as a learner, and never started: it costs nobody anything.
fn is_idle(member: &Member) -> bool {
    is_learner(member) && member.has_never_started()
}

fn of_join(join: &Join, stage: crate::keys::membership::Stage, member: Option<MemberId>) -> Join {
    Join { stage, member, ..join.clone() }
}

#[cfg(test)]
#[path = "membership_test.rs"]
mod tests;
