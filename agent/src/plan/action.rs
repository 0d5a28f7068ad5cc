//! What is done to one member under the lock. Each action is a type, with entries of its own in the journal
//! (`journal/`) and a file of its own in the machine (`machine/step/`).

use proto::MemberId;

use crate::journal::restart::Direction;

/// An action that can cost the quorum: one at a time in the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// See [`Restart`].
    Restart(Restart),
    /// See [`Guard`].
    Guard(Guard),
}

/// Stops a member and starts it on the release of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Restart {
    pub member: MemberId,
    pub direction: Direction,
    /// It leads: leadership must pass to this member first.
    pub hand_over: Option<MemberId>,
}

/// Runs a command that may take this host's members down, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The host's first member, whose name the lock goes by.
    pub member: MemberId,
    /// One of them leads: leadership must pass from it to that other one first.
    pub hand_over: Option<(MemberId, MemberId)>,
}

impl Action {
    pub fn member(&self) -> MemberId {
        match self {
            Self::Restart(restart) => restart.member,
            Self::Guard(guard) => guard.member,
        }
    }
}
