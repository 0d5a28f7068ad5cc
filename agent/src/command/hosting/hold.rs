//! `agent hold`: somebody keeps a host, and its member in the cluster, for a reason of their own.

use super::{super::look::Prober, Decision, Hosts, Written, refused, well, write};
use crate::{
    cli,
    command::Outcome,
    event::trouble::Trouble,
    keys::{
        host_record::{Hold, HostRecord, OWNER, Phase, QUORUM},
        membership::RoleChange,
        txn::Txn,
    },
    playbook::Playbook,
    report::{file::json::Facts, names::printable, shown::hosts as told, stop::Reason},
};

/// More would make a key that no agent reads.
const MOST_HOLDS: usize = 64;

/// Adds, shows or removes.
///
/// # Errors
/// The playbook is wrong, or nobody answers.
pub async fn hold(typed: &cli::Hold) -> Result<Outcome, Trouble> {
    let (cli::Hold::Add(cli::HoldAdd { named: cli::Named { playbook: path, .. }, .. })
    | cli::Hold::List(cli::HoldList { playbook: path })
    | cli::Hold::Remove(cli::HoldRemove { named: cli::Named { playbook: path, .. } })) = typed;
    let playbook = Playbook::load(path)?;
    let prober = Prober::open(&playbook.cluster)?;
    match typed {
        cli::Hold::List(_) => {
            let hosts = Hosts::look(&prober).await?;
            let text = told::text(&hosts.keys, &hosts.snapshot.names, &hosts.snapshot.view);
            let outcome = well(Reason::Shown, "printed; nothing was touched".into(), hosts.facts(false), path);
            Ok(Outcome { text, ..outcome })
        }
        cli::Hold::Add(add) => {
            let new = Hold {
                name: add.named.name.as_str().into(),
                owner: add.named.owner.as_str().into(),
                why: add.why.as_str().into(),
            };
            let written = write(&prober, |hosts| added(hosts, &add.named, &new)).await?;
            Ok(told_of(written, Reason::HoldAdded, &add.named))
        }
        cli::Hold::Remove(remove) => {
            let written = write(&prober, |hosts| removed(hosts, &remove.named)).await?;
            Ok(told_of(written, Reason::HoldRemoved, &remove.named))
        }
    }
}

fn told_of(written: Written, reason: Reason, named: &cli::Named) -> Outcome {
    let hosts = match written {
        Written::Anew(hosts) => hosts,
        Written::Ended(outcome) => return *outcome,
        Written::Before => {
            let message = match reason {
                Reason::HoldRemoved => {
                    format!("no hold there is called {}; nothing was touched", printable(&named.name))
                }
                _ => format!("the hold {} stands already", printable(&named.name)),
            };
            return well(Reason::NothingToDo, message, Facts::default(), &named.playbook);
        }
    };
    let host = match hosts.find(&named.host) {
        Ok((_, at)) => told::line(&at.value, &hosts.snapshot.names),
        Err(outcome) => return *outcome,
    };
    well(reason, host, hosts.facts(true), &named.playbook)
}

fn end(outcome: Outcome) -> Decision {
    Decision::End(Box::new(outcome))
}

fn added(hosts: &Hosts, named: &cli::Named, new: &Hold) -> Decision {
    let (host, at) = match hosts.find(&named.host) {
        Ok(found) => found,
        Err(outcome) => return Decision::End(outcome),
    };
    let (record, names) = (&at.value, &hosts.snapshot.names);
    if (*new.owner == *OWNER) || (*new.name == *QUORUM) {
        let message = format!("the name {QUORUM} and the owner {OWNER} are the agents' own");
        return end(refused(Reason::Usage, message, "another name and owner; `agent adopt` puts that hold"));
    }
    if record.phase == Phase::Left {
        let message = format!("{} has no member any more, so there is nothing to keep", told::name(record, names));
        return end(refused(Reason::HostHeld, message, "nothing was touched"));
    }
    let is_new = !record.holds.iter().any(|hold| hold.name == new.name);
    if is_new && record.holds.len() >= MOST_HOLDS {
        let message = format!("{} has {MOST_HOLDS} holds already, and takes no more", told::name(record, names));
        return end(refused(Reason::HostHeld, message, "nothing was touched; remove one: agent hold list"));
    }
    if let Some(standing) = record.holds.iter().find(|hold| hold.name == new.name) {
        if standing == new {
            return Decision::Nothing;
        }
        if standing.owner != new.owner {
            return end(of_another(standing, record, hosts));
        }
    }
    let leaves = |step: &crate::keys::StepLock| step.role == Some(RoleChange::Leave) && record.carries(step.member);
    if let Some(step) = hosts.keys.step.as_ref().filter(|step| leaves(&step.value)) {
        let message =
            format!("the removal of {} has begun, and is not stopped by a hold", names.short(step.value.member));
        return end(refused(Reason::RemovalBegun, message, "nothing was touched"));
    }
    Decision::Write(Txn::note_host_beside(host, Some(at), record.with_hold(new.clone()), hosts.keys.step.as_ref()))
}

fn removed(hosts: &Hosts, named: &cli::Named) -> Decision {
    let (host, at) = match hosts.find(&named.host) {
        Ok(found) => found,
        Err(outcome) => return Decision::End(outcome),
    };
    let (record, names) = (&at.value, &hosts.snapshot.names);
    let Some(hold) = record.holds.iter().find(|hold| *hold.name == *named.name) else { return Decision::Nothing };
    if *hold.owner != *named.owner {
        return end(of_another(hold, record, hosts));
    }
    if hold.is_own() && !record.is_marked() {
        let message =
            format!("{} is not marked to go, so its own hold would only be put back", told::name(record, names));
        let left = "mark it first: agent drain; or let nothing hold it any more: agent adopt --forget there";
        return end(refused(Reason::HostHeld, message, left));
    }
    Decision::Write(Txn::note_host(host, Some(at), record.without_hold(&named.name)))
}

fn of_another(hold: &Hold, record: &HostRecord, hosts: &Hosts) -> Outcome {
    let message = format!(
        "the hold {} of {} belongs to {}",
        printable(&hold.name),
        told::name(record, &hosts.snapshot.names),
        printable(&hold.owner)
    );
    refused(Reason::HoldOfAnother, message, "only its owner changes it: --owner")
}
