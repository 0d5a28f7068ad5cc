//! A way over several releases, as the hosts share it: each hop is a run of its own, and all hosts agree on the whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::change::Change;

/// Every hop of it, the first one first; which one is due is decided in `plan/hops.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hops {
    /// Two at least: upgrades, or downgrades.
    #[serde(deserialize_with = "several")]
    pub changes: Vec<Change>,
    /// What the cluster's gates must be after the last of them.
    #[serde(default)]
    pub gates: BTreeMap<String, bool>,
}

impl Hops {
    /// Which hop this change is, counted from 1, for people.
    pub fn number(&self, change: &Change) -> Option<usize> {
        self.changes.iter().position(|hop| hop == change).map(|at| at + 1)
    }

    /// Whether no hop follows this one.
    pub fn is_last(&self, change: &Change) -> bool {
        self.changes.last() == Some(change)
    }
}

/// Whoever may write the keys may write a way of no hop, too; and what a newer agent says of a hop is not passed over: it is of the intent.
fn several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Change>, D::Error> {
    let written = Vec::<serde_json::Value>::deserialize(deserializer)?;
    let mut changes: Vec<Change> = Vec::new();
    for written in written {
        let change = serde_json::from_value(written.clone()).map_err(D::Error::custom)?;
        if serde_json::to_value(&change).map_err(D::Error::custom)? != written {
            return Err(D::Error::custom("a hop of which this agent does not understand all"));
        }
        changes.push(change);
    }
    if changes.len() > 1 { Ok(changes) } else { Err(D::Error::custom("a way of less than two hops")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_way_is_read_in_full_or_not_at_all() {
        let hop = |to: &str| json!({ "upgrade": { "from": "=3.5.33", "to": to } });
        let mut newer = hop("3.6.14");
        newer["upgrade"]["slowly"] = json!(true);
        for (changes, is_read) in [
            (vec![hop("3.6.14"), hop("3.7.1")], true),
            (vec![], false),
            (vec![hop("3.6.14")], false),
            (vec![newer, hop("3.7.1")], false),
            (vec![hop("3.6.14"), json!({ "upgrade": 7 })], false),
        ] {
            let read = serde_json::from_value::<Hops>(json!({ "changes": changes }));
            assert_eq!(read.is_ok(), is_read, "{changes:?}: {read:?}");
        }
    }
}
