//! The one object that `--output json` prints. Fields are added, never renamed.

use std::collections::BTreeMap;

use proto::MemberId;
use serde::Serialize;

use crate::{
    keys::{RunId, change::Change, seat::Seats},
    observe::view::{Answer, ClusterView, Health, JoinTerms, Member, Role},
    report::{
        names::Names,
        shown::{cluster, forecast::StepLine, gates::GatesLine},
        stop::Stop,
    },
    visible,
};

/// What a result says beside how the command ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// Whether this process changed anything: a member of this host, or the run by what a person decided.
    pub changed: bool,
    pub run: Option<RunId>,
    /// The playbook's `from`.
    pub from: Option<String>,
    /// The playbook's `to`.
    pub to: Option<String>,
    /// The members as last seen.
    pub members: Vec<MemberLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<String>,
    /// The cluster's feature gates as last seen; none where no member has any.
    pub gates: Option<GatesLine>,
    /// What was waited for at the end.
    pub waiting_for: Option<String>,
    /// Since when, as RFC 3339 has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<String>,
    /// What ends that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_until: Option<String>,
    /// What this process did, or what a plan would do.
    pub steps: Vec<StepLine>,
    /// What did not stop anything, and a person should know.
    pub warnings: Vec<String>,
    /// What one verb alone has to say.
    #[serde(flatten)]
    pub more: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberLine {
    pub name: String,
    /// Its id, as etcdctl prints it.
    pub id: MemberId,
    /// Its host's name, where an agent there said so.
    pub host: Option<String>,
    pub version: Option<String>,
    /// `leader`, `follower`, `learner`
    pub role: &'static str,
    /// `ready`, `catching_up`, `sick`, `silent`
    pub state: &'static str,
    /// Whether it runs on this host.
    pub mine: bool,
    /// Why it is not ready.
    pub trouble: Option<String>,
    /// How many log entries it is behind the leader.
    pub lag: Option<u64>,
    /// The cluster version it reports.
    pub cluster_version: Option<String>,
    /// The storage version it reports.
    pub storage_version: Option<String>,
    /// The protocols that it speaks with other members, the lowest and the highest.
    pub protocols: Option<(u32, u32)>,
    /// `compatible`, `strict`: beside whom it takes part.
    pub join_policy: Option<&'static str>,
    /// Which features of the cluster it says are on or off.
    pub gates: Option<BTreeMap<String, bool>>,
    /// Which of them it wants on or off.
    pub proposed_gates: Option<BTreeMap<String, bool>>,
}

#[derive(Serialize)]
struct Object<'a> {
    format: u32,
    #[serde(flatten)]
    stop: &'a Stop,
    #[serde(flatten)]
    facts: &'a Facts,
}

pub fn object(stop: &Stop, facts: &Facts) -> String {
    let object = serde_json::to_string(&Object { format: 1, stop, facts })
        .expect("all of it is numbers and texts, with texts for keys, which JSON can always hold");
    visible::json(object)
}

/// The members of a view; `mine` are those of this host.
pub fn members(view: &ClusterView, names: &Names, mine: &Seats) -> Vec<MemberLine> {
    view.members.iter().map(|member| line(view, member, names, mine)).collect()
}

fn line(view: &ClusterView, member: &Member, names: &Names, mine: &Seats) -> MemberLine {
    let report = member.report();
    MemberLine {
        name: cluster::name(member),
        id: member.id,
        host: names.host_of(member.id).map(str::to_owned),
        version: member.release().map(ToString::to_string),
        role: role(view, member),
        state: state(member),
        mine: mine.has(member.id),
        trouble: member.trouble().map(|text| crate::report::names::printable(&text).to_string()),
        lag: view.lag(member),
        cluster_version: report.and_then(|report| report.cluster_version).map(|version| version.to_string()),
        storage_version: report.and_then(|report| report.storage_version).map(|version| version.to_string()),
        protocols: report
            .and_then(|report| report.join.as_ref())
            .map(|join| (join.lowest_protocol, join.highest_protocol)),
        join_policy: report.and_then(|report| report.join.as_ref()).map(join_policy),
        gates: member.gates().map(|gates| gates.enabled.clone()),
        proposed_gates: member.gates().map(|gates| gates.proposed.clone()),
    }
}

/// As the node's flag has it.
fn join_policy(join: &JoinTerms) -> &'static str {
    if join.is_strict { "strict" } else { "compatible" }
}

/// What a member is in the cluster.
pub(crate) fn role(view: &ClusterView, member: &Member) -> &'static str {
    match member.role {
        Role::Learner => "learner",
        Role::Voter if view.is_leader(member.id) => "leader",
        Role::Voter => "follower",
    }
}

/// Whether it is ready, in a word.
pub(crate) fn state(member: &Member) -> &'static str {
    match &member.answer {
        Answer::Silent { .. } => "silent",
        Answer::NeverStarted => "never_started",
        Answer::Reported(report) => match report.health {
            Health::Ready => "ready",
            Health::CatchingUp { .. } => "catching_up",
            Health::Sick { .. } | Health::Alarmed { .. } => "sick",
        },
    }
}

/// `from` and `to` of a change.
pub fn versions(change: &Change) -> (Option<String>, Option<String>) {
    {
        let kind = change.kind();
        (kind.from().map(ToString::to_string), kind.target().release.map(ToString::to_string))
    }
}
