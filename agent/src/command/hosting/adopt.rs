//! `agent adopt`: this host is held for the voters it carries, from now on.

use super::{super::look::Prober, Decision, Hosts, Written, refused, well, write};
use crate::{
    cli,
    command::{Outcome, run::trouble_of_setup},
    event::trouble::Trouble,
    execute::{
        identity::{self, host_name},
        inspect::must_be_of_this_host,
    },
    host::files::state_dir::StateDir,
    keys::{host_id::HostId, host_record::HostRecord, txn::Txn},
    observe::view::Role,
    plan::protection,
    playbook::Playbook,
    report::{shown::hosts as told, stop::Reason},
    words::with_causes,
};

/// Writes what this host carries, and holds it.
///
/// # Errors
/// No member of this host votes, or nobody answers.
pub async fn adopt(typed: &cli::Adopt) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let prober = Prober::open(&playbook.cluster)?;
    let host = own_id(&playbook)?;
    if !typed.forget {
        let seen = prober.look().await?;
        let of_here = must_be_of_this_host(&playbook, &seen.view, prober.observer()).await;
        of_here.map_err(trouble_of_setup)?;
    }
    let decide = |hosts: &Hosts| match typed.forget {
        true => forget(hosts, host),
        false => hold(hosts, &playbook, host, typed.take_over),
    };
    let (hosts, reason, changed) = match write(&prober, decide).await? {
        Written::Anew(hosts) => (*hosts, Reason::Adopted, true),
        Written::Before => (Hosts::look(&prober).await?, Reason::NothingToDo, false),
        Written::Ended(outcome) => return Ok(*outcome),
    };
    let (names, facts) = (&hosts.snapshot.names, hosts.facts(changed));
    let message = match hosts.keys.hosts.get(&host) {
        Some(at) if !at.value.is_held() => {
            format!("{} is marked to go, and its hold was taken away: it is not put back", told::name(&at.value, names))
        }
        Some(at) => {
            format!("{} is adopted; {}", told::name(&at.value, names), told::held(&hosts.keys, &hosts.snapshot.view))
        }
        None => "this host is not adopted: nothing holds it".to_owned(),
    };
    Ok(well(reason, message, facts, &typed.playbook))
}

/// An agent that was here before has chosen it; else it is chosen now.
fn own_id(playbook: &Playbook) -> Result<HostId, Trouble> {
    let known = identity::host_id(&playbook.state_dir);
    if known.instance != 0 {
        return Ok(known);
    }
    let opened = StateDir::open(&playbook.state_dir).map_err(|error| Trouble::StateDir(with_causes(&error)))?;
    Ok(opened.host())
}

fn hold(hosts: &Hosts, playbook: &Playbook, host: HostId, takes_over: bool) -> Decision {
    let view = &hosts.snapshot.view;
    let mine = identity::mine(playbook, host, view);
    let is_voter = |id: &proto::MemberId| view.member(*id).is_some_and(|member| member.role == Role::Voter);
    let voters: Vec<_> = mine.members().filter(|id| is_voter(id) && hosts.listed.contains(id)).collect();
    let end = |outcome: Outcome| Decision::End(Box::new(outcome));
    if voters.is_empty() {
        let message = "no node of this playbook is a member that votes, so there is nothing to hold this host for";
        return end(refused(Reason::OwnsNothing, message.to_owned(), "correct `nodes[].name`; nothing was touched"));
    }
    let seen = hosts.keys.hosts.get(&host);
    let names = voters.iter().filter_map(|id| view.member(*id)).map(|member| member.name.clone());
    let elsewhere =
        voters.iter().find_map(|id| protection::host_of(&hosts.keys, *id).filter(|(other, _)| *other != host));
    let was = match elsewhere {
        None => seen.map(|at| &at.value),
        Some((_, at)) if takes_over => Some(&at.value),
        Some((other, at)) => return end(of_another(hosts, other, &at.value)),
    };
    let record = protection::adopted(was, &host_name(), &voters);
    // What others hold this host for, beside what the lost state directory knew.
    let own = seen.into_iter().flat_map(|at| at.value.holds.iter().cloned());
    let record = own.fold(record.named(names.collect::<Vec<_>>()), |record, hold| record.with_hold(hold));
    if let Some((other, at)) = elsewhere {
        return Decision::Write(Txn::note_host(host, seen, record).without_host(other, at));
    }
    match seen {
        Some(at) if at.value == record => Decision::Nothing,
        seen => Decision::Write(Txn::note_host(host, seen, record)),
    }
}

fn of_another(hosts: &Hosts, other: HostId, record: &HostRecord) -> Outcome {
    let name = told::name(record, &hosts.snapshot.names);
    let message = format!("{name} with the id {other} carries that member, as was written by another state directory");
    let left = "`agent adopt` with its state_dir; where that is lost: agent adopt --take-over";
    refused(Reason::HostOfAnother, message, left)
}

fn forget(hosts: &Hosts, host: HostId) -> Decision {
    let Some(seen) = hosts.keys.hosts.get(&host) else { return Decision::Nothing };
    match seen.value.others_hold() {
        Some(hold) => {
            let message = format!("{} holds this host", told::hold(hold));
            Decision::End(Box::new(refused(Reason::HostHeld, message, "its owner removes it first: agent hold remove")))
        }
        None => Decision::Write(Txn::forget_host(host, seen)),
    }
}
