//! What is known to hurt a member or the cluster when members are restarted on another release. Values:
//! `report/stop/hazard.rs` makes the sentences. A rule refuses for it, warns of it, or does either by how far it has come.

use proto::MemberId;

/// One hazard, and what was found of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hazard {
    /// A database has little room left below its quota.
    Quota {
        /// The member that has least.
        member: MemberId,
        percent: u64,
    },
    /// What the catalogue knows of the releases that members run, and are to run.
    Known {
        id: &'static str,
        /// Whom it concerns.
        members: Vec<MemberId>,
    },
}
