//! What of a playbook all hosts must agree on.

use std::sync::Arc;

use proto::ClusterId;

use crate::{
    keys::{
        Finalize, Intent,
        change::{Change, Downgrade, Replace, Restart, Scale, Upgrade},
    },
    playbook::{self, Kind, Playbook},
};

/// The playbook's intent for this cluster. Paths, units, hooks and time-outs are each host's own, and not in it.
pub fn intent(playbook: &Playbook, cluster: ClusterId) -> Arc<Intent> {
    let change = match &playbook.kind {
        Kind::Upgrade { from, to, .. } => Change::Upgrade(Upgrade { from: from.clone(), to: to.clone() }),
        Kind::Downgrade { from, to, .. } => Change::Downgrade(Downgrade { from: from.clone(), to: to.clone() }),
        Kind::Restart { id } => Change::Restart(Restart { id: id.clone() }),
        Kind::Scale { members } => {
            Change::Scale(Scale { members: members.iter().map(|name| name.as_str().into()).collect() })
        }
        Kind::Replace { member, by } => {
            Change::Replace(Replace { member: member.as_str().into(), by: by.as_str().into() })
        }
    };
    let finalize = match playbook.strategy.finalize {
        playbook::Finalize::Auto => Finalize::Auto,
        playbook::Finalize::Manual => Finalize::Manual,
    };
    let accepted_hazards = playbook.strategy.accept_hazards.clone();
    Arc::new(Intent { cluster, change, gates: playbook.gates.expect.clone(), finalize, accepted_hazards })
}
