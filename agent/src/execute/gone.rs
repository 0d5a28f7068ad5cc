//! Which of the processes that keys name are gone: what they left may be taken over.
//!
//! Of this boot, and of the same pids, the kernel knows. Any other may be of a machine that lost its power, or of one that
//! goes by the same id and is at work: then a lease of its is renewed. That is seen by two looks at the lease that are
//! further apart than its holder's keep-alives. Source: agent/PROTOCOL.md, R-12.

use std::time::Duration;

use proto::LeaseId;

use crate::{
    boot_clock,
    keys::{KeyName, Keys, ProcessId},
    plan::Me,
    store::{Store, Unknown},
};

/// Twice the time between two keep-alives.
const APART: Duration = Duration::from_secs(4);
/// So often a lease must be seen renewed: a new leader renews each of them once.
const LOOKS: u32 = 2;

/// The processes that are gone, of those that have put something in the name of this host, or at its members in the name
/// of another state directory of this machine.
///
/// # Errors
/// [`Unknown`] when nobody says what is left of a lease.
pub async fn gone(store: &Store, keys: &Keys, me: &Me, own: ProcessId) -> Result<Vec<ProcessId>, Unknown> {
    let mut gone = Vec::new();
    for process in named(keys, me).into_iter().filter(|process| *process != own) {
        let is_gone = match process.is_over() {
            Some(is_over) => is_over,
            None => !renews_any(store, keys, process).await?,
        };
        if is_gone && !gone.contains(&process) {
            gone.push(process);
        }
    }
    Ok(gone)
}

fn named(keys: &Keys, me: &Me) -> Vec<ProcessId> {
    let agent = keys.agents.get(&me.host).map(|at| at.value.process);
    let baton = keys.baton.iter().filter(|at| at.value.host == me.host).map(|at| at.value.process);
    let records = keys.step.iter().chain(keys.abandoned.values()).map(|at| &at.value).filter(|record| {
        let is_here = record.host.machine.is_some() && record.host.machine == me.host.machine;
        record.host == me.host || (is_here && me.seats.has(record.member))
    });
    let mut named: Vec<_> = agent.into_iter().chain(baton).chain(records.map(|record| record.process)).collect();
    named.sort();
    named.dedup();
    named
}

/// The leases of what this process has put.
fn leases_of(keys: &Keys, process: ProcessId) -> Vec<LeaseId> {
    let agents = keys.agents.iter().filter(|(_, at)| at.value.process == process);
    let baton = keys.baton.iter().filter(|at| at.value.process == process);
    let names = agents.map(|(host, _)| KeyName::Agent(*host)).chain(baton.map(|_| KeyName::Baton));
    names.filter_map(|name| keys.leases.get(&name).copied()).collect()
}

async fn renews_any(store: &Store, keys: &Keys, process: ProcessId) -> Result<bool, Unknown> {
    for lease in leases_of(keys, process) {
        if is_renewed(store, lease).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn is_renewed(store: &Store, lease: LeaseId) -> Result<bool, Unknown> {
    for _ in 0..LOOKS {
        let Some(first) = store.remaining(lease).await? else { return Ok(false) };
        let since = boot_clock::now();
        tokio::time::sleep(APART).await;
        let apart = boot_clock::now().saturating_sub(since);
        let Some(second) = store.remaining(lease).await? else { return Ok(false) };
        if !was_renewed(first.left, second.left, apart) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a lease was renewed between two looks: what is left of it, in whole seconds, did not fall by the time between.
fn was_renewed(first: Duration, second: Duration, apart: Duration) -> bool {
    second.as_secs() + apart.as_secs() > first.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_was_renewed_if_it_did_not_fall_by_the_time_between_two_looks() {
        for (first, second, apart, renewed) in [
            (28, 24, 4.0, false),
            (28, 23, 4.0, false), // whole seconds: 28.1 and 23.9
            (28, 24, 4.9, false),
            (5, 0, 5.2, false),
            (30, 28, 4.0, true), // kept alive 2 s before the second look
            (28, 30, 4.0, true),
            (3, 30, 4.0, true), // at the last moment
            (28, 26, 4.0, true),
        ] {
            let seconds = Duration::from_secs;
            let found = was_renewed(seconds(first), seconds(second), Duration::from_secs_f64(apart));
            assert_eq!(found, renewed, "{first} s, then {second} s, {apart} s later");
        }
    }
}
