//! What of a playbook all hosts must agree on.

use std::sync::Arc;

use proto::ClusterId;

use crate::{
    keys::{
        Finalize, Intent,
        change::{Change, Downgrade, Replace, Restart, Scale, Upgrade},
        hops::Hops,
    },
    playbook::{self, Kind, Playbook},
};

/// The playbook's intent for this cluster. Paths, units, hooks and time-outs are each host's own, and not in it. Where it leads over several
/// releases, the intent is at the first hop.
pub fn intent(playbook: &Playbook, cluster: ClusterId) -> Arc<Intent> {
    let mut changes = changes(&playbook.kind);
    let finalize = match playbook.strategy.finalize {
        playbook::Finalize::Auto => Finalize::Auto,
        playbook::Finalize::Manual => Finalize::Manual,
    };
    let gates = playbook.gates.expect.clone();
    let hops = (changes.len() > 1).then(|| Arc::new(Hops { changes: changes.clone(), gates: gates.clone() }));
    let change = changes.swap_remove(0);
    let accepted_hazards = playbook.strategy.accept_hazards.clone();
    let backup = playbook.backup.is_some();
    let whole = Intent { cluster, change: change.clone(), gates, finalize, accepted_hazards, backup, hops };
    Arc::new(whole.at(&change))
}

/// One for each release that is gone over; one at least.
fn changes(kind: &Kind) -> Vec<Change> {
    match kind {
        Kind::Upgrade(hops) => {
            hops.iter().map(|hop| Change::Upgrade(Upgrade { from: hop.from.clone(), to: hop.to.clone() })).collect()
        }
        Kind::Downgrade(hops) => {
            hops.iter().map(|hop| Change::Downgrade(Downgrade { from: hop.from.clone(), to: hop.to.clone() })).collect()
        }
        Kind::Restart { id } => vec![Change::Restart(Restart { id: id.clone() })],
        Kind::Scale { members } => {
            vec![Change::Scale(Scale { members: members.iter().map(|name| name.as_str().into()).collect() })]
        }
        Kind::Replace { member, by } => {
            vec![Change::Replace(Replace { member: member.as_str().into(), by: by.as_str().into() })]
        }
    }
}

/// The playbook as an agent carries it out at this hop of its way.
pub fn at(whole: &Playbook, change: &Change) -> Playbook {
    let Some(hops) = whole.kind.hops().filter(|hops| hops.are_several()) else { return whole.clone() };
    let Some(hop) = hops.iter().find(|hop| Some(&hop.to) == change.to()) else { return whole.clone() };
    let one = playbook::Hops::one(hop.clone());
    let kind = if matches!(change, Change::Downgrade(_)) { Kind::Downgrade(one) } else { Kind::Upgrade(one) };
    Playbook { kind, ..whole.clone() }
}
