//! Makes things go wrong, and right again.

use std::sync::atomic::Ordering;

use simulated_disk::{SimulatedDisk, Survival};

use crate::{
    decisions::is_due,
    machine::{Machine, Role},
    network::{HostId, Link, Micros},
    plan::{Fault, Part, Whom},
    put_away::PutAway,
    world::World,
};

/// What ends a fault.
#[derive(Clone, Copy, Debug)]
pub enum Mend {
    /// All links of a host are as they were.
    Links(HostId),
    SlowDisk(HostId),
    Full(HostId),
}

/// Somebody waits for a leader that is about to decide.
#[derive(Clone, Copy, Debug)]
pub struct Deposing {
    /// But no longer than this.
    until: Micros,
    for_ms: u64,
    /// It is about to, and is cut off then.
    at: Option<Micros>,
}

impl World {
    pub(crate) fn host(&self, whom: Whom) -> Option<HostId> {
        match whom {
            Whom::Host(host) => Some(host).filter(|host| self.machines.contains_key(host)),
            Whom::Leader => self.leader(),
            Whom::Learner => {
                let learner = |(host, machine): (&HostId, &Machine)| (machine.role == Role::Learner).then_some(*host);
                self.machines.iter().find_map(learner)
            }
        }
    }

    fn machine(&mut self, whom: Whom) -> Option<&mut Machine> {
        let host = self.host(whom)?;
        self.machines.get_mut(&host)
    }

