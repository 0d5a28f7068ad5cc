//! What may still go wrong, and what persons may still do, in one state of the world.

/// How often each may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// SIGKILL of an agent.
    pub kill: u8,
    /// An agent stands still until its leases are gone, and goes on.
    pub freeze: u8,
    /// One lease of an agent at work runs out: its key, or the baton.
    pub lapse: u8,
    /// A Txn is not answered: it was done, or not, or will be done later.
    pub unknown: u8,
    /// A call that changes members is not answered: it was done, or not, or will be done later.
    pub call: u8,
    /// The cluster refuses such a call for reasons of its own.
    pub refuse: u8,
    /// An agent's patience ends with a wait.
    pub give_up: u8,
    /// A member's process ends by itself.
    pub crash: u8,
    /// A newcomer does not start, with data in its directory or without.
    pub sick: u8,
    /// What is to be put aside is not, or only stopped.
    pub stuck: u8,
    /// A data directory is emptied, of those that the scenario names.
    pub vanish: u8,
    /// A host is gone for good, of those that the scenario names.
    pub die: u8,
    /// Leadership moves by itself.
    pub move_leader: u8,
    /// A person removes a member.
    pub remove: u8,
    /// A person adds a learner.
    pub add: u8,
    /// A person promotes a learner.
    pub promote: u8,
    /// `agent abandon SEAT` of a newcomer whose host may be at work.
    pub abandon: u8,
    /// A host is marked to go.
    pub mark: u8,
    /// A tool takes the agents' own hold away.
    pub unhold: u8,
    /// Somebody holds a host, and lets it go at any later time.
    pub hold: u8,
    /// Whether others act between the two halves of a look.
    pub split_looks: bool,
}

impl Faults {
    /// Whether persons change members beside the run.
    pub fn has_persons(&self) -> bool {
        self.remove + self.add + self.promote > 0
    }
}

/// A fault's name, and one more of it.
pub type Fault = (&'static str, fn(&mut Faults));

/// Every fault but the removal of any member, of which there are most.
pub const ALL: [Fault; 16] = [
    ("kill", |f| f.kill += 1),
    ("freeze", |f| f.freeze += 1),
    ("lapse", |f| f.lapse += 1),
    ("unknown", |f| f.unknown += 1),
    ("call", |f| f.call += 1),
    ("refuse", |f| f.refuse += 1),
    ("give_up", |f| f.give_up += 1),
    ("crash", |f| f.crash += 1),
    ("sick", |f| f.sick += 1),
    ("stuck", |f| f.stuck += 1),
    ("vanish", |f| f.vanish += 1),
    ("die", |f| f.die += 1),
    ("move_leader", |f| f.move_leader += 1),
    ("add", |f| f.add += 1),
    ("promote", |f| f.promote += 1),
    ("abandon", |f| f.abandon += 1),
];
