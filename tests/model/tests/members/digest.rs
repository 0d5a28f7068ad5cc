//! One number for all worlds that differ only in what is made anew: revisions, ids, processes. Hosts and members keep their
//! names: each has a part of its own.

use std::hash::{Hash, Hasher};

use super::{canonical::Canonical, world::World};
use agent::machine::act::Act;

impl World {
    /// Equal for two worlds exactly if they are the same but for names, as far as 64 bits can tell.
    pub fn digest(&self) -> u64 {
        let mut canonical = Canonical::new();
        (0..canonical.hosts.len()).for_each(|at| canonical.hosts[at] = at as u8);
        (0..canonical.members.len()).for_each(|at| canonical.members[at] = at as u8);
        self.keys.hash(&mut canonical);
        for host in &self.hosts {
            (host.is_dead, host.data, host.runs, host.is_caught_up).hash(&mut canonical);
            let Some(process) = &host.process else {
                canonical.write_u8(0);
                continue;
            };
            // Of the act, only what the agent's own phase does not say.
            std::mem::discriminant(&process.act).hash(&mut canonical);
            match &process.act {
                Act::Start(member) => member.hash(&mut canonical),
                Act::Exit(ending) => ending.hash(&mut canonical),
                _ => {}
            }
            (process.id, process.verb, &process.agent, process.kept, process.is_registered).hash(&mut canonical);
            (&process.read, process.member, process.seated).hash(&mut canonical);
        }
        (&self.listed, self.leader, &self.calls, self.left, &self.late).hash(&mut canonical);
        canonical.finish()
    }
}
