//! What a look has shown of the members, as an events file has it: what a reader needs to tell who was down, who led, and
//! which versions there were.

use proto::{ClusterId, MemberId};
use serde::Serialize;

use super::json::{role, state};
use crate::{
    observe::view::{ClusterView, Member},
    report::{names::Names, shown::cluster},
};

/// One look. Nothing in it changes while the members stay as they are: no counters, no words of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Seen {
    cluster_id: ClusterId,
    members: Vec<SeenMember>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct SeenMember {
    name: String,
    id: MemberId,
    /// Its host's name, where an agent there said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    release: Option<String>,
    /// `leader`, `follower`, `learner`
    role: &'static str,
    /// `ready`, `catching_up`, `sick`, `silent`, `never_started`
    state: &'static str,
    cluster_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version: Option<String>,
}

impl Seen {
    pub(super) fn of(view: &ClusterView, names: &Names) -> Self {
        let member = |member: &Member| {
            let report = member.report();
            SeenMember {
                name: cluster::name(member),
                id: member.id,
                host: names.host_of(member.id).map(str::to_owned),
                release: member.release().map(ToString::to_string),
                role: role(view, member),
                state: state(member),
                cluster_version: report.and_then(|report| report.cluster_version).map(|version| version.to_string()),
                storage_version: report.and_then(|report| report.storage_version).map(|version| version.to_string()),
            }
        };
        Self { cluster_id: view.cluster, members: view.members.iter().map(member).collect() }
    }
}
