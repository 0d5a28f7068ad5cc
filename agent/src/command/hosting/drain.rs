//! `agent drain`: a host is to go. It is marked, and this waits until nothing keeps it any more.
//!
//! A mark takes nothing down: a run of Scale or Replace removes the member, when a person or a tool begins one.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use proto::MemberId;
use tokio::time::{Instant, sleep, timeout_at};

use super::{super::look::Prober, Decision, Hosts, Written, refused, well, write};
use crate::{
    cli,
    command::{Outcome, ask::no_signals},
    event::trouble::Trouble,
    execute::{identity::host_name, interrupt::Interrupt},
    host::{process::credentials::Credentials, program::path_owner::user_name},
    keys::{
        host_id::HostId,
        host_record::{HostRecord, Mark, Phase},
        membership::Membership,
        txn::Txn,
    },
    plan::protection::{self, Stays},
    playbook::Playbook,
    report::{
        file::json::Facts,
        names::printable,
        shown::hosts as told,
        stop::{Reason, Stop},
    },
    visible,
    words::typed as quoted,
};

/// Between two looks of one that waits.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Marks the host, and waits until it may go.
///
/// # Errors
/// The playbook is wrong, or nobody answers at first.
pub async fn drain(typed: &cli::Drain) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let prober = Prober::open(&playbook.cluster)?;
    let first = Hosts::look(&prober).await?;
    let (host, carried) = match first.find(&typed.host) {
        Ok((host, at)) => (host, at.value.members.clone()),
        Err(outcome) => return Ok(*outcome),
    };
    let drained = Drained { host, carried, typed };
    if typed.check {
        return Ok(drained.checked(&first));
    }
    let changed = match write(&prober, |hosts| drained.mark(hosts)).await? {
        Written::Anew(hosts) if typed.undo => {
            let message = format!("{} is not marked any more; it stays", name(&hosts, host));
            return Ok(well(Reason::Unmarked, message, hosts.facts(true), &typed.playbook));
        }
        Written::Before if typed.undo => {
            let message = format!("{} was not marked", name(&first, host));
            return Ok(well(Reason::NothingToDo, message, first.facts(false), &typed.playbook));
        }
        Written::Anew(_) => true,
        Written::Before => false,
        Written::Ended(outcome) => return Ok(*outcome),
    };
    let outcome = drained.wait(&prober).await?;
    Ok(Outcome { facts: Facts { changed, ..outcome.facts }, ..outcome })
}

fn name(hosts: &Hosts, host: HostId) -> String {
    hosts.keys.hosts.get(&host).map_or_else(|| host.to_string(), |at| told::name(&at.value, &hosts.snapshot.names))
}

/// A host that is to go, and what it carried when that was asked.
struct Drained<'a> {
    host: HostId,
    carried: Vec<MemberId>,
    typed: &'a cli::Drain,
}

impl Drained<'_> {
    fn mark(&self, hosts: &Hosts) -> Decision {
        let Self { host, typed, .. } = *self;
        let Some(seen) = hosts.keys.hosts.get(&host) else { return Decision::End(Box::new(self.gone(hosts))) };
        let record = &seen.value;
        if record.phase == Phase::Left || record.is_marked() != typed.undo {
            return Decision::Nothing;
        }
        let by = || {
            let user = user_name(Credentials::own().uid);
            typed.by.clone().unwrap_or_else(|| format!("{user} on {}", host_name()))
        };
        let mark = Mark { by: by().into(), why: typed.why.as_str().into() };
        let record = match typed.undo {
            false => HostRecord { mark: Some(mark), ..record.clone() },
            true => protection::unmarked(record, &hosts.listed),
        };
        Decision::Write(Txn::note_host(host, Some(seen), record))
    }

    /// However long it takes: a host that is marked stays until its member is out.
    async fn wait(&self, prober: &Prober) -> Result<Outcome, Trouble> {
        let until = self.typed.wait.map(|wait| Instant::now() + wait);
        let interrupt = Interrupt::install().map_err(no_signals)?;
        let mut said = String::new();
        loop {
            let looked = match until {
                Some(until) => timeout_at(until, Hosts::look(prober)).await,
                None => Ok(Hosts::look(prober).await),
            };
            let outcome = match looked {
                Ok(Ok(hosts)) => {
                    let outcome = self.checked(&hosts);
                    if outcome.stop.exit == 0 && tidied(prober, &hosts, self.host).await.unwrap_or(false) {
                        return Ok(outcome);
                    }
                    if is_over(&outcome) {
                        return Ok(outcome);
                    }
                    outcome
                }
                Ok(Err(trouble)) => unanswered(trouble.stop("drain", None, false).message),
                Err(_) => unanswered("nobody answered in time".to_owned()),
            };
            if until.is_some_and(|until| Instant::now() + AGAIN_AFTER > until) {
                return Ok(outcome);
            }
            if outcome.stop.message != said && outcome.stop.exit != 0 {
                said.clone_from(&outcome.stop.message);
                // A stderr that is closed ends nothing.
                let line = format!("waiting: {}; {}\n", visible::line(&said), visible::line(&outcome.stop.left));
                let _ = io::stderr().write_all(line.as_bytes());
            }
            tokio::select! {
                () = sleep(AGAIN_AFTER) => {}
                () = interrupt.asked(1) => return Ok(interrupted(outcome)),
            }
        }
    }
}

