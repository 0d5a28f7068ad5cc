//! Whether a run may begin, and the list that it begins with.

use std::sync::Arc;

use proto::MemberId;

use super::{is_learner, refusal::MembersRefusal, refuse, survey::Survey, waits_for, wanted, wants};
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
    if is_reached(case) {
        return Next::Finish(Finish::NothingToDo);
    }
    rules::step_lock(case)
        .or_else(|| rules::alarm(case))
        .or_else(|| objection(case, survey).map(refuse))
        .or_else(|| degraded(case))
        .or_else(|| several_releases(case).map(refuse))
        .unwrap_or(Next::Begin)
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
            last.is_some_and(|run| run.is_over() && *run.intent == *case.me.intent) && votes(by)
        }
        Change::Replace(Replace { member, by }) => {
            votes(by) && !case.view.members.iter().any(|one| *one.name == **member)
        }
        Change::Upgrade(_) | Change::Downgrade(_) | Change::Restart(_) => true,
    }
}

/// What a new run holds of the members.
pub fn membership(intent: &Intent, view: &ClusterView, survey: &Survey) -> Membership {
    let leaving = leaving(&intent.change, view);
    Membership { expected: listed(view, survey, &[]), leaving, ..Membership::default() }
}

/// Everybody that is listed and was ever started, in order of id, but for newcomers on their way.
pub(super) fn listed(view: &ClusterView, survey: &Survey, joins: &[Join]) -> Vec<Expected> {
    let is_new = |id: MemberId| joins.iter().any(|join| join.member == Some(id));
    let members = view.started().filter(|member| survey.listed.contains_key(&member.id) && !is_new(member.id));
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
        return leaver.is_ready().then(|| MembersRefusal::StillThere { member: leaver.id });
    }
    if let Some(other) = view.voters().find(|voter| voter.name == replace.by) {
        return Some(MembersRefusal::NameTaken { name: replace.by.clone(), member: other.id });
    }
    let has = |name: &Arc<str>| case.me.seats.0.iter().any(|seat| seat.name == *name);
    // Both would go with one host, now and later.
    let is_same_host = has(&replace.member) && has(&replace.by) && leaver.is_ready();
    let _ = survey;
    is_same_host.then(|| MembersRefusal::SameHost { member: leaver.id, by: replace.by.clone() })
}

/// A voter that is to stay and is not ready: another playbook mends that first.
fn degraded(case: &Case) -> Option<Next> {
    let leaving = leaving(&case.me.intent.change, case.view);
    let sick = case.view.voters().find(|voter| !voter.is_ready() && !leaving.contains(&voter.id));
    sick.map(|voter| waits_for(case, voter.id))
}

/// A newcomer is of the release that all have: of several it would be none.
fn several_releases(case: &Case) -> Option<MembersRefusal> {
    let mut found = case.view.voters().filter_map(|voter| Some((voter.id, voter.release()?)));
    let (_, first) = found.next()?;
    let (member, release) = found.find(|(_, release)| *release != first)?;
    Some(MembersRefusal::SeveralReleases { member, release: release.clone(), other: first.clone() })
}
