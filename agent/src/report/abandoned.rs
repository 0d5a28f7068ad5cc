//! How `agent abandon` ends.

use std::path::Path;

use super::{
    names::{Names, printable},
    standing::standing,
    stop::{Progress, Reason, Stop},
};
use crate::{
    observe::view::ClusterView,
    rollout::keys::{Keys, TakeDown},
};

/// A take-down was given up, and its agent may still wake up.
pub fn abandoned(record: &TakeDown, names: &Names, view: &ClusterView, playbook: &Path) -> Stop {
    let (name, host) = (names.member(record.member), printable(&record.host_name));
    let message = format!("the take-down of {name} was given up; nobody takes a member down until it is settled");
    let left = format!("replace {name}, or bring {host} back: its agent may still wake up; {}", standing(view));
    let stop = Stop::well(Reason::Abandoned, message, "run", playbook);
    let next = stop.next.map(|next| format!("{next}  # on {host}"));
    Stop { next, left, cluster: Some(Progress::Partial), ..stop }
}

/// Its host was said to be dead for good.
pub fn fenced(record: &TakeDown, names: &Names, view: &ClusterView, playbook: &Path) -> Stop {
    let (name, host) = (names.member(record.member), printable(&record.host_name));
    let message = format!("{host} counts as dead, and the others may go on without {name}");
    let left = format!("keep {host} off, or replace {name} first; {}", standing(view));
    let stop = Stop::well(Reason::Fenced, message, "run", playbook);
    Stop { left, cluster: Some(Progress::Partial), ..stop }
}

/// That the agent whose take-down was given up lives.
pub fn warning(record: &TakeDown, keys: &Keys, names: &Names) -> Option<String> {
    let (name, host) = (names.member(record.member), printable(&record.host_name));
    let lives = keys.agents.contains_key(&record.host);
    lives.then(|| format!("the agent on {host} still keeps its lease alive: it may be at work on {name}"))
}
