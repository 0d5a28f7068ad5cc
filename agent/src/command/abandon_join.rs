//! `agent abandon PLAYBOOK NEWCOMER`: a newcomer whose host does not come back is taken back.
//!
//! What is given up is written first: from then on nobody promotes it, so that its removal takes no voter out. Where its
//! promotion was begun it may vote already: then the step is turned into its removal, which the next run does.
//! Source: agent/MEMBERS.md.

use tokio::time::{Instant, sleep};

use super::{
    Outcome,
    abandon::{ASKED_EVERY, PATIENCE, send},
    look::{ClusterSnapshot, Prober},
};
use crate::{
    cli,
    event::trouble::Trouble,
    keys::{
        At, Keys, Run,
        membership::{Join, Membership, RoleChange, Stage},
        rules::Rules,
        txn::Txn,
    },
    observe::{role::Changed, view::Role},
    report::{
        file::json::Facts,
        live::text,
        names::printable,
        stop::{Stop, reason::Reason},
    },
};

/// The newcomer of this name that is on its way, if there is one.
pub(super) fn find<'k>(typed: &cli::Abandon, keys: &'k Keys) -> Option<(&'k At<Run>, &'k Membership, &'k Join)> {
    let run = keys.run.as_ref().filter(|run| !run.value.is_over())?;
    let membership = run.value.membership.as_deref()?;
    Some((run, membership, membership.join(&typed.member)?))
}

/// Gives it up, removes it, and forgets it.
///
/// # Errors
/// Its agent is at work, somebody else writes the run, or nobody answers.
pub(super) async fn abandon(
    prober: &Prober,
    typed: &cli::Abandon,
    snapshot: &ClusterSnapshot,
    keys: &Keys,
) -> Result<Option<Outcome>, Trouble> {
    let Some((run, membership, join)) = find(typed, keys) else { return Ok(None) };
    if keys.agents.contains_key(&join.host) && !typed.yes {
        return Err(Trouble::AgentAtWork { member: join.seat.to_string(), host: join.host_name.clone() });
    }
    let seat = printable(&join.seat).to_string();
    let changed = || Trouble::StepLockChanged { member: seat.clone() };
    let step = keys.step.as_ref().filter(|step| Some(step.value.member) == join.member);
    if let Some(step) = step {
        let mut record = step.value.clone();
        record.role = Some(RoleChange::Leave);
        send(&prober.store, &Txn::turn_role_by_hand(run, step, record)).await?.map_err(|_| changed())?;
        let message = format!("{seat} is given up; its promotion was begun, so the next `agent run` removes it");
        return Ok(Some(told(typed, message)));
    }
    let mut given_up = join.clone();
    given_up.stage = Stage::GivenUp { why: "a person gave it up".into() };
    let after = membership.with_join(given_up);
    send(&prober.store, &Txn::note_members(run, after, &Rules::default())).await?.map_err(|_| changed())?;
    remove(prober, join, snapshot).await?;
    let now = prober.look().await?.keys()?;
    if let Some((run, membership, _)) = find(typed, &now) {
        let after = membership.without_join(&join.seat);
        send(&prober.store, &Txn::note_members(run, after, &Rules::default())).await?.map_err(|_| changed())?;
    }
    Ok(Some(told(typed, format!("{seat} is given up, and is no member"))))
}

/// Until it is listed no more. One that votes is not taken out here.
async fn remove(prober: &Prober, join: &Join, snapshot: &ClusterSnapshot) -> Result<(), Trouble> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let listed = prober.observer().peer_urls().await.map_err(Trouble::from)?;
        let has_urls = |urls: &std::collections::BTreeSet<String>| join.peer_urls.iter().any(|url| urls.contains(url));
        let id = join.member.filter(|id| listed.contains_key(id));
        let id = id.or_else(|| listed.iter().find(|(_, urls)| has_urls(urls)).map(|(id, _)| *id));
        let Some(id) = id else { return Ok(()) };
        let view = prober.look().await?.view;
        let votes = view.member(id).is_some_and(|member| member.role == Role::Voter);
        let Some(leader) = view.leader().filter(|_| !votes) else {
            return Err(Trouble::StepLockChanged { member: snapshot.names.member(id) });
        };
        match prober.observer().remove(leader.id, id).await {
            Changed::Refused(why) | Changed::Unknown(why) if Instant::now() > deadline => {
                return Err(Trouble::NoAnswer(why));
            }
            _ => sleep(ASKED_EVERY).await,
        }
    }
}

fn told(typed: &cli::Abandon, message: String) -> Outcome {
    let stop = Stop::well(Reason::Abandoned, message, "run", &typed.playbook);
    Outcome { text: text::end(&stop), stop, facts: Facts { changed: true, ..Facts::default() } }
}
