//! Who this host and its part in a run are, as far as that can be read without taking any lock.

use std::{fs, path::Path, sync::Arc};

use proto::{ClusterId, MemberId};

use super::intent::intent;
use crate::{
    host::state_dir::machine_id,
    keys::host_id::{HostId, hex_32},
    observe::view::ClusterView,
    plan::{Me, Verb},
    playbook::{OnFailure, Playbook},
};

/// This host's name, for people.
pub fn host_name() -> Arc<str> {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    Arc::from(name.as_deref().unwrap_or("this host"))
}

/// The id under which an agent with this state directory is known; where there has been none yet, an id that
/// is nobody's.
pub fn host_id(state_dir: &Path) -> HostId {
    let instance = fs::read_to_string(state_dir.join("host-id")).ok().and_then(|text| hex_32(text.trim()));
    HostId { machine: machine_id(), instance: instance.unwrap_or(0) }
}

/// The members that the playbook's nodes are, by name.
pub fn mine(playbook: &Playbook, view: &ClusterView) -> Vec<MemberId> {
    let is_mine = |name: &str| playbook.node(name).is_some();
    view.members.iter().filter(|member| is_mine(&member.name)).map(|member| member.id).collect()
}

/// What does not change while an agent runs; `owns` are its members in this cluster.
pub fn me(playbook: &Playbook, host: HostId, cluster: ClusterId, owns: Vec<MemberId>, verb: Verb) -> Me {
    Me {
        host,
        host_name: host_name(),
        owns,
        intent: intent(playbook, cluster),
        verb,
        allow_degraded: playbook.strategy.allow_degraded,
        allow_downtime: playbook.strategy.allow_downtime,
        put_back: playbook.strategy.on_failure == OnFailure::Rollback,
        expect_agents: None,
    }
}