    /// Makes it happen now. Whether it took effect.
    pub(crate) fn inflict(&mut self, fault: Fault) -> bool {
        tracing::warn!(target: "sim", ?fault, "FAULT");
        let now = self.now;
        let after = |ms: u64| now + ms * 1000;
        match fault {
            fault if fault.harms_the_unlucky() && !self.bears_a_loss() => {
                self.put_off.push(fault);
                false
            }
            Fault::Kill { whom, for_ms } => {
                let Some(machine) = self.machine(whom) else { return false };
                let was_up = machine.is_up();
                machine.kill();
                machine.starts_at = Some(after(for_ms));
                was_up
            }
            Fault::Restart { whom, for_ms } => {
                let Some(machine) = self.machine(whom) else { return false };
                machine.stop();
                machine.starts_at = Some(after(for_ms + 3000));
                machine.is_up()
            }
            Fault::PowerLoss { whom, for_ms } => {
                let Some(host) = self.host(whom) else { return false };
                self.lose_power(host, after(for_ms))
            }
            Fault::Blackout { for_ms } => {
                let hosts: Vec<HostId> = self.machines.keys().copied().collect();
                for host in hosts {
                    let later = self.chance.below(2000) as u64;
                    self.lose_power(host, after(for_ms + later));
                }
                true
            }
            Fault::Freeze { whom, for_ms } => {
                let Some(machine) = self.machine(whom) else { return false };
                machine.frozen_until = machine.is_up().then_some(after(for_ms));
                machine.is_up()
            }
            Fault::Isolate { whom, for_ms } => {
                let Some(host) = self.host(whom) else { return false };
                self.change_links(host, true, |link| link.is_cut = true);
                self.mends.push((after(for_ms), Mend::Links(host)));
                true
            }
            Fault::Mute { whom, for_ms } => {
                let Some(host) = self.host(whom) else { return false };
                self.change_links(host, false, |link| link.is_cut = true);
                self.mends.push((after(for_ms), Mend::Links(host)));
                true
            }
            Fault::Lossy { whom, for_ms } => {
                let Some(host) = self.host(whom) else { return false };
                self.change_links(host, true, |link| link.lost_percent = 20);
                self.mends.push((after(for_ms), Mend::Links(host)));
                true
            }
            Fault::Late { whom, for_ms } => {
                let Some(host) = self.host(whom) else { return false };
                let delay = 20_000 * (1 + self.chance.below(20) as Micros);
                self.change_links(host, true, |link| link.delay = delay);
                self.mends.push((after(for_ms), Mend::Links(host)));
                true
            }
            Fault::Narrow { whom, for_ms } => {
                let Some(host) = self.host(whom) else { return false };
                let bytes_per_ms = 30 + self.chance.below(1000) as u64;
                self.change_links(host, true, |link| link.bytes_per_ms = bytes_per_ms);
                self.mends.push((after(for_ms), Mend::Links(host)));
                true
            }
            Fault::Shut { whom, for_ms } => {
                let Some(host) = self.host(whom) else { return false };
                let others: Vec<HostId> = self.machines.keys().copied().filter(|other| *other != host).collect();
                for other in &others {
                    self.network.set(*other, host, |link| link.is_shut = true);
                }
                self.mends.push((after(for_ms), Mend::Links(host)));
                others.iter().map(|other| self.network.reset(host, *other)).sum::<usize>() > 0
            }
            Fault::Break { whom } => {
                let Some(host) = self.host(whom) else { return false };
                let others: Vec<HostId> = self.machines.keys().copied().filter(|other| *other != host).collect();
                others.iter().map(|other| self.network.reset(host, *other)).sum::<usize>() > 0
            }
            Fault::SlowDisk { whom, for_ms } => {
                let Some(machine) = self.machine(whom) else { return false };
                let (host, sync_ms) = (machine.host.id, machine.host.sync_ms.clone());
                sync_ms.store(50 + self.chance.below(400) as u64, Ordering::Relaxed);
                self.mends.push((after(for_ms), Mend::SlowDisk(host)));
                true
            }
            Fault::Full { whom, for_ms } => {
                let Some(machine) = self.machine(whom) else { return false };
                machine.host.disk.fill(true);
                machine.full_until = after(for_ms + FAILING_MS);
                let host = machine.host.id;
                self.mends.push((after(for_ms), Mend::Full(host)));
                true
            }
            Fault::ClockJump { whom, by_ms } => {
                let Some(machine) = self.machine(whom) else { return false };
                machine.set_ahead(by_ms);
                crate::entropy::jump(by_ms * 1_000_000);
                true
            }
            Fault::Lose { part, for_ms } => {
                let prefix = match part {
                    Part::All => "data/",
                    Part::Log => "data/wal/",
                    Part::Snapshots => "data/snap/",
                    Part::Identity => "data/identity",
                };
                let machine = self.unlucky();
                machine.kill();
                let had = machine.host.disk.files().keys().any(|name| name.starts_with(prefix));
                machine.host.disk.empty(prefix);
                machine.starts_at = Some(after(for_ms));
                machine.loss = Some(format!("{part:?} of its disk was lost"));
                had
            }
            Fault::PutAway => {
                self.put_away = Some(PutAway::of(self.unlucky()));
                true
            }
            Fault::BringBack { for_ms, is_known } => {
                let unlucky = self.plan.unlucky;
                let fits = |copy: &mut PutAway| !is_known || copy.is_known_to_others(unlucky, &self.machines, now);
                let Some(PutAway { disk: copy, .. }) = self.put_away.take_if(fits) else { return false };
                let machine = self.unlucky();
                machine.kill();
                machine.host.disk = copy;
                machine.starts_at = Some(after(for_ms));
                machine.loss = Some("its disk is an older copy".into());
                true
            }
            Fault::FlipSnapshot => {
                let bits = self.chance.below(usize::MAX);
                let machine = self.unlucky();
                let is_flipped = flip(&machine.host.disk, bits);
                if is_flipped {
                    machine.loss = Some("a bit of its snapshot turned over".into());
                }
                is_flipped
            }
            Fault::Upgrade { host, minor } => {
                // Minors are not skipped: it may have gone down meanwhile.
                let version = self.cluster().and_then(|cluster| cluster.version);
                let is_next = |machine: &&mut Machine| {
                    machine.minor < minor && version.is_none_or(|version| minor <= version.minor + 1)
                };
                let Some(machine) = self.machines.get_mut(&host).filter(is_next) else { return false };
                machine.stop();
                (machine.minor, machine.patch) = (minor, 0);
                machine.starts_at = Some(after(3000));
                true
            }
            Fault::Downgrade => self.downgrade(),
            Fault::GoDown { host } => {
                let Some(machine) = self.machines.get_mut(&host) else { return false };
                machine.goes_down = true;
                false
            }
            Fault::CallOff => self.call_off(),
            Fault::Patch { whom } => {
                let Some(machine) = self.machine(whom).filter(|machine| machine.minor == 6) else { return false };
                machine.stop();
                machine.patch = 1 - machine.patch;
                machine.starts_at = Some(after(3000));
                true
            }
            Fault::Flags { whom, wishes } => {
                let Some(machine) = self.machine(whom).filter(|machine| machine.wishes != wishes) else { return false };
                machine.stop();
                machine.wishes = wishes;
                machine.starts_at = Some(after(3000));
                true
            }
            Fault::Depose { for_ms } => {
                self.deposing = Some(Deposing { until: after(DEPOSE_MS), for_ms, at: None });
                false
            }
            // They take effect once a member has applied them (`membership.rs`).
            Fault::Add { is_learner } => self.add(is_learner),
            Fault::Promote => self.promote(),
            Fault::Remove { whom } => self.remove(whom),
            Fault::Move { whom } => self.relocate(whom),
        }
    }

