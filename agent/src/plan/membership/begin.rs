//! Whether a run may begin, and the list that it begins with.

use std::sync::Arc;

use proto::MemberId;

use super::{
    Move, Standing, emptied, is_idle, is_learner, join,
    refusal::MembersRefusal,
    refuse,
    survey::{Data, Place, Survey},
    waits_for, wanted, wants,
};
use crate::{
    keys::{
        Intent,
        change::{Change, Replace, Scale},
        membership::{Expected, Join, Membership},
    },
    observe::view::{ClusterView, Member},
    plan::{Case, Finish, Next, rules},
};

pub(super) fn begin(case: &Case, survey: &Survey) -> Next {
    let leaving = leaving(&case.me.intent.change, case.view);
    let mut places = case.me.seats.0.iter().zip(&survey.places);
    if let Some(gone) = places.find_map(|(seat, place)| emptied(case.view, &leaving, seat, place)) {
        return refuse(gone);
    }
    if is_reached(case) {
        // Who came back by its name is none that goes any more.
        return sick(case, &[]).unwrap_or(Next::Finish(Finish::NothingToDo));
    }
    rules::step_lock(case)
        .or_else(|| rules::alarm(case))
        .or_else(|| objection(case, survey).map(refuse))
        .or_else(|| unfit(case, survey).map(refuse))
        .or_else(|| degraded(case))
        .or_else(|| several_releases(case).map(refuse))
        .unwrap_or(Next::Begin)
}

/// A newcomer of this host that could not join: no run begins for it.
fn unfit(case: &Case, survey: &Survey) -> Option<MembersRefusal> {
    let membership = membership(&case.me.intent, case.view, survey);
    let standing = Standing { case, membership: &membership, survey };
    let mut places = case.me.seats.0.iter().zip(&survey.places);
    places.find_map(|(seat, place)| {
        let joins = wants(&case.me.intent.change, &seat.name) && standing.voter(&seat.name).is_none();
        if joins { join::unfit(&standing, seat.name.clone(), place) } else { None }
    })
}

/// Whether a member is to be replaced by itself.
pub(super) fn comes_back(change: &Change) -> bool {
    matches!(change, Change::Replace(replace) if replace.member == replace.by)
}

/// As a run begins, for one that stands without a list of its own.
pub(super) fn take_over(case: &Case, survey: &Survey) -> Next {
    match begin(case, survey) {
        Next::Begin | Next::Finish(_) => Next::Members(Move::Note(membership(&case.me.intent, case.view, survey))),
        next => next,
    }
}

/// Who is to go, after others have changed the members: a scaling is about names.
pub(super) fn leaving_now(case: &Case, before: &Membership) -> Vec<MemberId> {
    match &case.me.intent.change {
        change @ Change::Scale(_) => leaving(change, case.view),
        _ => before.leaving.clone(),
    }
}

/// By the names of those that are there.
pub(super) fn is_reached(case: &Case) -> bool {
    let votes = |name: &str| case.view.voters().any(|voter| *voter.name == *name);
    match &case.me.intent.change {
        Change::Scale(Scale { members }) => {
            members.iter().all(|name| votes(name)) && case.view.voters().count() == members.len()
        }
        // One that comes back by its name was there before, too: only the run says that it was replaced.
        Change::Replace(Replace { member, by }) if member == by => {
            let last = case.keys.run.as_ref().map(|run| &run.value);
            let has_come = last.is_some_and(|run| run.is_over() && *run.intent == *case.me.intent);
            has_come && votes(by) && !is_lost_again(case, by)
        }
        Change::Replace(Replace { member, by }) => {
            votes(by) && !case.view.members.iter().any(|one| *one.name == **member)
        }
        Change::Upgrade(_) | Change::Downgrade(_) | Change::Restart(_) => true,
    }
}

/// Whether it came back to this host, and has lost its data once more: the same command brings it back again.
fn is_lost_again(case: &Case, name: &Arc<str>) -> bool {
    let is_down = case.view.voters().any(|voter| voter.name == *name && !voter.is_ready());
    let places = case.survey.map_or(&[][..], |survey| &survey.places);
    let mut own = case.me.seats.0.iter().zip(places).filter(|(seat, _)| seat.name == *name);
    is_down && own.any(|(_, place)| place.is_empty())
}

/// What a new run holds of the members.
pub fn membership(intent: &Intent, view: &ClusterView, survey: &Survey) -> Membership {
    let leaving = leaving(&intent.change, view);
    Membership { expected: listed(view, survey, &[]), leaving, ..Membership::default() }
}

