//! What is known to hurt a member or the cluster when members are restarted on another release. Values:
//! `report/stop/hazard.rs` makes the sentences. A rule refuses for it, warns of it, or does either by how far it has come.

use proto::MemberId;

use crate::observe::difference::Difference;

/// One hazard, and what was found of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hazard {
    /// A database has little room left below its quota.
    Quota {
        /// The member that has least.
        member: MemberId,
        percent: u64,
    },
    /// Members hold different things.
    Differs(Difference),
    /// What the catalogue knows of the releases that members run, and are to run.
    Known {
        id: &'static str,
        /// Whom it concerns.
        members: Vec<MemberId>,
    },
}

impl Hazard {
    /// The entry of the catalogue for it.
    pub fn of_difference(difference: &Difference) -> &'static str {
        match difference {
            Difference::Users { .. } => "users-differ",
            Difference::Revisions { .. } | Difference::Behind { .. } | Difference::Hashes { .. } => "data-differs",
        }
    }
}
