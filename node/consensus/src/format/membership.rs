//! Who is in the group.

use std::collections::BTreeMap;

use openraft::BasicNode;

use super::{FormatError, Wire, message as m, required};
use crate::types::{Membership, StoredMembership};

impl Wire for Membership {
    type Message = m::Membership;

    fn message(&self) -> m::Membership {
        let voters = |ids: &std::collections::BTreeSet<u64>| m::Voters { ids: ids.iter().copied().collect() };
        let node = |(id, node): (&u64, &BasicNode)| m::Node { id: *id, address: node.addr.clone() };
        m::Membership {
            sets: self.get_joint_config().iter().map(voters).collect(),
            nodes: self.nodes().map(node).collect(),
        }
    }

    fn read(message: m::Membership) -> Result<Self, FormatError> {
        if message.sets.is_empty() && message.nodes.is_empty() {
            return Ok(Self::default());
        }
        let sets = message.sets.into_iter().map(|voters| voters.ids.into_iter().collect()).collect();
        let nodes: BTreeMap<_, _> =
            message.nodes.into_iter().map(|node| (node.id, BasicNode { addr: node.address })).collect();
        Self::new(sets, nodes).map_err(|error| FormatError(error.to_string()))
    }
}

impl Wire for StoredMembership {
    type Message = m::MembershipAt;

    fn message(&self) -> m::MembershipAt {
        let at = self.log_id().as_ref().map(Wire::message);
        m::MembershipAt { at, membership: Some(self.membership().message()) }
    }

    fn read(message: m::MembershipAt) -> Result<Self, FormatError> {
        let at = message.at.map(Wire::read).transpose()?;
        Ok(Self::new(at, required(message.membership, "a membership")?))
    }
}
