//! How `agent abandon` ends.

use std::path::Path;

use super::{Progress, Reason, Stop, there, with_own_playbook};
use crate::{
    keys::{Keys, StepLock},
    observe::view::ClusterView,
    report::{
        names::{Names, printable},
        shown::cluster::line,
    },
};

/// The question before a step is given up: what is seen, and what a yes would mean.
pub fn ask(record: &StepLock, names: &Names) -> String {
    let (name, host) = (names.member(record.member), printable(&record.host_name));
    format!(
        "{name} was taken down by {host} (pid {}), and no agent is at work there.\nIf it is given up, {name} counts as \
         lost, and nobody takes a member down until {host} is back or the member is replaced.\nGive it up?",
        record.process.pid
    )
}

/// The question before a host is declared dead.
pub fn ask_fenced(record: &StepLock, names: &Names) -> String {
    let (name, host) = (names.member(record.member), printable(&record.host_name));
    format!(
        "{name} was taken down by {host} (pid {}), and no agent is at work there.\nThat {host} is switched off, or cut off \
         for good, is believed without a proof: the others go on without {name}. Should its agent wake up all the same, \
         two members may be down at once.\nIs {host} dead for good?",
        record.process.pid
    )
}

/// A step was given up, and its agent may still wake up.
pub fn abandoned(record: &StepLock, names: &Names, view: &ClusterView, playbook: &Path) -> Stop {
    let (name, host) = (names.member(record.member), printable(&record.host_name));
    let message = format!("the step of {name} was given up; nobody takes a member down until it is settled");
    let left = format!("replace {name}, or bring {host} back: its agent may still wake up; {}", line(view));
    let verb = if record.guarded.is_some() { "guard --finish" } else { "run" };
    let stop = Stop::well(Reason::Abandoned, message, verb, playbook);
    let next = Some(with_own_playbook(&there(Some(&host), &names.short(record.member)), verb));
    Stop { next, left, cluster: Some(Progress::Partial), ..stop }
}

/// Its host was said to be dead for good.
pub fn fenced(record: &StepLock, names: &Names, view: &ClusterView, playbook: &Path) -> Stop {
    let (name, host) = (names.member(record.member), printable(&record.host_name));
    let message = format!("{host} counts as dead, and the others may go on without {name}");
    let left = format!("keep {host} off, or replace {name} first; {}", line(view));
    let stop = Stop::well(Reason::Fenced, message, "run", playbook);
    Stop { left, cluster: Some(Progress::Partial), ..stop }
}

/// That the agent whose step was given up lives.
pub fn warning(record: &StepLock, keys: &Keys, names: &Names) -> Option<String> {
    let (name, host) = (names.member(record.member), printable(&record.host_name));
    let lives = keys.agents.contains_key(&record.host);
    lives.then(|| format!("the agent on {host} still keeps its lease alive: it may be at work on {name}"))
}
