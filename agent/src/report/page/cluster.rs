//! What the cluster agreed on over time: its version, the version of its data, its gates, downgrades, and that it has settled.

use std::collections::BTreeSet;

use super::{record::Said, timeline::Told, words::words};

/// How many changes are shown.
const MOST: usize = 200;
const SETTLED: &str = "settled";
/// A look takes a while, and several agents look: what was so before, and is said again so soon, is an older look.
const LOOK: u64 = 3_000;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) at: u64,
    pub(super) what: &'static str,
    pub(super) text: String,
}

/// All of them, in order of time.
pub(super) fn changes(told: &[Told]) -> Vec<Change> {
    let mut found = Vec::new();
    let mut version = Followed::new("cluster version");
    let mut storage = Followed::new("version of the data");
    let mut gates = Followed::new("gates");
    for (record, _) in told {
        let (at, said) = (record.at, &record.said);
        match said.event.as_str() {
            "seen" => {
                found.extend(version.take(at, versions(said, |member| member.cluster_version.as_ref())));
                found.extend(storage.take(at, versions(said, |member| member.storage_version.as_ref())));
                found.extend(gates.take(at, said.gates.as_ref().map(|gates| gates.words())));
            }
            "downgrade_enabled" | "downgrade_cancelled" => {
                found.push(Change { at, what: "downgrade", text: words(said) });
            }
            // Every agent that waits for it says so.
            "gates_settled" | "settled" => {
                let text = words(said);
                if !found.iter().any(|change: &Change| change.what == SETTLED && change.text == text) {
                    found.push(Change { at, what: SETTLED, text });
                }
            }
            _ => {}
        }
        if found.len() >= MOST {
            break;
        }
    }
    found
}

/// What those that answered say; several while it changes.
fn versions(said: &Said, of: impl Fn(&super::record::SaidMember) -> Option<&String>) -> Option<String> {
    let versions: BTreeSet<&str> = said.members.iter().filter_map(|member| of(member).map(String::as_str)).collect();
    let said: Vec<_> = versions.into_iter().collect();
    (!said.is_empty()).then(|| said.join(" with some, ") + if said.len() > 1 { " with others" } else { "" })
}

struct Followed {
    what: &'static str,
    now: Option<String>,
    before: Option<String>,
    since: u64,
}

impl Followed {
    fn new(what: &'static str) -> Self {
        Self { what, now: None, before: None, since: 0 }
    }

    fn take(&mut self, at: u64, text: Option<String>) -> Option<Change> {
        let text = text.filter(|text| self.now.as_ref() != Some(text))?;
        if self.before.as_ref() == Some(&text) && at.saturating_sub(self.since) <= LOOK {
            return None;
        }
        (self.before, self.now, self.since) = (self.now.take(), Some(text.clone()), at);
        Some(Change { at, what: self.what, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_began_before_a_change_changes_nothing() {
        let mut version = Followed::new("cluster version");
        for (at, text, expected) in [
            (0, Some("3.5"), true),
            (10, Some("3.5"), false),
            (20, None, false),
            (1_000, Some("3.6"), true),
            (1_500, Some("3.5"), false),
            (2_000, Some("3.6"), false),
            (9_000, Some("3.5"), true),
        ] {
            assert_eq!(version.take(at, text.map(str::to_owned)).is_some(), expected, "{at}");
        }
    }
}
