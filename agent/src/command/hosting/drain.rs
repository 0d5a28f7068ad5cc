//! `agent drain`: a host is to go. It is marked, and this waits until nothing keeps it any more.
//!
//! A mark takes nothing down: a run of Scale or Replace removes the member, when a person or a tool begins one.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{super::look::Prober, Decision, Hosts, Written, refused, well, write};
use crate::{
    cli,
    command::Outcome,
    event::trouble::Trouble,
    execute::identity::host_name,
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
/// The playbook is wrong, or nobody answers for a minute.
pub async fn drain(typed: &cli::Drain) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let prober = Prober::open(&playbook.cluster)?;
    let first = Hosts::look(&prober).await?;
    let host = match first.find(&typed.host) {
        Ok((host, _)) => host,
        Err(outcome) => return Ok(*outcome),
    };
    if typed.check {
        return Ok(checked(&first, host, typed));
    }
    let changed = match write(&prober, |hosts| mark(hosts, host, typed)).await? {
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
    let outcome = wait(&prober, host, typed).await?;
    Ok(Outcome { facts: Facts { changed, ..outcome.facts }, ..outcome })
}

fn name(hosts: &Hosts, host: HostId) -> String {
    hosts.keys.hosts.get(&host).map_or_else(|| host.to_string(), |at| told::name(&at.value, &hosts.snapshot.names))
}

fn mark(hosts: &Hosts, host: HostId, typed: &cli::Drain) -> Decision {
    let Some(seen) = hosts.keys.hosts.get(&host) else { return Decision::End(Box::new(gone(hosts, typed))) };
    let record = &seen.value;
    let by = || {
        let user = user_name(Credentials::own().uid);
        typed.by.clone().unwrap_or_else(|| format!("{user} on {}", host_name()))
    };
    let wanted = match typed.undo {
        true => None,
        false => Some(record.mark.clone().unwrap_or_else(|| Mark { by: by().into(), why: typed.why.as_str().into() })),
    };
    match record.mark == wanted || record.phase == Phase::Left {
        true => Decision::Nothing,
        false => Decision::Write(Txn::note_host(host, Some(seen), HostRecord { mark: wanted, ..record.clone() })),
    }
}

/// Once a minute at least somebody answers, or it ends: whoever waits is to know that it waits for nothing.
async fn wait(prober: &Prober, host: HostId, typed: &cli::Drain) -> Result<Outcome, Trouble> {
    let (began, mut answered, mut said) = (Instant::now(), Instant::now(), String::new());
    loop {
        let hosts = match Hosts::look(prober).await {
            Ok(hosts) => hosts,
            Err(trouble) if answered.elapsed() > super::PATIENCE => return Err(trouble),
            Err(_) => {
                sleep(AGAIN_AFTER).await;
                continue;
            }
        };
        answered = Instant::now();
        let outcome = checked(&hosts, host, typed);
        if outcome.stop.exit == 0 {
            let is_lifted = tidied(prober, &hosts, host).await?;
            if is_lifted {
                return Ok(outcome);
            }
            continue;
        }
        if typed.wait.is_some_and(|wait| began.elapsed() + AGAIN_AFTER > wait) {
            return Ok(outcome);
        }
        if outcome.stop.message != said {
            said.clone_from(&outcome.stop.message);
            eprintln!("waiting: {}; {}", visible::line(&said), visible::line(&outcome.stop.left));
        }
        sleep(AGAIN_AFTER).await;
    }
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

/// Whether it may go, and what keeps it.
fn checked(hosts: &Hosts, host: HostId, typed: &cli::Drain) -> Outcome {
    let Some(at) = hosts.keys.hosts.get(&host) else { return gone(hosts, typed) };
    let (record, names) = (&at.value, &hosts.snapshot.names);
    let (name, facts) = (told::name(record, names), hosts.facts(false));
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

fn why(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!("; it says: {}", printable(why)) }
}

/// Somebody has forgotten it.
fn gone(hosts: &Hosts, typed: &cli::Drain) -> Outcome {
    let message = format!("{} is not known any more: nothing holds it", printable(&typed.host));
    well(Reason::MayLeave, message, hosts.facts(false), &typed.playbook)
}
