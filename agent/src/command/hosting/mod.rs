//! `agent adopt`, `agent drain` and `agent hold`: hosts that are held for the members they carry. Source: agent/HOSTS.md.

mod adopt;
mod drain;
mod hold;

use std::{collections::BTreeSet, path::Path};

use proto::MemberId;
use tokio::time::{Instant, sleep};

pub(super) use adopt::adopt;
pub(super) use drain::drain;
pub(super) use hold::hold;

use super::{
    Outcome,
    abandon::{ASKED_EVERY, PATIENCE, send},
    look::{ClusterSnapshot, Prober},
};
use crate::{
    event::trouble::Trouble,
    keys::{
        At, Keys,
        host_id::HostId,
        host_record::{HostRecord, Phase},
        txn::Txn,
    },
    report::{
        file::json::Facts,
        names::printable,
        shown::hosts as told,
        stop::{Reason, Stop},
    },
};

/// What one look has shown of the hosts.
struct Hosts {
    snapshot: ClusterSnapshot,
    keys: Keys,
    /// Who is listed, as a quorum says.
    listed: BTreeSet<MemberId>,
}

/// What is to be done about a record, after a look.
enum Decision {
    Write(Txn),
    /// It is as it is to be.
    Nothing,
    /// Nothing, and this is how the command ends.
    End(Box<Outcome>),
}

/// What came of it.
enum Written {
    /// It was written; the hosts are as they are afterwards.
    Anew(Box<Hosts>),
    Before,
    Ended(Box<Outcome>),
}

impl Hosts {
    /// Looks. The list is not older than the keys: what it lacks is gone.
    async fn look(prober: &Prober) -> Result<Self, Trouble> {
        let mut snapshot = prober.look().await?;
        let keys = snapshot.keys()?;
        let listed = prober.observer().peer_urls().await.map_err(Trouble::from)?.into_keys().collect();
        Ok(Self { snapshot, keys, listed })
    }

    /// By the name of a member that it carries, its own name, or its id. One that has left goes behind those that have not.
    fn find(&self, typed: &str) -> Result<(HostId, &At<HostRecord>), Box<Outcome>> {
        let by = |is_it: &dyn Fn(&HostId, &HostRecord) -> bool| -> Vec<(HostId, &At<HostRecord>)> {
            let found = self.keys.hosts.iter().filter(|(host, at)| is_it(host, &at.value));
            found.map(|(host, at)| (*host, at)).collect()
        };
        let carries =
            |record: &HostRecord| record.members.iter().any(|member| self.snapshot.names.short(*member) == typed);
        let is_here = |record: &HostRecord| record.phase != Phase::Left;
        let found = [
            by(&|host, _| host.to_string() == typed),
            by(&|_, record| carries(record)),
            by(&|_, record| is_here(record) && *record.host_name == *typed),
            by(&|_, record| *record.host_name == *typed),
            by(&|_, record| record.seats.iter().any(|seat| **seat == *typed)),
        ];
        match found.into_iter().find(|found| !found.is_empty()).as_deref() {
            Some([one]) => Ok(*one),
            Some(several) => {
                let several: Vec<_> = several.iter().map(|(host, _)| *host).collect();
                Err(Box::new(self.unclear(typed, &several)))
            }
            None => Err(Box::new(self.unknown(typed))),
        }
    }

    fn unknown(&self, typed: &str) -> Outcome {
        let known: Vec<_> = self.keys.hosts.values().filter(|at| at.value.phase != Phase::Left).collect();
        let known: Vec<_> = known.iter().map(|at| told::name(&at.value, &self.snapshot.names)).collect();
        let message = match known.is_empty() {
            true => format!("no host is called {}: none is adopted", printable(typed)),
            false => format!("no host is called {}; there are: {}", printable(typed), known.join(", ")),
        };
        refused(Reason::NoSuchHost, message, "`agent adopt` on a host holds it")
    }

    fn unclear(&self, typed: &str, several: &[HostId]) -> Outcome {
        let name = |host: &HostId| self.keys.hosts.get(host).map(|at| told::name(&at.value, &self.snapshot.names));
        let several: Vec<_> =
            several.iter().map(|host| format!("{} with the id {host}", name(host).unwrap_or_default())).collect();
        let message = format!("several hosts are called {}: {}", printable(typed), several.join(", "));
        refused(Reason::NoSuchHost, message, "name a member that it carries, or its id")
    }

    /// Every host, for a result.
    fn facts(&self, changed: bool) -> Facts {
        let mut facts = Facts { changed, ..Facts::default() };
        facts.more.insert("protection".into(), told::object(&self.keys, &self.snapshot.names, &self.snapshot.view));
        facts
    }
}

/// Looks and decides, until what is written has counted. What others write meanwhile is looked at again.
async fn write(prober: &Prober, decide: impl Fn(&Hosts) -> Decision) -> Result<Written, Trouble> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let hosts = Hosts::look(prober).await?;
        let txn = match decide(&hosts) {
            Decision::Write(txn) => txn,
            Decision::Nothing => return Ok(Written::Before),
            Decision::End(outcome) => return Ok(Written::Ended(outcome)),
        };
        if send(&prober.store, &txn).await?.is_ok() {
            return Ok(Written::Anew(Box::new(Hosts::look(prober).await?)));
        }
        if Instant::now() > deadline {
            return Err(Trouble::NoAnswer("somebody else writes of this host all the time".into()));
        }
        sleep(ASKED_EVERY).await;
    }
}

fn refused(reason: Reason, message: String, left: &str) -> Outcome {
    let exit = reason.exit().code(false);
    let stop = Stop { exit, reason, message, left: left.into(), next: None, cluster: None };
    Outcome { stop, facts: Facts::default(), text: String::new() }
}

fn well(reason: Reason, message: String, facts: Facts, playbook: &Path) -> Outcome {
    let stop = Stop::well(reason, message.clone(), "status", playbook);
    Outcome { stop, facts, text: message + "\n" }
}
