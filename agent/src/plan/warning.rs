//! What a person should know, and nothing is refused for. Values: `report/warned.rs` makes the sentences.

use proto::MemberId;

/// Something that may go wrong later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    /// A member is not ready, and no agent runs on its host.
    Alone {
        /// The member.
        member: MemberId,
    },
}
