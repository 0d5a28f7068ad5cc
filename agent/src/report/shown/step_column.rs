//! Where each member is in the run: the column STEP of `agent status`, and the order of its rows. Pure.
//!
//! What a member in its step does is read off the member; only how far its soak is, its agent has to say.

use proto::MemberId;

use crate::{
    keys::{Keys, Run, RunState, StepLock},
    observe::view::{Answer, ClusterView, Member},
    plan::order::rank,
    report::names::printable,
};

/// The members in the order in which they go: those that are done, the one in its step, then who goes next.
pub fn in_order<'a>(view: &'a ClusterView, keys: &Keys) -> Vec<&'a Member> {
    let mut members: Vec<_> = view.members.iter().collect();
    let Some(run) = current(keys) else { return members };
    let in_step = keys.step.as_ref().map(|step| step.value.member);
    members.sort_by_key(|member| match run.done.iter().position(|done| *done == member.id) {
        Some(at) => (0, at, None),
        None if in_step == Some(member.id) => (1, 0, None),
        None if is_done(member, run) => (0, run.done.len(), Some((rank(view, member), member.id))),
        None => (2, 0, Some((rank(view, member), member.id))),
    });
    members
}

/// Who goes next, as far as the cluster shows it; nobody under the mark of a failed step, or while a run is held. Where members come and
/// go there is no such order.
pub fn next(view: &ClusterView, keys: &Keys) -> Option<MemberId> {
    let is_open = |run: &&Run| !matches!(run.state, RunState::Failed { .. } | RunState::Held { .. });
    let run = current(keys).filter(is_open).filter(|run| !run.intent.change.changes_members())?;
    let in_step = keys.step.as_ref().map(|step| step.value.member);
    let is_open =
        |member: &&Member| !is_done(member, run) && member.answer != Answer::NeverStarted && in_step != Some(member.id);
    in_order(view, keys).into_iter().filter(|member| !member.has_never_started()).find(is_open).map(|member| member.id)
}

/// A member's place in the run, in a few words; `None` where it has none.
pub fn step(member: &Member, view: &ClusterView, keys: &Keys) -> Option<String> {
    if keys.abandoned.contains_key(&member.id) {
        return Some("given up".into());
    }
    let guarded = keys.step.as_ref().map(|step| &step.value).filter(|lock| lock.members().any(|one| one == member.id));
    if let Some(guarded) = guarded.and_then(|lock| lock.guarded.as_ref()) {
        return Some(format!("guarded: {}", printable(&guarded.command)));
    }
    if let Some(lock) = keys.step.as_ref().map(|step| &step.value).filter(|lock| lock.member == member.id) {
        let way = if lock.back { "going back: " } else { "" };
        return Some(format!("{way}{}", in_step(member, lock, keys)));
    }
    let run = current(keys)?;
    match &run.state {
        RunState::Failed { member: failed, .. } if *failed == member.id => Some("failed".into()),
        _ if is_done(member, run) => (!run.is_going_back()).then(|| "done".into()),
        RunState::Held { member: held } if *held == member.id => Some("held".into()),
        _ if next(view, keys) == Some(member.id) => Some("next".into()),
        _ => None,
    }
}

/// By the run, or as it was at its target before its turn came. On the way back, where it has not left what it ran, or has come back to it.
fn is_done(member: &Member, run: &Run) -> bool {
    let is_at_target = run.intent.change.to().is_some_and(|target| member.release() == Some(target));
    let is_done = run.done.contains(&member.id);
    match run.is_going_back() {
        true => !is_done && !is_at_target,
        false => is_done || (is_at_target && member.is_ready()),
    }
}

/// What its agent does to it now.
fn in_step(member: &Member, lock: &StepLock, keys: &Keys) -> String {
    let Some(agent) = keys.agents.get(&lock.host) else { return "left by its agent".into() };
    let is_at_target = match (member.release(), current(keys).and_then(|run| run.intent.change.to())) {
        (Some(release), Some(target)) => (release == target) != lock.back,
        _ => false,
    };
    match &member.answer {
        Answer::Silent { .. } | Answer::NeverStarted => "restarting".into(),
        // A restart without another release does not show where it is.
        Answer::Reported(_) if !is_at_target => match member.is_ready() {
            true => "stopping".into(),
            false => "starting".into(),
        },
        Answer::Reported(_) if member.is_catching_up() => "catching up".into(),
        Answer::Reported(_) if !member.is_ready() => "starting".into(),
        Answer::Reported(_) => {
            agent.value.does.as_deref().map_or_else(|| "soaking".into(), |does| printable(does).to_string())
        }
    }
}

fn current(keys: &Keys) -> Option<&Run> {
    keys.run.as_ref().map(|run| &run.value).filter(|run| !run.is_over())
}
