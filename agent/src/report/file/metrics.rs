//! What one look has shown, as metrics: Prometheus' text format 0.0.4, for `agent status --output prometheus`.
//!
//! Every name is a contract with those who watch: names, labels and meanings are added, never changed. Where something is not
//! known its metric is left out, so that no alert takes a guess for a 0. playbooks/monitoring/README.md has the table.

use std::{fmt::Write as _, time::SystemTime};

use crate::{
    keys::{
        Keys, Run, RunResult, RunState,
        host_id::HostId,
        host_record::{HostRecord, Phase},
        membership::Stage,
    },
    observe::view::{ClusterView, Member, Role},
    plan::protection,
    report::{
        change,
        names::{Names, printable},
        shown::{
            cluster::{cluster_version, name},
            step_column,
        },
    },
};

/// One metric. All are gauges: each is what one look saw, and counts nothing up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    /// Beside `cluster`, which all have that were made with a playbook.
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

macro_rules! families {
    ($($place:ident = $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(const $place: Family = Family { name: $name, labels: &[$($label),*], help: $help };)+

        /// All of them, in the order in which they are written.
        pub const FAMILIES: &[Family] = &[$($place),+];
    };
}

families! {
    LOOK_TIMESTAMP = "baton_look_timestamp_seconds" [] "When this was seen, in seconds since 1970.";
    LOOK_SUCCESS = "baton_look_success" [] "Whether the cluster could be seen; else there is nothing of members and runs.";
    CLUSTER_INFO = "baton_cluster_info" ["cluster_id", "cluster_version"] "1; the lowest cluster version that a member reports.";
    MEMBER_INFO = "baton_member_info" ["member", "member_id", "release", "host"] "1; of each member that the cluster lists.";
    MEMBER_UP = "baton_member_up" ["member", "member_id"] "Whether it answered.";
    MEMBER_READY = "baton_member_ready" ["member", "member_id"] "Whether it is ready: others may go.";
    MEMBER_IS_LEADER = "baton_member_is_leader" ["member", "member_id"] "Whether a majority of voters take it for the leader.";
    MEMBER_IS_LEARNER = "baton_member_is_learner" ["member", "member_id"] "Whether it has no vote; also of one that has never started.";
    MEMBER_HAS_LEADER = "baton_member_has_leader" ["member", "member_id"] "Whether it says that there is a leader.";
    MEMBER_LAG = "baton_member_lag_entries" ["member", "member_id"] "How many log entries it is behind the leader.";
    MEMBER_STEP = "baton_member_step" ["member", "member_id", "step"] "1; where it is in the run that is in hand.";
    KEYS_READ = "baton_keys_read_success" [] "Whether the agents' shared keys could be read; else there is nothing of runs.";
    RUN_IN_PROGRESS = "baton_run_in_progress" [] "Whether a run has begun and is not done.";
    RUN_INFO = "baton_run_info" ["run", "change", "begun_by"] "1; of the run that stands, or the last one.";
    RUN_STATE = "baton_run_state" ["state"] "1 for the state of that run, 0 for every other.";
    RUN_MEMBERS = "baton_run_members" [] "How many members have started once, and so take part.";
    RUN_MEMBERS_DONE = "baton_run_members_done" [] "How many of them that run has brought to its target.";
    RUN_REVISION = "baton_run_revision" [] "The store's revision at which the run, its step or what was abandoned changed last.";
    STEP_LOCK = "baton_step_lock" ["member", "member_id", "host"] "1; the member that is, or may be, down by an agent's hand.";
    ABANDONED_STEPS = "baton_abandoned_steps" [] "How many members were given up and may still wake up.";
    AGENTS = "baton_agents" [] "How many agents take part.";
    AGENT_WAITS = "baton_agent_waits" ["host"] "Whether the agent of this host says that it waits.";
    PROTECTION_ON = "baton_protection_on" [] "Whether hosts are held for the members that they carry.";
    BUDGET = "baton_budget" [] "How many ready voters may be down by intent: all hosts but one stay up, and a quorum in any case.";
    HOST_HELD = "baton_host_held" ["host", "host_id"] "Whether the agents' own hold stands; of each host that carries a member, or is to.";
    HOST_MARKED = "baton_host_marked" ["host", "host_id"] "Whether it is marked to go.";
    HOST_HOLDS = "baton_host_holds" ["host", "host_id"] "How many holds of others stand.";
    VOTERS_NOT_HELD = "baton_voters_not_held" [] "How many voters are on hosts without a hold; only where protection is on.";
    NEWCOMER_STAGE = "baton_newcomer_stage" ["member", "stage", "host"] "1; how far a newcomer is that has no vote yet.";
    AGENT_RUN_ACTIVE = "baton_agent_run_active" ["host"] "Whether the run that writes this file is at work; agent run --metrics-file alone.";
    AGENT_RUN_EXIT = "baton_agent_run_exit_code" ["host", "reason"] "How that run has ended; not there before.";
    BATON_HOLDER = "baton_holder_info" ["host"] "1; the host whose turn it is.";
}

/// The states of a run, by the names that `baton_run_state` has for them.
pub const STATES: [&str; 8] =
    ["rolling", "failed", "held", "approved", "rolling_back", "paused", "done", "done_rolled_back"];

/// What was seen, and when.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// What the playbook calls the cluster.
    pub cluster: Option<&'a str>,
    pub at: SystemTime,
    /// None where nobody could be asked.
    pub view: Option<&'a ClusterView>,
    /// None where they could not be read.
    pub keys: Option<&'a Keys>,
    pub names: &'a Names,
    /// The run that writes this, and its host.
    pub agent: Option<(&'a str, AgentRun)>,
}

/// How a run stands that writes its own metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRun {
    AtWork,
    Ended { exit: u8, reason: &'static str },
}

/// The whole page.
pub fn page(look: &Look) -> String {
    let mut page = Page { cluster: look.cluster, text: String::new() };
    let at = look.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    page.one(LOOK_TIMESTAMP, at.as_secs_f64());
    page.one(LOOK_SUCCESS, yes(look.view.is_some()));
    if let Some(view) = look.view {
        members(&mut page, view, look);
        page.one(KEYS_READ, yes(look.keys.is_some()));
        if let Some(keys) = look.keys {
            run(&mut page, view, keys);
            hands(&mut page, keys, look.names);
            hosts(&mut page, view, keys);
        }
    }
    if let Some((host, run)) = look.agent {
        let host = host.to_owned();
        page.family(AGENT_RUN_ACTIVE, [(vec![host.clone()], yes(run == AgentRun::AtWork))]);
        if let AgentRun::Ended { exit, reason } = run {
            page.family(AGENT_RUN_EXIT, [(vec![host, reason.to_owned()], f64::from(exit))]);
        }
    }
    page.text
}

fn members(page: &mut Page, view: &ClusterView, look: &Look) {
    let version = cluster_version(view).map_or_else(String::new, |version| version.to_string());
    page.family(CLUSTER_INFO, [(vec![view.cluster.to_string(), version], 1.0)]);
    let release = |member: &Member| member.release().map_or_else(String::new, ToString::to_string);
    let host = |member: &Member| look.names.host_of(member.id).unwrap_or_default().to_owned();
    let info = |member: &Member| (vec![name(member), member.id.to_string(), release(member), host(member)], 1.0);
    page.family(MEMBER_INFO, view.members.iter().map(info));
    page.members(MEMBER_UP, view, |member| Some(yes(member.report().is_some())));
    page.members(MEMBER_READY, view, |member| Some(yes(member.is_ready())));
    page.members(MEMBER_IS_LEADER, view, |member| Some(yes(view.is_leader(member.id))));
    page.members(MEMBER_IS_LEARNER, view, |member| Some(yes(member.role == Role::Learner)));
    page.members(MEMBER_HAS_LEADER, view, |member| Some(yes(member.report()?.leader.is_some())));
    let last = view.leader().and_then(|leader| leader.report()).map(|report| report.applied.0);
    page.members(MEMBER_LAG, view, |member| Some(last?.saturating_sub(member.report()?.applied.0) as f64));
    if let Some(keys) = look.keys {
        let step = |member: &Member| {
            let step = stage(&step_column::step(member, view, keys)?);
            Some((vec![name(member), member.id.to_string(), step], 1.0))
        };
        page.family(MEMBER_STEP, view.members.iter().filter_map(step));
    }
}

fn hosts(page: &mut Page, view: &ClusterView, keys: &Keys) {
    let is_on = protection::is_on(keys);
    let (voters, ready) = (view.voters().count(), view.voters().filter(|voter| voter.is_ready()).count());
    page.one(PROTECTION_ON, yes(is_on));
    page.one(BUDGET, protection::budget(keys, voters, ready) as f64);
    let here = || keys.hosts.iter().filter(|(_, at)| at.value.phase != Phase::Left);
    let labels = |id: &HostId, record: &HostRecord| vec![printable(&record.host_name).to_string(), id.to_string()];
    let of = |value: fn(&HostRecord) -> f64| here().map(move |(id, at)| (labels(id, &at.value), value(&at.value)));
    page.family(HOST_HELD, of(|record| yes(record.is_held())));
    page.family(HOST_MARKED, of(|record| yes(record.is_marked())));
    page.family(HOST_HOLDS, of(|record| record.holds.iter().filter(|hold| !hold.is_own()).count() as f64));
    if is_on {
        let is_held = |id| protection::host_of(keys, id).is_some_and(|(_, at)| at.value.is_held());
        page.one(VOTERS_NOT_HELD, view.voters().filter(|voter| !is_held(voter.id)).count() as f64);
    }
    let run = keys.run.as_ref().filter(|run| !run.value.is_over());
    let joins = run.and_then(|run| run.value.membership.as_ref()).map_or(&[][..], |membership| &membership.joins);
    page.family(
        NEWCOMER_STAGE,
        joins.iter().map(|join| {
            let stage = match join.stage {
                Stage::Reserved => "reserved",
                Stage::Added => "added",
                Stage::Starting => "starting",
                Stage::GivenUp { .. } => "given_up",
            };
            let name = |text: &str| printable(text).to_string();
            (vec![name(&join.seat), stage.to_owned(), name(&join.host_name)], 1.0)
        }),
    );
}

/// Without how far it is: each number would be a series of its own.
fn stage(step: &str) -> String {
    step.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default().trim_end().to_owned()
}

fn run(page: &mut Page, view: &ClusterView, keys: &Keys) {
    let run = keys.run.as_ref().map(|run| &run.value);
    page.one(RUN_IN_PROGRESS, yes(run.is_some_and(|run| !run.is_over())));
    if let Some(run) = run {
        let begun = run.begun_by.as_ref().map_or_else(String::new, |host| printable(host).to_string());
        page.family(RUN_INFO, [(vec![json_name(run), change::run(&run.intent), begun], 1.0)]);
        let stands = state(run);
        page.family(RUN_STATE, STATES.map(|name| (vec![name.to_owned()], yes(name == stands))));
        page.one(RUN_MEMBERS, view.started().count() as f64);
        page.one(RUN_MEMBERS_DONE, run.done.len() as f64);
    }
    let changed = keys.run.iter().map(|run| run.modified);
    let changed = changed.chain(keys.step.iter().chain(keys.abandoned.values()).map(|step| step.modified)).max();
    if let Some(revision) = changed {
        page.one(RUN_REVISION, revision.0 as f64);
    }
}

/// As JSON and the events file have it.
fn json_name(run: &Run) -> String {
    format!("{:032x}", run.id.0)
}

fn state(run: &Run) -> &'static str {
    match &run.state {
        RunState::Rolling | RunState::Approved | RunState::RollingBack if run.pause.is_some() => "paused",
        RunState::Rolling => "rolling",
        RunState::Failed { .. } => "failed",
        RunState::Held { .. } => "held",
        RunState::Approved => "approved",
        RunState::RollingBack => "rolling_back",
        RunState::Done { result: RunResult::Reached } => "done",
        RunState::Done { result: RunResult::RolledBack } => "done_rolled_back",
    }
}

