//! Who this host and its part in a run are, as far as that can be read without taking any lock.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use proto::MemberId;

use super::intent::at;
use crate::{
    host::files::state_dir::machine_id,
    keys::{
        Intent,
        host_id::{HostId, hex_32},
        seat::{Seat, Seats},
    },
    observe::view::ClusterView,
    plan::{self, Me, Verb},
    playbook::{Node, OnFailure, Playbook},
    regular_file,
};

/// Longer than an id, in bytes.
const MAX_ID: usize = 4096;

/// This host's name, for people.
pub fn host_name() -> Arc<str> {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    Arc::from(name.as_deref().unwrap_or("this host"))
}

/// The id under which an agent with this state directory is known; where there has been none yet, an id that
/// is nobody's.
pub fn host_id(state_dir: &Path) -> HostId {
    let text = regular_file::read(&state_dir.join("host-id"), MAX_ID).ok().and_then(|id| String::from_utf8(id).ok());
    let instance = text.and_then(|text| hex_32(text.trim()));
    HostId { machine: machine_id(), instance: instance.unwrap_or(0) }
}

/// The seats that the playbook's nodes are, by the names of members.
pub fn mine(playbook: &Playbook, host: HostId, view: &ClusterView) -> Seats {
    Seats::on(host, known(playbook, view).into_iter().map(|(name, member)| (name.into(), member)))
}

/// The playbook's nodes that are members, by name.
pub fn known(playbook: &Playbook, view: &ClusterView) -> BTreeMap<String, MemberId> {
    let members = view.members.iter().filter(|member| playbook.node(&member.name).is_some());
    members.map(|member| (member.name.to_string(), member.id)).collect()
}

/// The seats of a host with these members. Where members change, each of its nodes has one, in the playbook's order.
pub fn seats(playbook: &Playbook, host: HostId, members: &BTreeMap<String, MemberId>) -> Seats {
    if !playbook.nodes.iter().any(|node| node.may_join) {
        return Seats::on(host, members.iter().map(|(name, member)| (Arc::from(name.as_str()), *member)));
    }
    let seat = |node: &Node| Seat {
        name: node.name.as_str().into(),
        host: Some(host),
        member: members.get(&node.name).copied(),
    };
    Seats(playbook.nodes.iter().map(seat).collect())
}

fn on_failure(playbook: &Playbook) -> plan::OnFailure {
    let changes_a_file = playbook.nodes.iter().any(|node| !node.files.is_empty());
    match playbook.strategy.on_failure {
        OnFailure::Stop => plan::OnFailure::Leave,
        OnFailure::Rollback if playbook.target().is_none() && !changes_a_file => plan::OnFailure::StartAgain,
        OnFailure::Rollback => plan::OnFailure::PutBack,
    }
}

/// What does not change while an agent is about one hop of its playbook; `seats` are its nodes.
pub fn me(playbook: &Playbook, intent: Arc<Intent>, host: HostId, seats: Seats, verb: Verb) -> Me {
    let on_failure = on_failure(&at(playbook, &intent.change));
    Me {
        host,
        host_name: host_name(),
        seats,
        intent,
        verb,
        allow_degraded: playbook.strategy.allow_degraded,
        allow_downtime: playbook.strategy.allow_downtime,
        max_learners: playbook.strategy.max_learners,
        on_failure,
        command: Arc::from(""),
        expect_agents: None,
    }
}
