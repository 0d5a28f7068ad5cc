//! The entries that change what a cluster holds about itself.

use std::collections::BTreeMap;

use proto::{ClusterId, ClusterVersion, LogIndex, MemberId};

use super::member::{Attributes, Incarnation, StartId, Starts};
use crate::features::Features;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The first of a new cluster: who is in it. Where there are members already it says nothing.
    Bootstrap {
        id: ClusterId,
        /// Its voters, by id, with their names and peer URLs.
        members: BTreeMap<MemberId, (String, Vec<String>)>,
    },
    /// A member says who it is and what it wants.
    Publish {
        member: MemberId,
        /// How often it has started.
        starts: Starts,
        /// Which start that is.
        start_id: Option<StartId>,
        /// Which data directory it has.
        incarnation: Option<Incarnation>,
        attributes: Attributes,
    },
    /// Other members reach it at these URLs from here on (etcd, `MemberUpdate`).
    Move { member: MemberId, peer_urls: Vec<String> },
    /// The gate is closed, before the cluster version changes (KEP-4647, "Start a New Cluster", step 2).
    Reset {
        /// The version that this makes room for. Where the cluster has it already, this comes late and says nothing.
        prepares: ClusterVersion,
    },
    /// The cluster version is this one from here on.
    SetVersion {
        version: ClusterVersion,
        /// Every member that was heard, with the count of its starts: a member that has started anew since then was
        /// not heard, and the decision falls.
        heard: BTreeMap<MemberId, Starts>,
    },
    /// A downgrade is enabled, or cancelled.
    Downgrade {
        /// The cluster version that it leads to; `None`: none is under way any more.
        to: Option<ClusterVersion>,
    },
    /// The gate is this from here on.
    Decide {
        features: Features,
        /// What it was decided from ([`super::Cluster::inputs`]).
        inputs: LogIndex,
    },
}
