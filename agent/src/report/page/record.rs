//! One event as it is read back. Every field but time and event may be missing: older agents wrote fewer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{observe::canary::Availability, report::shown::gates::GatesLine, visible};

/// How many characters of a text are kept.
const LONGEST: usize = 2_000;
/// How many members of one look are kept.
const MOST_MEMBERS: usize = 100;
/// How many fields that are not known here are kept.
const MOST_UNKNOWN: usize = 20;

/// What a line says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Said {
    pub(super) time: String,
    pub(super) event: String,
    pub(super) run: Option<String>,
    #[serde(default)]
    pub(super) host: String,
    #[serde(default)]
    pub(super) seq: u64,
    pub(super) member: Option<String>,
    pub(super) member_id: Option<String>,
    pub(super) step: Option<Value>,
    pub(super) cluster: Option<String>,
    pub(super) cluster_id: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    #[serde(default)]
    pub(super) back: bool,
    pub(super) hook: Option<String>,
    pub(super) command: Option<String>,
    pub(super) why: Option<String>,
    #[serde(default)]
    pub(super) hazards: Vec<String>,
    #[serde(default)]
    pub(super) accepted: bool,
    pub(super) waiting_for: Option<String>,
    pub(super) until: Option<String>,
    pub(super) gates: Option<GatesLine>,
    #[serde(default)]
    pub(super) members: Vec<SaidMember>,
    pub(super) hashes: Option<bool>,
    pub(super) canary: Option<Availability>,
    pub(super) seconds: Option<u64>,
    pub(super) percent: Option<u8>,
    pub(super) exit: Option<u8>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) left: Option<String>,
    pub(super) next: Option<String>,
    /// What a newer agent may say besides.
    #[serde(flatten)]
    pub(super) more: BTreeMap<String, Value>,
}

/// A member, as a look has shown it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct SaidMember {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) host: Option<String>,
    pub(super) release: Option<String>,
    #[serde(default)]
    pub(super) role: String,
    #[serde(default)]
    pub(super) state: String,
    pub(super) cluster_version: Option<String>,
    pub(super) storage_version: Option<String>,
}

/// An event, when it was, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    /// Milliseconds since 1970, by the clock of its host.
    pub(super) at: u64,
    /// Which of the files it is from.
    pub(super) file: usize,
    pub(super) said: Said,
}

impl Said {
    /// With every text made one line of a bounded length, in which nothing is hidden.
    pub(super) fn bounded(mut self) -> Self {
        for text in [&mut self.event, &mut self.host] {
            bound(text);
        }
        let optional = [
            &mut self.run,
            &mut self.member,
            &mut self.member_id,
            &mut self.cluster,
            &mut self.cluster_id,
            &mut self.kind,
            &mut self.from,
            &mut self.to,
            &mut self.hook,
            &mut self.command,
            &mut self.why,
            &mut self.waiting_for,
            &mut self.until,
            &mut self.reason,
            &mut self.message,
            &mut self.left,
            &mut self.next,
        ];
        let gap = self.canary.as_mut().map(|found| &mut found.gap_since);
        optional.into_iter().chain(gap).flatten().for_each(bound);
        self.hazards.truncate(MOST_MEMBERS);
        self.hazards.iter_mut().for_each(bound);
        self.members.truncate(MOST_MEMBERS);
        self.members.iter_mut().for_each(SaidMember::bound);
        self.gates.iter_mut().for_each(bound_gates);
        // Of all lines it has what the typed fields do not.
        self.more.remove("format");
        while self.more.len() > MOST_UNKNOWN {
            self.more.pop_last();
        }
        self
    }
}

impl SaidMember {
    fn bound(&mut self) {
        for text in [&mut self.name, &mut self.id, &mut self.role, &mut self.state] {
            bound(text);
        }
        let optional = [&mut self.host, &mut self.release, &mut self.cluster_version, &mut self.storage_version];
        optional.into_iter().flatten().for_each(bound);
    }
}

fn bound_gates(gates: &mut GatesLine) {
    gates.features.truncate(MOST_MEMBERS);
    gates.awaited.truncate(MOST_MEMBERS);
    gates.awaited.iter_mut().for_each(bound);
    for feature in &mut gates.features {
        bound(&mut feature.name);
        feature.kept_off_by.truncate(MOST_MEMBERS);
        feature.kept_off_by.iter_mut().for_each(bound);
    }
}

fn bound(text: &mut String) {
    *text = shown(text);
}

/// A text from a file, as it may be shown.
pub(super) fn shown(text: &str) -> String {
    let is_long = text.chars().nth(LONGEST).is_some();
    let begin: String = if is_long { text.chars().take(LONGEST).chain(['…']).collect() } else { text.to_owned() };
    visible::line(&begin).into_owned()
}
