//! Which orders are taken for one.
//!
//! An act is *private* when no other host, no member and no lease can see it, change it or hinder it: what is
//! written to a host's own journal, its preparation and hooks, the switch of a binary whose member is down, a wait, the change to
//! another hop, and the
//! two questions whose answers are always the same here: *examine*, and *confirm*. Done before or after anything that happens elsewhere it comes to the same world, so the search lets
//! the first host that is about to do such a thing do it, and tries nothing else there: not even a signal or
//! the loss of a lease, which leave the act as it was. What ends its process and so takes the act's place, a
//! kill or the loss of its directory, is tried beside it, and so are all of its outcomes. Where there is but
//! one outcome, and no kill is left, the act is done at once with the one before it.
//!
//! Why nothing is lost. Take any way through all worlds on which a host stands before a private act. Either the act
//! is done later on it, or its process is killed there, or neither. In the first two cases that move can
//! be made first instead, since each move before it commutes with it; in the third the act can be made beside
//! the others, and no violation goes away by it. So every violation, and every world in which nobody is about to
//! do something private, is met on some way that the search takes. Private acts come in rows that end (in a look,
//! a Txn, a call on a member), so none is put off for ever. And an end that can be reached without faults from a
//! world met can be reached by a way of the search: all processes are gone at the end, so the act is on the way
//! to it, and can come first. (Godefroid, "Partial-Order Methods", persistent sets; the worlds themselves are
//! compared in `reduced.rs`.)
//!
//! To *confirm* a stop succeeds at once here. A stop that is not confirmed is undone, as after a look that forbids it.
//!
//! On a host that may be gone at the next moment, by a guarded command or for want of power, nothing is private: its members go with it,
//! and others see that.
//!
//! Two acts have an exception. To *switch* is seen where the version rises, and the *polls* are waited for
//! because it may: neither is private while a rise is pending. With its own member down none can become so.
//!
//! Registering and ending are no such acts: others see a participant's key come and go. They are taken to be of one
//! instant with what comes before them, which is coarser than the truth, but for the searches that are `fine`:
//! there others look in between, and the leases of an agent that ended stand until each of them runs out. There an
//! end is private, but not where another agent goes by the same id: that one sees whether the leases are renewed.
//! The argument above, and the comparison of worlds, are for the fine ones. In the coarse ones a private act that ends in such a
//! moment is done at once all the same, so some orders around it are tried by the fine searches only.

use super::{moves::is_registration, world::World};
use agent::machine::act::Act;

impl World {
    fn act_of(&self, host: usize) -> Option<&Act> {
        self.hosts[host].process.as_ref().map(|process| &process.act)
    }

    pub fn is_private(&self, host: usize) -> bool {
        use Act::{
            AwaitPolls, Confirm, Examine, Exit, HookAfter, HookBefore, Hop, Journal, Prepare, Spawn, Switch, Wait,
        };
        match self.act_of(host) {
            // What ends here with the whole host is seen elsewhere.
            _ if self.is_at_risk(host) => false,
            Some(
                Journal(_) | Prepare | Examine | Confirm(_) | Spawn | HookBefore(_) | HookAfter(_) | Wait(_) | Hop(_),
            ) => true,
            Some(Switch { .. } | AwaitPolls) => !self.may_rise(),
            // Its leases are left behind, so it is but one process less; a twin sees that nobody renews them.
            Some(Exit(_)) => self.scenario.is_fine && !self.scenario.has_twins,
            _ => false,
        }
    }

    /// The host whose turn it is, as it makes no difference.
    pub fn first_private(&self) -> Option<usize> {
        (0..self.hosts.len()).find(|host| self.scenario.is_reduced && self.is_private(*host))
    }

    /// Whether this host's act is done at once with the one before it.
    pub fn is_passed_over(&self, host: usize) -> bool {
        match self.act_of(host) {
            _ if self.is_electing() => false,
            Some(Act::Exit(_)) if !self.scenario.is_fine => true,
            Some(Act::Send(txn)) if is_registration(txn) => !self.scenario.is_fine && self.has_quorum(),
            _ => self.scenario.is_reduced && self.is_private(host) && self.is_undisturbed(host),
        }
    }

    /// Whether only one thing can come of it. To be killed in a wait or a question is to be killed before the act after it.
    fn is_undisturbed(&self, host: usize) -> bool {
        let process = self.process(host);
        let is_killed = self.left.kill + self.left.lose_directory > 0
            && !matches!(process.act, Act::Wait(_) | Act::Examine | Act::Confirm(_) | Act::Spawn);
        !is_killed && self.outcomes(host, process).len() == 1
    }
}