/// Asked to end: what keeps the host is said all the same.
fn interrupted(outcome: Outcome) -> Outcome {
    let reason = Reason::Interrupted;
    let message = format!("a signal asked for an end while {}", outcome.stop.message);
    let left = "the host is marked to go, and stays so; agent drain --undo takes the mark away".to_owned();
    let stop = Stop { exit: reason.exit().code(false), reason, message, left, ..outcome.stop };
    Outcome { stop, ..outcome }
}

fn unanswered(why: String) -> Outcome {
    refused(Reason::Unreachable, why, "the host is marked; the same command goes on")
}

/// What no waiting changes.
fn is_over(outcome: &Outcome) -> bool {
    matches!(outcome.stop.reason, Reason::MarkLifted | Reason::NoSuchHost)
}

/// Whether what is written of it is as it is: a run that removed its member may have ended before it lifted the hold.
async fn tidied(prober: &Prober, hosts: &Hosts, host: HostId) -> Result<bool, Trouble> {
    let Some(now) = up_to_date(hosts, host) else { return Ok(true) };
    let txn = Txn::note_host(host, hosts.keys.hosts.get(&host), now);
    Ok(super::send(&prober.store, &txn).await?.is_ok())
}

fn up_to_date(hosts: &Hosts, host: HostId) -> Option<HostRecord> {
    let mut keys = hosts.keys.clone();
    keys.hosts.retain(|id, _| *id == host);
    protection::out_of_date(&keys, |member| hosts.listed.contains(&member), membership(hosts))
        .and_then(|(_, record)| record)
}

fn membership(hosts: &Hosts) -> Option<&Membership> {
    let run = hosts.keys.run.as_ref().filter(|run| !run.value.is_over())?;
    run.value.membership.as_deref()
}

impl Drained<'_> {
    /// Whether it may go, and what keeps it.
    fn checked(&self, hosts: &Hosts) -> Outcome {
        let Self { host, typed, .. } = *self;
        let Some(at) = hosts.keys.hosts.get(&host) else { return self.gone(hosts) };
        let (record, names) = (&at.value, &hosts.snapshot.names);
        let (name, facts) = (told::name(record, names), hosts.facts(false));
        if !typed.check && record.phase == Phase::Running && !record.is_marked() {
            let left = "it stays; `agent drain` again where it is to go all the same";
            return Outcome { facts, ..refused(Reason::MarkLifted, format!("{name} is not marked any more"), left) };
        }
        match protection::stays(host, record, &hosts.listed, membership(hosts)) {
            Some(Stays::Joins(seat)) => {
                let (seat, playbook) = (printable(&seat), quoted(&typed.playbook.to_string_lossy()));
                let message = format!("{seat} is on its way into the cluster on {name}");
                let left = format!(
                    "once the host is marked its agent takes it back; where no agent runs there: agent abandon {playbook} {seat}"
                );
                Outcome { facts, ..refused(Reason::HostHeld, message, &left) }
            }
            Some(Stays::Held(hold)) => {
                let left = format!("`agent hold remove` by its owner lifts it{}", why(&hold.why));
                Outcome { facts, ..refused(Reason::HostHeld, format!("{} holds {name}", told::hold(&hold)), &left) }
            }
            Some(Stays::Carries(members)) => {
                let member = names.list(&members[..1]);
                let message = format!("{name} carries {}, which the cluster counts on", names.list(&members));
                let left = format!(
                    "a run of `kind: Replace` or `kind: Scale` removes it first: agent init --kind replace --replace {} --by NAME",
                    quoted(&member)
                );
                Outcome { facts, ..refused(Reason::HostHeld, message, &left) }
            }
            None => {
                let voters: Vec<_> = record.members.iter().copied().filter(|id| hosts.listed.contains(id)).collect();
                let mut outcome = well(Reason::MayLeave, format!("{name} may be taken away"), facts, &typed.playbook);
                if !voters.is_empty() {
                    outcome.facts.warnings.push(format!(
                        "its hold was taken away by hand, and {} is a member yet: with the host the cluster loses it",
                        names.list(&voters)
                    ));
                }
                outcome.stop = Stop { next: None, ..outcome.stop };
                outcome
            }
        }
    }

    /// Somebody has taken its record away, which says nothing of its members.
    fn gone(&self, hosts: &Hosts) -> Outcome {
        let left: Vec<_> = self.carried.iter().copied().filter(|id| hosts.listed.contains(id)).collect();
        let host = printable(&self.typed.host);
        match left.is_empty() {
            true => {
                let message = format!("{host} carries no member any more, and nothing is known of it");
                well(Reason::MayLeave, message, hosts.facts(false), &self.typed.playbook)
            }
            false => {
                let members = hosts.snapshot.names.list(&left);
                let message = format!("the record of {host} was taken away, and {members} is a member yet");
                let next = "`agent adopt` there, then `agent drain` again";
                Outcome { facts: hosts.facts(false), ..refused(Reason::NoSuchHost, message, next) }
            }
        }
    }
}

fn why(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!("; it says: {}", printable(why)) }
}