/// Who has what in hand.
fn hands(page: &mut Page, keys: &Keys, names: &Names) {
    let lock = keys.step.as_ref().map(|step| &step.value);
    let host = |name: &str| printable(name).to_string();
    let locked = |member| (names.short(member), member.to_string());
    page.family(
        STEP_LOCK,
        lock.map(|lock| {
            let (member, id) = locked(lock.member);
            (vec![member, id, host(&lock.host_name)], 1.0)
        }),
    );
    page.one(ABANDONED_STEPS, keys.abandoned.len() as f64);
    page.one(AGENTS, keys.agents.len() as f64);
    let waits = |agent: &crate::keys::Participant| (vec![host(&agent.host_name)], yes(agent.waits_for.is_some()));
    page.family(AGENT_WAITS, keys.agents.values().map(|agent| waits(&agent.value)));
    page.family(BATON_HOLDER, keys.baton.as_ref().map(|baton| (vec![host(&baton.value.host_name)], 1.0)));
}

fn yes(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

struct Page<'a> {
    cluster: Option<&'a str>,
    text: String,
}

impl Page<'_> {
    fn one(&mut self, family: Family, value: f64) {
        self.family(family, [(Vec::new(), value)]);
    }

    /// One sample a member, of those of which it is known.
    fn members(&mut self, family: Family, view: &ClusterView, value: impl Fn(&Member) -> Option<f64>) {
        let sample = |member: &Member| Some((vec![name(member), member.id.to_string()], value(member)?));
        self.family(family, view.members.iter().filter_map(sample));
    }

    /// All samples of a metric, which must stand together; nothing where there are none. Two hosts of one name are one.
    fn family(&mut self, family: Family, samples: impl IntoIterator<Item = (Vec<String>, f64)>) {
        let mut lines: Vec<(String, f64)> = Vec::new();
        for (values, value) in samples {
            let labels = self.labels(family, &values);
            match lines.iter_mut().find(|(there, _)| *there == labels) {
                Some((_, there)) => *there = there.max(value),
                None => lines.push((labels, value)),
            }
        }
        if lines.is_empty() {
            return;
        }
        let Family { name, help, .. } = family;
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for (labels, value) in lines {
            let _ = writeln!(self.text, "{name}{labels} {value}");
        }
    }

    fn labels(&self, family: Family, values: &[String]) -> String {
        let cluster = self.cluster.map(|name| ("cluster", name));
        let own = family.labels.iter().copied().zip(values.iter().map(String::as_str));
        let pairs: Vec<_> = cluster.into_iter().chain(own).map(|(label, value)| pair(label, value)).collect();
        if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
    }
}

fn pair(label: &str, value: &str) -> String {
    format!("{label}=\"{}\"", printable(value).replace('\\', "\\\\").replace('"', "\\\""))
}

/// The table of playbooks/monitoring/README.md.
pub fn markdown() -> String {
    let mut text = "| metric | labels | |\n|---|---|---|\n".to_owned();
    for Family { name, labels, help } in FAMILIES {
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "| `{name}` | {labels} | {help} |");
    }
    text
}

#[cfg(test)]
#[path = "metrics_test.rs"]
mod tests;