    /// Cuts off who leads while the gate is due to be decided: before anybody hears of the decision, or just after.
    pub(crate) fn depose(&mut self) {
        let Some(Deposing { until, for_ms, at }) = self.deposing.filter(|deposing| self.now < deposing.until) else {
            self.deposing = None;
            return;
        };
        let Some(leader) = self.leader() else { return };
        let decides = || self.machines[&leader].member().is_some_and(|member| member.read(|s| is_due(&s.cluster)));
        match at {
            Some(at) if at > self.now => {}
            Some(_) => {
                self.deposing = None;
                self.inflict(Fault::Isolate { whom: Whom::Host(leader), for_ms });
                self.count(Fault::Depose { for_ms });
            }
            None if decides() => {
                let at = self.now + 2000 * self.chance.below(5) as Micros;
                self.deposing = Some(Deposing { until, for_ms, at: Some(at) });
            }
            None => {}
        }
    }

    fn unlucky(&mut self) -> &mut Machine {
        self.machines.get_mut(&self.plan.unlucky).unwrap()
    }

    pub(crate) fn lose_power(&mut self, host: HostId, starts_at: Micros) -> bool {
        let Some(machine) = self.machines.get_mut(&host) else { return false };
        let was_up = machine.is_up();
        let survival = Survival::ALL[self.chance.below(Survival::ALL.len())];
        machine.lose_power(survival, &mut self.chance);
        machine.starts_at = Some(starts_at);
        was_up
    }

    /// How a host sends to all others, and, both ways, how it hears them; clients among them.
    fn change_links(&self, host: HostId, both_ways: bool, change: impl Fn(&mut Link)) {
        for other in self.machines.keys().copied().chain([CLIENTS]).filter(|other| *other != host) {
            self.network.set(host, other, &change);
            if both_ways {
                self.network.set(other, host, &change);
            }
        }
    }

    pub(crate) fn mend(&mut self, mend: Mend) {
        tracing::warn!(target: "sim", ?mend, "mended");
        match mend {
            Mend::Links(host) => self.change_links(host, true, |link| *link = Link::default()),
            Mend::SlowDisk(host) => {
                self.machines[&host].host.sync_ms.store(2, Ordering::Relaxed);
            }
            Mend::Full(host) => {
                let Some(machine) = self.machines.get_mut(&host) else { return };
                machine.host.disk.fill(false);
            }
        }
    }
}

/// The clients' machine.
pub const CLIENTS: HostId = 100;
/// So long somebody waits for a leader that is about to decide.
const DEPOSE_MS: u64 = 15_000;
/// What found a full disk has come to its end by then.
const FAILING_MS: u64 = 10_000;

/// One bit of the newest snapshot, where there is one.
fn flip(disk: &SimulatedDisk, bits: usize) -> bool {
    let files = disk.files();
    let newest = files.iter().rfind(|(name, _)| name.starts_with("data/snap/") && name.ends_with(".snap"));
    let Some((name, bytes)) = newest.filter(|(_, bytes)| !bytes.is_empty()) else { return false };
    disk.flip(name, bits % (bytes.len() * 8));
    true
}
