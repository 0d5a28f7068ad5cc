//! What may still go wrong, and what an operator may still do, in one state of the world.

/// How often each may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// SIGKILL of an agent.
    pub kill: u8,
    /// SIGKILL of an agent and loss of its state directory.
    pub lose_directory: u8,
    /// A member's process ends by itself.
    pub crash: u8,
    /// An agent is frozen until its leases are gone, and wakes up.
    pub freeze: u8,
    /// A Txn is not answered: it was done, or not, or will be done later.
    pub unknown: u8,
    /// An agent's patience ends: with a Txn that is not answered, or with a wait.
    pub give_up: u8,
    /// A process comes up sick, ends at once, or is too slow.
    pub sick: u8,
    /// Leadership moves by itself.
    pub move_leader: u8,
    /// SIGTERM to an agent.
    pub interrupt: u8,
    /// `agent abandon`, rightly or wrongly, of a record that was seen some time ago.
    pub abandon: u8,
    /// `agent rollback`, where nothing asks for it.
    pub rollback: u8,
    /// `agent resume`.
    pub resume: u8,
    /// `agent run --replace` of a run that was seen some time ago.
    pub replace: u8,
    /// `agent pause` of a run that was seen some time ago.
    pub pause: u8,
    /// What comes before a step, or after the last, fails: preparation, a hook, a hand-over, the settling.
    pub refuse: u8,
    /// A process does not stop, or a binary cannot be switched.
    pub stuck: u8,
    /// `agent guard` with a command.
    pub guard: u8,
    /// `agent guard --check`
    pub ask: u8,
    /// A host loses its power within a guarded step.
    pub power: u8,
    /// Whether keys may change between the two halves of a look.
    pub split_looks: bool,
}

/// A fault's name, and one more of it.
pub type Fault = (&'static str, fn(&mut Faults));

/// Every fault.
pub const ALL: [Fault; 15] = [
    ("kill", |f| f.kill += 1),
    ("lose_directory", |f| f.lose_directory += 1),
    ("crash", |f| f.crash += 1),
    ("freeze", |f| f.freeze += 1),
    ("unknown", |f| f.unknown += 1),
    ("give_up", |f| f.give_up += 1),
    ("sick", |f| f.sick += 1),
    ("move_leader", |f| f.move_leader += 1),
    ("interrupt", |f| f.interrupt += 1),
    ("abandon", |f| f.abandon += 1),
    ("rollback", |f| f.rollback += 1),
    ("resume", |f| f.resume += 1),
    ("replace", |f| f.replace += 1),
    ("refuse", |f| f.refuse += 1),
    ("stuck", |f| f.stuck += 1),
];
