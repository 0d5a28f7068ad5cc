//! What of a playbook all hosts must agree on.

use std::sync::Arc;

use proto::ClusterId;

use crate::{
    keys::{
        Finalize, Intent,
        change::{Change, Downgrade, Restart, Upgrade},
    },
    playbook::{self, Kind, Playbook},
};

/// The playbook's intent for this cluster. Paths, units, hooks and time-outs are each host's own, and not in it.
pub fn intent(playbook: &Playbook, cluster: ClusterId) -> Arc<Intent> {
    let change = match &playbook.kind {
        Kind::Upgrade { from, to, .. } => Change::Upgrade(Upgrade { from: from.clone(), to: to.clone() }),
        Kind::Downgrade { from, to, .. } => Change::Downgrade(Downgrade { from: from.clone(), to: to.clone() }),
        Kind::Restart { id } => Change::Restart(Restart { id: id.clone() }),
    };
    let finalize = match playbook.strategy.finalize {
        playbook::Finalize::Auto => Finalize::Auto,
        playbook::Finalize::Manual => Finalize::Manual,
    };
    Arc::new(Intent { cluster, change, gates: playbook.gates.expect.clone(), finalize })
}
