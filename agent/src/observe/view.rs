//! [`ClusterView`]: what one look at the cluster found.
//!
//! Data only: it can be saved, read back and handed to the planner. What is in it of a member was said by that
//! member, never by another (I-5); only that its membership is in doubt may others say.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proto::{ClusterId, ClusterVersion, LogIndex, MemberId, Release, Revision, Term};
use serde::{Deserialize, Serialize};

use super::{activity::Activity, health};

/// One look at every member, made side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterView {
    /// The cluster all of these members belong to.
    pub cluster: ClusterId,
    /// Who leads, as a majority of voters said in the highest term.
    pub leader: Leader,
    /// Every member of the membership, in order of id.
    pub members: Vec<Member>,
    /// What stops nothing and a person should know, a sentence each: addresses that are not used, answers without end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The leadership, as far as a majority of voters agree on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leader {
    /// A majority of voters named this member in this term, the highest that any of them reported.
    Agreed { member: MemberId, term: Term },
    /// No majority agreed within three election time-outs.
    Unknown,
}

/// One member of the membership, and what it said of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub id: MemberId,
    /// Its `--name`; empty while it has never started.
    pub name: Arc<str>,
    pub role: Role,
    /// Where it serves clients, as it advertises, and may be asked.
    pub client_urls: Vec<String>,
    /// Where it was reached; told nobody.
    #[serde(default, skip_serializing)]
    pub reached: Option<String>,
    /// Whether the lists of the members differ about it: whoever answered may be another.
    #[serde(default, skip_serializing)]
    pub is_disputed: bool,
    /// What it is in the middle of, where that was asked for: one that defragments may answer nothing else.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub activities: BTreeSet<Activity>,
    pub answer: Answer,
}

/// Whether a member votes (raft paper, section 4.2.1 of the dissertation: learners do not).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Voter,
    /// Receives the log, has no vote.
    Learner,
}

/// What a member said when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It answered `Maintenance.Status`.
    Reported(Box<Report>),
    /// It did not, or somebody else answered in its place.
    Silent {
        /// The transport's or the member's own words.
        reason: String,
    },
    /// All lists have it alike, with neither a name nor an address: etcd lists so a member that was added and whose
    /// process was never started. One that was started once is silent, whatever became of it.
    NeverStarted,
}

/// What a member reported of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub release: Release,
    /// The cluster version it holds; `None` while the cluster has not decided one, or it could not be asked.
    pub cluster_version: Option<ClusterVersion>,
    /// The version of its stored data; `None` where the release has no such thing (before etcd 3.6).
    pub storage_version: Option<ClusterVersion>,
    /// Where a downgrade that is enabled leads to; `None` also where the release does not tell (before etcd 3.6).
    #[serde(default)]
    pub downgrade: Option<ClusterVersion>,
    /// Whom it takes for the leader.
    pub leader: Option<MemberId>,
    pub term: Term,
    pub log_index: LogIndex,
    /// How far it has applied it.
    pub applied: LogIndex,
    /// The store's revision it answered at.
    pub revision: Revision,
    /// Size of its database file, in bytes.
    pub db_bytes: i64,
    /// How large that may become, in bytes; `None` where its `Status` does not say so, or not rightly.
    #[serde(default)]
    pub quota_bytes: Option<u64>,
    /// Whether it is ready to do without another.
    pub health: Health,
    /// What it says of the cluster's feature gates; `None` where the server has none.
    pub gates: Option<Gates>,
    /// Beside whom it takes part; `None` where the server does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinTerms>,
}

/// What a member of Baton's node demands of others, and speaks with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinTerms {
    /// The protocols that it speaks with other members, apart from its release.
    pub lowest_protocol: u32,
    pub highest_protocol: u32,
    /// Whether it takes part beside its own release alone (`--join-policy=strict`).
    pub is_strict: bool,
}

/// What a member says of the cluster's feature gates (KEP-4647).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gates {
    Said(GateReport),
    /// It could not be asked.
    Unknown {
        reason: String,
    },
}

impl Gates {
    /// Why it could not be asked.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Said(_) => None,
            Self::Unknown { reason } => Some(reason),
        }
    }
}

