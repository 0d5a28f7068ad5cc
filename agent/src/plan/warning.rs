//! What a person should know, and nothing is refused for. Values: `report/stop/warned.rs` makes the sentences.

use proto::{MemberId, Release};

use super::hazard::Hazard;
use crate::observe::clock::Apart;

/// Something that may go wrong later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    /// A member is not ready, and no agent runs on its host.
    Alone { member: MemberId },
    /// A member that was added and never started.
    NeverStarted { member: MemberId },
    /// Members that run an older patch than etcd advises before an upgrade.
    OldPatch { members: Vec<MemberId>, newest: Release },
    /// A member's clock is not this host's.
    Clock { member: MemberId, apart: Apart },
    /// For a while there are two voters, of which neither may be lost.
    TwoVoters,
    /// A member that is not ready is removed before a newcomer comes.
    RemovedFirst {
        member: MemberId,
        /// So many voters are left until the newcomer votes.
        left: usize,
        to_lose: usize,
    },
    /// Something that is known to hurt, and has not come far enough to refuse for it.
    Hazard(Hazard),
    /// What the catalogue knows of the releases, and no run is refused for.
    Known { ids: Vec<&'static str>, from: Release, to: Release },
    /// What a run would be refused for, and a person has accepted.
    Accepted { id: &'static str },
}