/// Everybody that is listed and counts, in order of id, but for newcomers on their way. A learner that never started counts for
/// nothing.
pub(super) fn listed(view: &ClusterView, survey: &Survey, joins: &[Join]) -> Vec<Expected> {
    let is_new = |id: MemberId| joins.iter().any(|join| join.member == Some(id));
    let counts = |member: &&Member| survey.listed.contains_key(&member.id) && !is_idle(member) && !is_new(member.id);
    let members = view.members.iter().filter(counts);
    members.map(|member| Expected { member: member.id, is_learner: is_learner(member) }).collect()
}

fn leaving(change: &Change, view: &ClusterView) -> Vec<MemberId> {
    let goes = |member: &&Member| match change {
        Change::Scale(_) => !is_learner(member) && !wants(change, &member.name),
        Change::Replace(replace) => *member.name == *replace.member,
        Change::Upgrade(_) | Change::Downgrade(_) | Change::Restart(_) => false,
    };
    view.started().filter(goes).map(|member| member.id).collect()
}

fn objection(case: &Case, survey: &Survey) -> Option<MembersRefusal> {
    let change = &case.me.intent.change;
    let view = case.view;
    let leaving = leaving(change, view);
    let is_there = |name: &Arc<str>| view.voters().any(|voter| voter.name == *name);
    if let Some(name) = wanted(change).iter().find(|name| view.started().filter(|one| one.name == **name).count() > 1) {
        return Some(MembersRefusal::SameName { name: name.clone() });
    }
    match change {
        Change::Scale(scale) => {
            let adds: Vec<_> = scale.members.iter().filter(|name| !is_there(name)).cloned().collect();
            let drops: Vec<_> =
                leaving.iter().filter_map(|id| view.member(*id)).map(|member| member.name.clone()).collect();
            if !adds.is_empty() && !drops.is_empty() {
                return Some(MembersRefusal::AddsAndDrops { adds, drops });
            }
            let needs_downtime = scale.members.len() == 1 && view.voters().count() > 1 && !case.me.allow_downtime;
            needs_downtime.then_some(MembersRefusal::DownToOne)
        }
        Change::Replace(replace) => replaceable(case, survey, replace, &leaving),
        Change::Upgrade(_) | Change::Downgrade(_) | Change::Restart(_) => None,
    }
}

fn replaceable(case: &Case, survey: &Survey, replace: &Replace, leaving: &[MemberId]) -> Option<MembersRefusal> {
    let view = case.view;
    let Some(leaver) = leaving.first().and_then(|id| view.member(*id)) else {
        return Some(MembersRefusal::NotAMember { name: replace.member.clone() });
    };
    if leaving.len() > 1 {
        return Some(MembersRefusal::SameName { name: replace.member.clone() });
    }
    if replace.member == replace.by {
        let mut places = case.me.seats.0.iter().zip(&survey.places);
        let is_gone = |place: &Place| matches!(place.data, Data::None | Data::NoLog);
        let is_emptied = places.any(|(seat, place)| seat.name == leaver.name && is_gone(place));
        return leaver.is_ready().then_some(MembersRefusal::StillThere { member: leaver.id, is_emptied });
    }
    if let Some(other) = view.voters().find(|voter| voter.name == replace.by) {
        return Some(MembersRefusal::NameTaken { name: replace.by.clone(), member: other.id });
    }
    let has = |name: &Arc<str>| case.me.seats.0.iter().any(|seat| seat.name == *name);
    // Both would go with one host, now and later.
    let is_same_host = has(&replace.member) && has(&replace.by) && leaver.is_ready();
    is_same_host.then(|| MembersRefusal::SameHost { member: leaver.id, by: replace.by.clone() })
}

/// A voter that is to stay and is not ready: another playbook mends that first.
fn degraded(case: &Case) -> Option<Next> {
    sick(case, &leaving(&case.me.intent.change, case.view))
}

fn sick(case: &Case, but: &[MemberId]) -> Option<Next> {
    let sick = case.view.voters().find(|voter| !voter.is_ready() && !but.contains(&voter.id));
    sick.map(|voter| waits_for(case, voter.id))
}

/// A newcomer is of the release that all have: of several it would be none. Who comes back by itself may come in the middle of an
/// upgrade, which it keeps from its end, by whichever release its host has. Where the log is made ready to be read by an older one
/// nobody joins (etcd, `downgrade enable`).
fn several_releases(case: &Case) -> Option<MembersRefusal> {
    if comes_back(&case.me.intent.change) && case.view.downgrade().is_none() {
        return None;
    }
    let mut found = case.view.voters().filter_map(|voter| Some((voter.id, voter.release()?)));
    let (_, first) = found.next()?;
    let (member, release) = found.find(|(_, release)| *release != first)?;
    Some(MembersRefusal::SeveralReleases { member, release: release.clone(), other: first.clone() })
}
