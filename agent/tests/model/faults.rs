//! What may still go wrong, and what an operator may still do, in one state of the world.

/// How often each may still happen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
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
    /// A new binary comes up sick, or is too slow.
    pub sick: u8,
    /// Leadership moves by itself.
    pub move_leader: u8,
    /// SIGTERM to an agent.
    pub interrupt: u8,
    /// `agent abandon`, rightly or wrongly.
    pub abandon: u8,
    /// `agent rollback`, by an operator who saw the run some time ago.
    pub rollback: u8,
    /// `agent run --replace`.
    pub replace: u8,
    /// A `before_node` hook fails, or leadership cannot be passed on.
    pub hook: u8,
    /// Keys may change between the two halves of a look.
    pub split_looks: bool,
    /// A person has said that the last member may go.
    pub approved: bool,
}
