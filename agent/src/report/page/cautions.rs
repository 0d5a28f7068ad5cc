//! What went wrong, or may: hazards that were found or accepted, warnings, failures. What several hosts say is said once.

use super::{record::Record, timeline::Told};

/// How many are shown.
const MOST: usize = 200;

/// What kind of thing it is. The worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Failure,
    Hazard,
    Accepted,
    Warning,
    /// A line of a file that is no event.
    NotRead,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Hazard => "hazard",
            Self::Accepted => "hazard, accepted",
            Self::Warning => "warning",
            Self::NotRead => "not read",
        }
    }
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caution {
    pub(super) kind: Kind,
    /// When it was first said.
    pub(super) at: Option<u64>,
    pub(super) hosts: Vec<String>,
    pub(super) text: String,
}

/// All of them, and how many more there are.
pub(super) fn cautions(told: &[Told], faults: &[String]) -> (Vec<Caution>, usize) {
    let (mut found, mut more): (Vec<Caution>, usize) = (Vec::new(), 0);
    for (record, _) in told {
        let Some((kind, text)) = caution(record) else { continue };
        let host = &record.said.host;
        let known = found.iter().position(|caution| caution.kind == kind && caution.text == text);
        match known {
            Some(at) if found[at].hosts.contains(host) || found[at].hosts.len() >= MOST => {}
            Some(at) => found[at].hosts.push(host.clone()),
            None if found.len() == MOST => more += 1,
            None => found.push(Caution { kind, at: Some(record.at), hosts: vec![host.clone()], text }),
        }
    }
    let not_read = |text: &String| Caution { kind: Kind::NotRead, at: None, hosts: Vec::new(), text: text.clone() };
    found.extend(faults.iter().map(not_read));
    found.sort_by_key(|caution| caution.kind);
    (found, more)
}

fn caution(record: &Record) -> Option<(Kind, String)> {
    let said = &record.said;
    let member = said.member.as_deref().unwrap_or("a member");
    let kind = match said.event.as_str() {
        "warning" if said.accepted => Kind::Accepted,
        "warning" if !said.hazards.is_empty() => Kind::Hazard,
        "warning" => Kind::Warning,
        "member_failed" | "hook_failed" | "member_kept_new" => Kind::Failure,
        "command_ended" if said.why.is_some() => Kind::Failure,
        _ => return None,
    };
    let text = match kind {
        Kind::Failure => format!("{member}: {}", super::words::words(said)),
        _ => said.why.clone().unwrap_or_else(|| said.hazards.join(", ")),
    };
    Some((kind, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::record::Said;

    #[test]
    fn a_caution_of_several_hosts_is_one_and_the_worst_comes_first() {
        let record = |at: u64, host: &str, event: &str, why: &str| Record {
            at,
            file: 0,
            said: Said { event: event.into(), host: host.into(), why: Some(why.into()), ..Said::default() },
        };
        let mut accepted = record(3, "h1", "warning", "passed");
        (accepted.said.accepted, accepted.said.hazards) = (true, vec!["a".into()]);
        let mut known = accepted.clone();
        known.said.accepted = false;
        let records = [
            record(1, "h1", "warning", "no hash"),
            record(2, "h2", "warning", "no hash"),
            accepted,
            known,
            record(4, "h1", "member_failed", "it exits"),
            record(5, "h1", "joined", "not one"),
        ];
        let told: Vec<Told> = records.iter().map(|record| (record, 0)).collect();
        let (found, more) = cautions(&told, &["f, line 1".into()]);
        let said: Vec<_> = found.iter().map(|one| (one.kind.name(), one.hosts.len(), &*one.text)).collect();
        let expected = [
            ("failure", 1, "a member: failed: it exits"),
            ("hazard", 1, "passed"),
            ("hazard, accepted", 1, "passed"),
            ("warning", 2, "no hash"),
            ("not read", 0, "f, line 1"),
        ];
        assert_eq!((said, more), (expected.to_vec(), 0));
    }

    #[test]
    fn more_than_can_be_read_are_counted() {
        let records: Vec<_> = (0..MOST as u64 + 7)
            .map(|at| Record {
                at,
                file: 0,
                said: Said { event: "warning".into(), why: Some(at.to_string()), ..Said::default() },
            })
            .collect();
        let told: Vec<Told> = records.iter().map(|record| (record, 0)).collect();
        assert_eq!(cautions(&told, &[]).1, 7);
    }
}
