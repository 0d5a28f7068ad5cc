//! Who goes by this host's id: saying so in the keys, and what others have said under it.
//!
//! Source: agent/PROTOCOL.md, R-12.

use proto::Revision;

use super::{
    act::{Act, Looked},
    agent::Agent,
    txn_outcome::Then,
};
use crate::{
    keys::txn::Txn,
    plan::{refusal::Refusal, rules::twin},
};

impl Agent {
    /// What forbids to go on where another agent goes by this host's id.
    pub(super) fn twin(&self, looked: &Looked) -> Option<Refusal> {
        let keys = looked.keys.as_ref().filter(|_| self.rules.twins_are_refused)?;
        twin::of(self.me.host, self.process, keys, &looked.gone)
    }

    /// The others must know of this agent before it decides anything; without a quorum they cannot. `None` once they do.
    pub(super) fn register(&mut self, looked: &Looked) -> Option<Act> {
        if self.is_registered || self.only_asks() {
            return None;
        }
        if looked.view.as_ref().is_none_or(|view| view.leader().is_none()) {
            return Some(self.refuse(Refusal::NoLeader));
        }
        let Some(keys) = &looked.keys else { return Some(self.unanswered(looked)) };
        let seen = keys.agents.get(&self.me.host);
        if seen.is_some_and(|seen| seen.value.process == self.process) {
            self.is_registered = true;
            return None;
        }
        let participant = self.me.participant(self.process);
        let txn = Txn::register(self.me.host, participant, seen.map(|seen| seen.modified), &self.rules);
        Some(self.send(txn, Then::Register))
    }

    pub(super) fn is_known(&mut self) -> Act {
        self.is_registered = true;
        self.look()
    }

    /// A baton of this host that this process did not take: an earlier one died with it.
    pub(super) fn forgotten_baton(&self, looked: &Looked) -> Option<Revision> {
        let baton = looked.keys.as_ref()?.baton.as_ref()?;
        (baton.value.host == self.me.host && baton.value.process != self.process).then_some(baton.created)
    }
}
