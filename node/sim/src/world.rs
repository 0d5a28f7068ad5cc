//! The loop: what is due on the network, then each machine for a tick, then what must hold.

use std::collections::BTreeMap;

use proto::LogIndex;
use serde::{Deserialize, Serialize};
use simulated_disk::Chance;

use crate::{
    additions::Addition,
    checks::{self, States},
    clients::Clients,
    counts::{self, Counts},
    decisions::Decisions,
    downgrades::Downgrades,
    entropy,
    faults::{Deposing, Mend},
    machine::{Machine, Role, TURN},
    network::{HostId, Micros, Network},
    plan::{Fault, Plan},
    put_away::PutAway,
};

/// How far each machine runs at a time, in microseconds.
const TICK: Micros = 2_000;
/// Between two looks at all states, in microseconds.
const LOOK: Micros = 200_000;
/// Who supervises a process starts it again after this.
pub(crate) const RESTART: Micros = 2_000_000;
/// When all faults are over, everything serves within this, in microseconds.
const RECOVERY: Micros = 40_000_000;
/// Nothing that waits may pile up without end; five members with their disks take a tenth of it.
const MOST_MB: u64 = 2_000;

pub struct World {
    pub(crate) now: Micros,
    pub(crate) plan: Plan,
    pub(crate) chance: Chance,
    pub(crate) network: Network,
    pub(crate) machines: BTreeMap<HostId, Machine>,
    pub(crate) clients: Clients,
    pub(crate) mends: Vec<(Micros, Mend)>,
    pub(crate) put_away: Option<PutAway>,
    /// A voter that has no machine yet.
    pub(crate) addition: Option<Addition>,
    /// Losses that the cluster does not bear yet.
    pub(crate) put_off: Vec<Fault>,
    pub(crate) deposing: Option<Deposing>,
    pub(crate) downgrades: Downgrades,
    states: States,
    decisions: Decisions,
    counts: Counts,
    /// Every member's whole state is compared: with large ones that takes longer than all else.
    compares: bool,
    pub(crate) report: Report,
    /// Until then somebody asks for a change of members.
    pub(crate) asks_until: Micros,
    /// Machines have followed the members up to here.
    pub(crate) followed_to: LogIndex,
}

/// What a run was like.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub seed: u64,
    pub simulated_s: f64,
    /// Faults that took effect, by kind.
    pub faults: BTreeMap<String, u64>,
    pub terms: u64,
    pub snapshots: u64,
    pub puts: u64,
    pub gets: u64,
    pub swaps: u64,
    pub unknown: u64,
    /// Counted, and refused, as the feature was off.
    #[serde(default)]
    pub added: u64,
    #[serde(default)]
    pub refused: u64,
    pub renewals: u64,
    pub watched: u64,
    pub compactions: u64,
    pub compared: u64,
    /// States in which the gate was looked at.
    #[serde(default)]
    pub gates: u64,
    /// Whether the gate has come to what all voters want: 0 where one has lost its disk, and nobody can say.
    #[serde(default)]
    pub settled: u64,
    /// The most memory that the whole simulation took.
    pub most_mb: u64,
    /// Ends of processes by themselves, with the reason.
    pub ends: Vec<String>,
    /// A number that two runs of one seed have in common.
    pub trace: u64,
    /// What must not be.
    pub failure: Option<String>,
}

impl World {
    pub fn new(plan: Plan) -> Self {
        let mut chance = Chance::new(plan.seed ^ 0x5eed);
        let network = Network::new(Chance::new(chance.below(usize::MAX) as u64));
        let machines = (1..=plan.members).map(|id| (id, Machine::new(id, &network, &plan))).collect();
        let clients = Clients::new(&network, plan.members, &mut chance);
        let report = Report { seed: plan.seed, ..Report::default() };
        let (mends, states) = (Vec::new(), States::default());
        Self {
            now: 0,
            plan,
            chance,
            network,
            machines,
            clients,
            mends,
            put_away: None,
            addition: None,
            put_off: Vec::new(),
            deposing: None,
            downgrades: Downgrades::default(),
            states,
            decisions: Decisions::default(),
            counts: Counts::default(),
            compares: true,
            report,
            asks_until: 0,
            followed_to: LogIndex(0),
        }
    }

