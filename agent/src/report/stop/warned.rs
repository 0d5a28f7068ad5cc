//! Warnings of the planner, as a person reads them.

use super::hazard;
use crate::{hazards, observe::clock::Apart, plan::warning::Warning, report::names::Names};

pub fn warned(warning: &Warning, names: &Names) -> String {
    match warning {
        Warning::Alone { member } => {
            format!("{} is not ready: refused, unless an agent runs on its host", names.member(*member))
        }
        Warning::NeverStarted { member } => format!(
            "{} has never started: not counted; while it is listed the cluster version does not rise, so start it, or \
             take it out with `etcdctl member remove {member}`",
            names.member(*member)
        ),
        Warning::OldPatch { members, newest } => {
            let (verb, minor) = (if members.len() == 1 { "runs" } else { "run" }, newest.cluster_version());
            format!(
                "{} {verb} a {minor} below {newest}: bring every member to {newest}, or a newer {minor}, first, as etcd \
                 advises",
                names.list(members)
            )
        }
        Warning::Clock { member, apart } => {
            let by = match apart {
                Apart::Ahead(seconds) => format!("{seconds} s ahead of"),
                Apart::Behind(seconds) => format!("{seconds} s behind"),
            };
            format!(
                "the clock of {} is {by} this host's, or more: see to its time service; certificates and windows are judged by both",
                names.member(*member)
            )
        }
        Warning::TwoVoters => {
            "for a while there are two voters, and neither may be lost: if the newcomer ends then, the quorum \
                               is gone; make a backup first (`etcdctl snapshot save`)"
                .to_owned()
        }
        Warning::RemovedFirst { member, left, to_lose } => format!(
            "{} is not ready and is removed first: until a newcomer votes, {left} voters are left, and {} of them may be \
             lost",
            names.member(*member),
            quantity(*to_lose)
        ),
        Warning::Hazard(hazard) => {
            let words = hazard::words(hazard, names);
            format!("{}; {}", words.found, words.remedy)
        }
        Warning::Known { ids, from, to } => format!(
            "known of etcd {from}, or of {to} after it: {}; `agent hazards --from {from} --to {to}` says more",
            ids.join(", ")
        ),
        Warning::Accepted { id } => {
            let symptom = hazards::find(id).map_or("", |hazard| hazard.symptom);
            format!("{id} is accepted by the playbook: {symptom}")
        }
    }
}

/// So many of something, within a sentence.
pub fn quantity(number: usize) -> String {
    if number == 0 { "none".to_owned() } else { number.to_string() }
}
