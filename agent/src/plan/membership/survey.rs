//! What a change of members is decided by, beside the keys and the view: the list, and this host's places.

use std::sync::Arc;

use proto::{ClusterId, MemberId};

use crate::observe::peers::PeerUrls;

/// Gathered by one look, between two readings of the run and the step that showed the same: else there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Survey {
    /// Who is listed, by a voter that has asked a quorum. By a stale list the data of a member would be put aside.
    pub listed: PeerUrls,
    /// This host's seats, in the order of `Me::seats`.
    pub places: Vec<Place>,
}

/// Where a member of this host has its data and its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Where the others are to reach it; empty where the playbook does not say.
    pub peer_urls: Vec<String>,
    pub data: Data,
    /// Whether its process runs.
    pub runs: bool,
}

impl Place {
    /// Nothing is there, and nothing writes to it: a member that is to have it has lost what it had promised.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.data, Data::None | Data::NoLog) && !self.runs
    }
}

/// What is in a data directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// The playbook does not say where it is.
    Unnamed,
    /// No log: no member has begun there.
    None,
    Of {
        cluster: ClusterId,
        member: MemberId,
    },
    /// A database without the log that belongs to it: nobody goes on with that, and nobody knows whose it is.
    NoLog,
    /// Something is there, and it is not understood whose it is.
    Unknown(Arc<str>),
}