    /// The whole run.
    pub fn run(mut self) -> Report {
        let failure = self.go_through().err();
        TURN.set(0);
        if let Some(failure) = &failure {
            tracing::error!(target: "sim", failure, "FAILED");
        }
        let seen = self.clients.seen.lock().unwrap();
        self.report.most_mb = most_mb();
        let much = (self.report.most_mb > MOST_MB).then(|| format!("it took {} MB", self.report.most_mb));
        self.report.failure = failure.or(much);
        self.report.simulated_s = self.now as f64 / 1e6;
        (self.report.compared, self.report.gates) = (self.states.compared, self.decisions.seen);
        (self.report.puts, self.report.gets, self.report.unknown) = (seen.puts, seen.gets, seen.unknown);
        self.report.swaps = seen.swaps;
        (self.report.added, self.report.refused) = (seen.counted.told.len() as u64, seen.counted.refused);
        (self.report.renewals, self.report.compactions) = (seen.renewals, seen.compactions);
        self.report.watched = seen.watched.len() as u64;
        let ends = self.machines.values().flat_map(|machine| machine.ends.clone());
        self.report.ends.extend(ends);
        self.report.trace = self.trace(&seen);
        self.report.clone()
    }

    fn trace(&self, seen: &crate::clients::Seen) -> u64 {
        let text = format!("{:?} {:?} {}", seen.history, seen.watched, self.network.delivered());
        u64::from(crc32c::crc32c(text.as_bytes()))
    }

    fn go_through(&mut self) -> Result<(), String> {
        let faults = self.plan.faults.clone();
        let mut faults = faults.into_iter().peekable();
        let end = self.plan.seconds * 1_000_000;
        while self.now < end {
            let mut due = if self.bears_a_loss() { std::mem::take(&mut self.put_off) } else { Vec::new() };
            while let Some(timed) = faults.next_if(|timed| timed.at_ms * 1000 <= self.now) {
                due.push(timed.fault);
            }
            for fault in due {
                TURN.set(0);
                if self.inflict(fault) {
                    self.count(fault);
                }
            }
            self.tick()?;
        }
        self.recover()
    }

