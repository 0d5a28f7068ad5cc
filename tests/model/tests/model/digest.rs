//! One number for all worlds that differ only in names.
//!
//! Revisions and ids are made anew with every write, processes with every start, and no rule asks more of two of them
//! than whether they are equal: they are counted in the order in which they are met. Hosts and their members are alike where
//! each host owns one member: they are counted in an order that their state gives. So the worlds keep their
//! names, and only the number of each is free of them. What decides nothing (texts for people, counters) is
//! left out; a world that is not told from another by mistake would cost a search its soundness, so all
//! that is hashed goes through the machine's own `Hash`.

use std::hash::{Hash, Hasher};

use super::{
    canonical::Canonical,
    names::{copied_id, id_of, machine_of},
    world::World,
};
use agent::{
    keys::{Keys, Run},
    machine::act::Act,
};

impl World {
    /// Equal for two worlds exactly if they are the same but for names, as far as 64 bits can tell: among
    /// 30 million states the chance that any two are taken for one is about 1 in 40,000.
    pub fn digest(&self) -> u64 {
        let order = self.order();
        let mut canonical = Canonical::new();
        order.iter().enumerate().for_each(|(place, host)| canonical.hosts[*host] = place as u8);
        let members = order.iter().flat_map(|host| self.scenario.owned_by(*host));
        members.enumerate().for_each(|(place, node)| canonical.members[node] = place as u8);
        self.show_keys(&self.keys, &order, &mut canonical);
        for host in &order {
            self.show_host(*host, &mut canonical);
        }
        (id_of(self.leader), self.version, self.rise, self.marked, (self.approved, self.backed_up), self.reached)
            .hash(&mut canonical);
        (self.is_going_down, self.late_calls).hash(&mut canonical);
        (self.left, &self.late).hash(&mut canonical);
        canonical.finish()
    }

    /// The hosts, sorted by what can be told of them without names.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        if self.scenario.has_alike_hosts {
            let sketches: Vec<u64> = order.iter().map(|host| self.sketch(*host)).collect();
            order.sort_by_key(|host| sketches[*host]);
        }
        order
    }

    fn sketch(&self, host: usize) -> u64 {
        let mut canonical = Canonical::blind();
        self.show_host(host, &mut canonical);
        let (own, machine) = (id_of(host), machine_of(host));
        let keys = &self.keys;
        let is_done = keys.run.as_ref().is_some_and(|run| run.value.done.contains(&own));
        let is_down = keys.step.as_ref().is_some_and(|down| down.value.member == own);
        let has_baton = keys.baton.as_ref().is_some_and(|baton| baton.value.process.boot_id == machine);
        let takes_part = keys.agents.keys().filter(|id| id.machine == Some(machine)).count();
        (is_done, is_down, has_baton, takes_part, keys.abandoned.contains_key(&own)).hash(&mut canonical);
        (self.leader == host, self.marked == Some(own)).hash(&mut canonical);
        canonical.finish()
    }

    fn show_keys(&self, keys: &Keys, order: &[usize], canonical: &mut Canonical) {
        (&keys.baton, &keys.step).hash(canonical);
        if self.scenario.has_twins {
            keys.agents.get(&copied_id()).map(|at| at.value.process).hash(canonical);
        }
        if let Some(run) = &keys.run {
            let Run { id, intent, state, changes_minor, backup, pause, .. } = &run.value;
            (run.created, run.modified, id, intent, state, changes_minor, backup.is_some(), pause.is_some())
                .hash(canonical);
        }
        for host in order {
            let machine = Some(machine_of(*host));
            keys.agents.iter().filter(|(id, _)| id.machine == machine).for_each(|agent| agent.hash(canonical));
            for node in self.scenario.owned_by(*host).map(id_of) {
                keys.run.as_ref().map(|run| run.value.done.contains(&node)).hash(canonical);
                keys.abandoned.get(&node).hash(canonical);
            }
        }
    }

    fn show_host(&self, host: usize, canonical: &mut Canonical) {
        for node in self.scenario.owned_by(host) {
            self.nodes[node].hash(canonical);
        }
        let host = &*self.hosts[host];
        (host.lost, host.journal, host.step_hop).hash(canonical);
        (host.init, host.errand, host.begun).hash(canonical);
        let Some(process) = &host.process else { return canonical.write_u8(0) };
        // Of the act, only what the agent's own phase does not say.
        std::mem::discriminant(&process.act).hash(canonical);
        match &process.act {
            Act::Start(member) => member.hash(canonical),
            Act::HandOver { to, .. } => to.hash(canonical),
            Act::Exit(ending) => ending.hash(canonical),
            _ => {}
        }
        (process.id, process.verb, process.meant, &process.agent).hash(canonical);
        (process.kept, process.is_registered, process.has_let, &process.read).hash(canonical);
    }
}