/// The gates as one member has them, and what it wants of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// Whether they are decided at the cluster version that it holds.
    pub is_decided: bool,
    /// What is on for the whole cluster; while nothing is decided, nothing is.
    pub enabled: BTreeMap<String, bool>,
    /// What it proposes itself; empty where this process of it has proposed nothing at this cluster version.
    pub proposed: BTreeMap<String, bool>,
    /// What every member proposes at that version, as this one has stored it: what a decision is made from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stored: BTreeMap<MemberId, BTreeMap<String, bool>>,
    /// What its release knows of features, those of a higher cluster version too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<String, Known>,
}

/// A feature, as one release knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The cluster version that first has it.
    pub since: ClusterVersion,
    /// What the cluster version that holds now locks it to.
    pub locked: Option<bool>,
}

/// Whether a member is ready, by the definition for its role (agent/PROTOCOL.md, "Ready").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// A voter: a linearizable read through it answered, no alarm, no error. A learner: caught up.
    Ready,
    /// Not ready, and worth waiting for: its applied index moves towards the leader's, or members do not list it alike.
    CatchingUp { reason: String },
    /// Not ready and not moving.
    Sick { reason: String },
    /// Not ready until a person has seen to the alarms and disarmed them. Every member reports every alarm.
    Alarmed {
        /// Which stand; at least one.
        alarms: Vec<Alarm>,
        /// What else is wrong with the member; `None` where it would be ready without them.
        besides: Option<String>,
    },
}

/// An alarm that stands (etcd's documentation, "Maintenance": space quota).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// Its kind in etcd's own word: `NOSPACE`, `CORRUPT`.
    pub kind: String,
    /// The member that it is of.
    pub of: MemberId,
    /// What that member is called, where the look that showed the alarm knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
}

impl Member {
    /// What it reported, if it answered.
    pub fn report(&self) -> Option<&Report> {
        match &self.answer {
            Answer::Reported(report) => Some(report),
            Answer::Silent { .. } | Answer::NeverStarted => None,
        }
    }

    /// Whether it was added and its process was never started.
    pub fn has_never_started(&self) -> bool {
        self.answer == Answer::NeverStarted
    }

    /// Whether it answered and is ready.
    pub fn is_ready(&self) -> bool {
        matches!(self.report(), Some(Report { health: Health::Ready, .. }))
    }

    /// Whether it is not ready yet but on its way.
    pub fn is_catching_up(&self) -> bool {
        matches!(self.report(), Some(Report { health: Health::CatchingUp { .. }, .. }))
    }

    /// What it said of the cluster's feature gates.
    pub fn gates(&self) -> Option<&GateReport> {
        match self.report()?.gates.as_ref()? {
            Gates::Said(gates) => Some(gates),
            Gates::Unknown { .. } => None,
        }
    }

    /// The release it said it runs.
    pub fn release(&self) -> Option<&Release> {
        self.report().map(|report| &report.release)
    }

    /// Why it is not ready, in its own or the transport's words; `None` when it is.
    pub fn trouble(&self) -> Option<Cow<'_, str>> {
        match &self.answer {
            Answer::Silent { reason } => Some(reason.into()),
            Answer::NeverStarted => Some("it has never started".into()),
            Answer::Reported(report) => match &report.health {
                Health::Ready => None,
                Health::CatchingUp { reason } | Health::Sick { reason } => Some(reason.into()),
                Health::Alarmed { alarms, besides } => Some(alarmed(alarms, besides.as_deref()).into()),
            },
        }
    }

    /// What keeps its own step from ending; `None` where nothing does. Others' alarms do not (PROTOCOL.md, "Ready").
    pub fn step_trouble(&self) -> Option<Cow<'_, str>> {
        match self.report().map(|report| &report.health) {
            Some(health) if health::ends_step(self.id, health) => None,
            _ => self.trouble(),
        }
    }
}

impl Report {
    /// The alarms that it reports.
    pub fn alarms(&self) -> &[Alarm] {
        match &self.health {
            Health::Alarmed { alarms, .. } => alarms,
            Health::Ready | Health::CatchingUp { .. } | Health::Sick { .. } => &[],
        }
    }
}

