//! The cluster's own part in a downgrade: what agents ask of it, and what its leader and its members make of that, some
//! time later.
//!
//! Source: etcd, `server/etcdserver/version`: the leader lowers the version while it hears from every member; each
//! member follows with its own data; the leader ends the downgrade once all of them run the lower release. To enable one
//! is refused while the version is low. What is known of it comes from the higher release alone.

use super::{
    moves::{At, Move, Outcome},
    world::World,
};
use agent::machine::act::Event;

impl World {
    /// Whether the version is the higher one.
    fn is_risen(&self) -> bool {
        self.version == self.scenario.version(0)
    }

    /// Whether a lower release may open this member's data.
    pub fn is_fit(&self, node: usize) -> bool {
        self.nodes[node].is_fit && !self.is_risen()
    }

    pub fn moves_of_downgrade(&self, moves: &mut Vec<Move>) {
        if !self.has_quorum() {
            return;
        }
        if self.late_calls > 0 {
            moves.push(Move::LandCall);
        }
        if self.is_going_down && self.is_risen() && self.nodes.iter().all(|node| node.is_up()) {
            moves.push(Move::Lower);
        }
        if self.is_going_down && !self.is_risen() && self.all_run(1) {
            moves.push(Move::EndLowering);
        }
        if self.scenario.leads_down() && !self.is_risen() {
            let follows = |node: &usize| {
                let node = &self.nodes[*node];
                node.is_up() && node.process == Some(0) && !node.is_fit
            };
            moves.extend((0..self.nodes.len()).filter(follows).map(|node| Move::Fit(node as At)));
        }
    }

    /// Enables it, or cancels it. That it is under way already is as good as done.
    pub fn downgrade(&mut self, host: usize, enable: bool, outcome: Outcome) -> Event {
        if outcome == Outcome::GaveUpLate {
            self.late_calls += u8::from(enable);
        }
        if outcome != Outcome::Plain || !self.has_quorum() {
            return Event::Failed("".into());
        }
        let is_late = self.calls_late(host);
        self.carry_out(enable, is_late);
        Event::Done
    }

    /// What nobody heard of: done, or to be done later.
    pub fn lower_unheard(&mut self, host: usize, enable: bool, is_later: bool) {
        match is_later {
            true => self.late_calls += u8::from(enable),
            false if self.has_quorum() => self.carry_out(enable, self.calls_late(host)),
            false => {}
        }
    }

    pub fn land_call(&mut self) {
        self.late_calls -= 1;
        self.carry_out(true, true);
    }

    /// A cancel that comes late is left out: what it undoes may be what a later run has asked for (`main.rs`).
    fn carry_out(&mut self, enable: bool, is_late: bool) {
        match enable {
            true => self.is_going_down |= self.is_risen(),
            false => self.is_going_down &= is_late,
        }
    }

    /// Whether an agent that calls has lost its baton meanwhile: it was frozen.
    pub fn calls_late(&self, host: usize) -> bool {
        let kept = self.process(host).kept;
        let has_baton = self.keys.baton.as_ref().is_some_and(|baton| Some(baton.value.take) == kept);
        self.scenario.rules.downgrade_takes_the_baton && !has_baton
    }
}
