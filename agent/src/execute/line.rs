//! What is written to the journal with each entry: the entry, and with a new step its two sides.

use std::collections::BTreeMap;

use proto::MemberId;
use serde::{Deserialize, Serialize};

use super::node::Sides;
use crate::{
    journal::{
        progress::{self, Entry, Illegal, InHand},
        restart,
    },
    unknown::{Unknown, keeps},
};

/// One record of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What was about to be done, or was.
    pub entry: Entry,
    /// With [`restart::Entry::Planned`]: what the member runs before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<Sides>,
    /// What a newer agent wrote beside it.
    #[serde(skip)]
    pub unknown: Unknown,
}

impl Line {
    pub fn new(entry: Entry, sides: Option<Sides>) -> Self {
        Self { entry, sides, unknown: Unknown::default() }
    }
}

keeps! { Line }

/// What a journal's lines add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    pub in_hand: Option<InHand>,
    /// The last sides of each member.
    pub sides: BTreeMap<MemberId, Sides>,
}

impl Past {
    pub fn restart(&self) -> Option<restart::InHand> {
        self.in_hand?.restart()
    }

    /// Whether no step was ever planned.
    pub fn is_empty(&self) -> bool {
        self.in_hand.is_none() && self.sides.is_empty()
    }
}

/// Reads them.
///
/// # Errors
/// Entries that cannot follow one another.
pub fn past(lines: &[Line]) -> Result<Past, Illegal> {
    let in_hand = progress::replay(lines.iter().map(|line| line.entry))?;
    let planned = lines.iter().filter_map(|line| match (line.entry, &line.sides) {
        (Entry::Restart(restart::Entry::Planned(step)), Some(sides)) => Some((step.member, sides.clone())),
        _ => None,
    });
    Ok(Past { in_hand, sides: planned.collect() })
}

/// The fewest lines with the same meaning: each member's last step, forgotten. Only where nothing is in hand.
pub fn compact(lines: Vec<Line>) -> Vec<Line> {
    let mut last: BTreeMap<MemberId, Line> = BTreeMap::new();
    for line in lines {
        if let Entry::Restart(restart::Entry::Planned(step)) = line.entry {
            last.insert(step.member, line);
        }
    }
    last.into_values().flat_map(|line| [line, Line::new(Entry::Restart(restart::Entry::Forgotten), None)]).collect()
}

#[cfg(test)]
mod tests {
    use proto::Release;

    use super::*;
    use crate::{
        execute::node::Side,
        journal::restart::{Direction, Stage, Step},
        keys::AttemptId,
    };

    fn planned(member: u64, attempt: u128, patch: u64) -> Line {
        let side = |patch| Side { release: Release::new(3, 5, patch), executable: None };
        let step = Step { member: MemberId(member), attempt: AttemptId(attempt), direction: Direction::Forward };
        Line::new(
            Entry::Restart(restart::Entry::Planned(step)),
            Some(Sides { old: side(patch), new: side(patch + 1), binary: None }),
        )
    }

    fn bare(entry: restart::Entry) -> Line {
        Line::new(Entry::Restart(entry), None)
    }

    /// What a newer agent wrote into the lines that stay is written again.
    #[test]
    fn a_compaction_keeps_lines_as_they_are() {
        let json = serde_json::json!({ "entry": { "restart": { "planned": { "member": "1",
            "attempt": format!("{:032x}", 1), "direction": "forward", "why": "asked" } } }, "at": 7 });
        let line: Line = crate::unknown::read(json.clone()).unwrap();
        let kept = compact(vec![line, bare(restart::Entry::Forgotten)]);
        assert_eq!(crate::unknown::written(&kept[0]).unwrap(), json);
    }

    #[test]
    fn the_last_sides_of_each_member_outlive_the_step_and_the_compaction() {
        let lines = vec![
            planned(1, 1, 1),
            bare(restart::Entry::Forgotten),
            planned(1, 2, 5),
            bare(restart::Entry::Forgotten),
            planned(2, 3, 7),
        ];
        let found = past(&lines).unwrap();
        assert_eq!(found.restart().map(|in_hand| in_hand.stage), Some(Stage::Planned));
        assert_eq!(found.sides[&MemberId(1)].old.release, Release::new(3, 5, 5));
        let mut ended = lines;
        ended.push(bare(restart::Entry::Forgotten));
        let sides = past(&ended).unwrap().sides;
        let compacted = past(&compact(ended)).unwrap();
        assert_eq!((compacted.in_hand, compacted.sides), (None, sides));
    }
}