fn alarmed(alarms: &[Alarm], besides: Option<&str>) -> String {
    let alarms = alarms.iter().map(|Alarm { kind, of, name }| match name {
        Some(name) => format!("alarm {kind} of {name}"),
        None => format!("alarm {kind} of member {of}"),
    });
    alarms.chain(besides.map(str::to_owned)).collect::<Vec<_>>().join("; ")
}

impl ClusterView {
    /// Gives each alarm its member's name.
    pub(super) fn name_alarms(&mut self) {
        let names: BTreeMap<_, _> = self.members.iter().map(|member| (member.id, member.name.clone())).collect();
        for member in &mut self.members {
            if let Answer::Reported(report) = &mut member.answer
                && let Health::Alarmed { alarms, .. } = &mut report.health
            {
                let known = |of| names.get(&of).filter(|name| !name.is_empty());
                alarms.iter_mut().for_each(|alarm| alarm.name = known(alarm.of).cloned());
            }
        }
    }

    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.role == Role::Voter)
    }

    /// Whoever was ever started.
    pub fn started(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.has_never_started())
    }

    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn leader(&self) -> Option<&Member> {
        match self.leader {
            Leader::Agreed { member, .. } => self.member(member),
            Leader::Unknown => None,
        }
    }

    /// How many entries that the leader has applied it has not; `None` where one of the two does not say.
    pub fn lag(&self, member: &Member) -> Option<u64> {
        let leader = self.leader()?.report()?;
        Some(leader.applied.0.saturating_sub(member.report()?.applied.0))
    }

    /// What the members that answered said of themselves.
    pub fn reports(&self) -> impl Iterator<Item = &Report> + Clone {
        self.members.iter().filter_map(Member::report)
    }

    /// Where a downgrade leads to that is enabled.
    pub fn downgrade(&self) -> Option<ClusterVersion> {
        self.reports().find_map(|report| report.downgrade)
    }

    /// Whether this member is in the membership, answered, and is ready.
    pub fn is_ready(&self, id: MemberId) -> bool {
        self.member(id).is_some_and(Member::is_ready)
    }

    /// Whether each of these that is in the membership is ready, and there is one.
    pub fn are_ready(&self, ids: impl IntoIterator<Item = MemberId>) -> bool {
        let mut members = ids.into_iter().filter_map(|id| self.member(id)).peekable();
        members.peek().is_some() && members.all(Member::is_ready)
    }

    /// Whether any member has cluster feature gates.
    pub fn has_gates(&self) -> bool {
        self.members.iter().any(|member| member.gates().is_some())
    }

    /// An alarm that a member reports; one that others report as well comes first.
    pub fn alarm(&self) -> Option<&Alarm> {
        let reported = || self.reports().flat_map(Report::alarms);
        reported().find(|alarm| self.alone_with(alarm).is_none()).or_else(|| reported().next())
    }

    /// The member whose word alone this alarm is: every other one that answered reports none such, and there is another.
    /// An alarm that stands is a part of the state that all members share.
    pub fn alone_with(&self, alarm: &Alarm) -> Option<MemberId> {
        let is_it = |said: &Alarm| (&said.kind, said.of) == (&alarm.kind, alarm.of);
        let answered = self.members.iter().filter_map(|member| Some((member.id, member.report()?)));
        let (with, without): (Vec<_>, Vec<_>) = answered.partition(|(_, report)| report.alarms().iter().any(is_it));
        match (&with[..], without.is_empty()) {
            ([(alone, _)], false) => Some(*alone),
            _ => None,
        }
    }

    /// Whether no lease lapses, however long nobody keeps it alive: under the alarm CORRUPT etcd applies no revoking
    /// (`applierV3Corrupt` in its `server/etcdserver/apply`).
    pub fn keeps_every_lease(&self) -> bool {
        let mut alarms = self.reports().flat_map(Report::alarms);
        alarms.any(|alarm| alarm.kind == "CORRUPT" && self.alone_with(alarm).is_none())
    }

    /// Whether this member is in the membership and nothing keeps its own step from ending.
    pub fn ends_step(&self, id: MemberId) -> bool {
        self.member(id).is_some_and(|member| member.step_trouble().is_none())
    }

    /// Whether this member is the agreed leader.
    pub fn is_leader(&self, id: MemberId) -> bool {
        matches!(self.leader, Leader::Agreed { member, .. } if member == id)
    }
}