    fn tick(&mut self) -> Result<(), String> {
        self.now += TICK;
        entropy::advance(TICK * 1000);
        TURN.set(0);
        for (_, mend) in self.mends.extract_if(.., |(due, _)| *due <= self.now).collect::<Vec<_>>() {
            self.mend(mend);
        }
        self.network.advance(self.now);
        let now = self.now;
        let mut refused = Vec::new();
        for (host, machine) in &mut self.machines {
            if machine.starts_at.is_some_and(|at| at <= now) {
                machine.kill();
                machine.start(now);
            }
            match machine.run_until(now) {
                None => {}
                Some(Ok(())) => tracing::warn!(target: "sim", "the process has ended as it was asked to"),
                Some(Err(why)) => {
                    tracing::warn!(target: "sim", why, "the process has ended by itself");
                    machine.ends.push(format!("m{}: {why}", machine.host.id));
                    if why.contains("this learner may not join") {
                        refused.push(*host);
                    } else if self.downgrades.is_called_off && std::mem::take(&mut machine.has_gone_down) {
                        machine.minor += 1;
                    } else if !machine.may_end(now) {
                        return Err(format!("m{} has ended by itself: {why}", machine.host.id));
                    }
                    machine.starts_at.get_or_insert(now + RESTART);
                }
            }
        }
        refused.into_iter().for_each(|host| self.agrees(host));
        self.clients.run_until(now);
        if let Some(panic) = panicked() {
            return Err(panic);
        }
        for (host, machine) in &self.machines {
            let Some(member) = machine.member() else { continue };
            self.decisions.see(*host, &member)?;
            self.counts.see(*host, &member, &machine.release())?;
        }
        self.follow_addition();
        self.depose();
        self.go_down();
        if now.is_multiple_of(LOOK) {
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), String> {
        self.follow_members();
        if let Some(put_away) = &mut self.put_away {
            put_away.look(&self.machines, self.now);
        }
        for (host, machine) in &self.machines {
            let Some(member) = machine.member() else { continue };
            if self.compares {
                self.states.see(*host, &member)?;
            }
            let term = member.raft_status().term.0;
            self.report.terms = self.report.terms.max(term);
            self.report.snapshots =
                self.report.snapshots.max(member.snapshot_index().0 / self.plan.snapshot_count.max(1));
        }
        match self.clients.seen.lock().unwrap().faults.first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// Who leads, as far as any of them knows: the one of the highest term.
    pub(crate) fn leader(&self) -> Option<HostId> {
        let leads = |(host, machine): (&HostId, &Machine)| {
            let member = machine.member()?;
            let status = member.raft_status();
            (status.leader == Some(member.identity().member)).then_some((status.term, *host))
        };
        self.machines.iter().filter_map(leads).max().map(|(_, host)| host)
    }

    /// All faults are over: everybody serves, and holds the same.
    fn recover(&mut self) -> Result<(), String> {
        TURN.set(0);
        tracing::warn!(target: "sim", "all faults are over");
        for (_, mend) in std::mem::take(&mut self.mends) {
            self.mend(mend);
        }
        let now = self.now;
        for machine in self.machines.values_mut() {
            machine.frozen_until = None;
            machine.host.disk.fill(false);
            if !machine.is_up() || machine.starts_at.is_some() {
                machine.starts_at = Some(now);
            }
        }
        let deadline = now + RECOVERY;
        let mut left: Vec<HostId> = self
            .machines
            .iter()
            .filter(|(_, m)| m.role == Role::Voter && must_serve(m))
            .map(|(host, _)| *host)
            .collect();
        let mut number = 0;
        while !left.is_empty() {
            let probes: Vec<_> = left.iter().map(|host| (*host, self.clients.probe(*host, number))).collect();
            number += 1;
            while probes.iter().any(|(_, probe)| probe.lock().unwrap().is_none()) {
                self.tick()?;
            }
            let failed: Vec<_> =
                probes.iter().filter(|(_, probe)| matches!(&*probe.lock().unwrap(), Some(Err(_)))).collect();
            left = failed.iter().map(|(host, _)| *host).filter(|host| must_serve(&self.machines[host])).collect();
            if self.now > deadline {
                let why: Vec<_> =
                    failed.iter().map(|(host, probe)| format!("m{host}: {:?}", probe.lock().unwrap())).collect();
                return Err(format!(
                    "{} s after all faults ended not all serve: {}",
                    RECOVERY / 1_000_000,
                    why.join(", ")
                ));
            }
        }
        self.clients.be_quiet();
        self.settle(deadline)
    }

    /// Until all that must hold the same state, clients' watches have heard everything, and no client waits for an answer: a
    /// write may have been done, and read by others, before whoever wrote it has put it down.
    fn settle(&mut self, deadline: Micros) -> Result<(), String> {
        loop {
            self.end_downgrade();
            for _ in 0..500 {
                self.tick()?;
            }
            let held: Vec<_> = self
                .machines
                .values()
                .filter(|m| must_serve(m))
                .map(|m| m.member().map(|m| checks::look(&m)))
                .collect();
            let newest = self.clients.seen.lock().unwrap().acknowledged.iter().map(|(revision, ..)| *revision).max();
            let under_way = self.clients.seen.lock().unwrap().under_way;
            let told = self.clients.seen.lock().unwrap().watched.iter().map(|(revision, ..)| *revision).max();
            let is_same = held.windows(2).all(|pair| pair[0].is_some() && pair[0] == pair[1]);
            let unsettled = self.unsettled();
            if is_same && told >= newest && under_way == 0 && unsettled.is_none() {
                self.report.settled = u64::from(self.machines.values().all(must_serve_or_gone));
                break;
            }
            if self.now > deadline + RECOVERY {
                let why = format!(
                    "the members do not come to the same state ({held:?}), or the watch ({told:?}) not to {newest:?}, or {unsettled:?}"
                );
                return Err(why);
            }
        }
        let seen = self.clients.seen.lock().unwrap();
        let held = self.machines.values().filter(|m| must_serve(m)).find_map(Machine::member).map(|m| counts::held(&m));
        seen.counted.judge(held.unwrap_or_default())?;
        checks::judge(&seen)
    }
}

/// In megabytes; 0 where the system does not say.
fn most_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn must_serve(machine: &Machine) -> bool {
    machine.loss.is_none() && machine.role != Role::Removed
}

fn must_serve_or_gone(machine: &Machine) -> bool {
    machine.loss.is_none() || machine.role == Role::Removed
}

static PANICS: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);

/// Notes every panic: those of tasks are caught by their runtime, and would not be seen.
pub fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = format!("m{} panicked: {panic}", TURN.get());
        tracing::error!(target: "sim", text, backtrace = %std::backtrace::Backtrace::capture(), "PANIC");
        PANICS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(text);
    }));
}

fn panicked() -> Option<String> {
    PANICS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

#[cfg(test)]
#[path = "slow_link_test.rs"]
mod slow_link;
#[cfg(test)]
#[path = "world_test.rs"]
mod tests;
