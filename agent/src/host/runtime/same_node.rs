//! Processes that may well be the node, though they were started with other arguments than the playbook has.
//!
//! What tells two nodes of one executable apart is the program's own affair; of etcd and what takes its flags it is
//! known: no two may have one data folder, configuration file or address, and a `--name` is one node's unless a data
//! folder says otherwise. So a process of the node's executable that shares one of these is taken for the node alive,
//! and a second one is never started beside it, on its data. Source: etcd's documentation, "Configuration options".

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// Flags whose values belong to one node alone.
const OWN: [&str; 4] = ["data-dir", "config-file", "listen-client-urls", "listen-peer-urls"];
/// A flag that two clusters on one host may both use.
const NAME: &str = "name";
/// The flag that then tells them apart.
const DATA: &str = "data-dir";

/// How a process differs from what the playbook would start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Arguments that only the process has.
    pub only_there: Vec<String>,
    /// Arguments that only the playbook has.
    pub only_here: Vec<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |words: &[String]| {
            let shown =
                words.iter().take(MOST_WORDS).map(|word| format!("`{}`", cut(word))).collect::<Vec<_>>().join(" ");
            match words.len().saturating_sub(MOST_WORDS) {
                0 => shown,
                more => format!("{shown} and {more} more"),
            }
        };
        match (&self.only_there[..], &self.only_here[..]) {
            ([], []) => write!(f, "it has the same arguments in another order or number"),
            (there, []) => write!(f, "it also has {}", list(there)),
            ([], here) => write!(f, "it does not have {}", list(here)),
            (there, here) => write!(f, "it has {} where the playbook has {}", list(there), list(here)),
        }
    }
}

/// Of each list of words as many are told: whoever starts a process may give it megabytes of them.
const MOST_WORDS: usize = 8;
/// And of each as many characters.
const MOST_OF_A_WORD: usize = 100;

fn cut(word: &str) -> Cow<'_, str> {
    match word.char_indices().nth(MOST_OF_A_WORD) {
        Some((end, _)) => format!("{}…", &word[..end]).into(),
        None => word.into(),
    }
}

/// Compares the arguments of a process with those of the playbook, programs left out.
pub(crate) fn difference(process: &[String], playbook: &[String]) -> Difference {
    let only = |these: &[String], those: &[String]| {
        let those: BTreeSet<_> = those.iter().collect();
        these.iter().filter(|word| !those.contains(word)).cloned().collect()
    };
    Difference { only_there: only(process, playbook), only_here: only(playbook, process) }
}

/// Whether two argument lists can only be of one node.
pub(crate) fn is_of_one_node(one: &[String], other: &[String]) -> bool {
    let same = |flag| matches!((value(one, flag), value(other, flag)), (Some(one), Some(other)) if one == other);
    let has_both = |flag| value(one, flag).is_some() && value(other, flag).is_some();
    OWN.into_iter().any(same) || (same(NAME) && !has_both(DATA))
}

/// Whether two argument lists mean the same: the same words, or the flags of one node in another order or form. The order counts
/// within a flag alone, of which the last one is taken.
pub(crate) fn mean_the_same(one: &[String], other: &[String]) -> bool {
    one == other || (is_of_one_node(one, other) && flags(one).is_some_and(|one| Some(one) == flags(other)))
}

/// The values of each flag in their order; `None` where a word is neither a flag nor a value of one.
fn flags(arguments: &[String]) -> Option<BTreeMap<&str, Vec<Option<&str>>>> {
    let mut flags: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut words = arguments.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let named = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|named| !named.is_empty())?;
        let (name, value) = match named.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (named, words.next_if(|next| !next.starts_with('-'))),
        };
        flags.entry(name).or_default().push(value);
    }
    Some(flags)
}

/// How many arguments two lists have in common.
pub(crate) fn in_common(one: &[String], other: &[String]) -> usize {
    let one: BTreeSet<_> = one.iter().collect();
    other.iter().collect::<BTreeSet<_>>().intersection(&one).count()
}

/// A flag's last value, in each of the forms that Go's flags have: `-f v`, `-f=v`, and both with two dashes.
pub(crate) fn value<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let mut found = None;
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let Some(named) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        match named.split_once('=') {
            Some((name, value)) if name == flag => found = Some(value),
            None if named == flag => found = words.next(),
            _ => {}
        }
    }
    found.map(|value| value.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_ascii_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_node_is_told_from_its_neighbour_by_what_is_its_own() {
        for (one, other, is_one) in [
            ("--name a --data-dir /a", "--data-dir /a --name a", true),
            ("--name=a --data-dir=/a/", "--data-dir /a -name a --debug", true),
            ("--name a --data-dir /a", "--name b --data-dir /a", true),
            ("--config-file /a.yaml", "-config-file=/a.yaml --log-level debug", true),
            ("--name a --listen-peer-urls http://h:1", "--name b --listen-peer-urls=http://h:1", true),
            ("--name a", "--name a --debug", true),
            ("--name a --data-dir /a", "--name a", true),
            ("--name a --data-dir /one/a", "--name a --data-dir /two/a", false),
            ("--name a --data-dir /a --debug", "--name b --data-dir /b --debug", false),
            ("--data-dir /a", "snapshot --data-dir", false),
            ("--version", "--name a", false),
            ("600", "600", false),
            ("", "", false),
        ] {
            assert_eq!(is_of_one_node(&words(one), &words(other)), is_one, "{one:?} and {other:?}");
            assert_eq!(is_of_one_node(&words(other), &words(one)), is_one, "{other:?} and {one:?}");
        }
    }

    #[test]
    fn the_order_of_different_flags_does_not_count() {
        for (one, other, same) in [
            ("--name a --data-dir /a --debug", "--debug --data-dir=/a -name a", true),
            ("--name a --data-dir /a", "--name a --data-dir /a --debug", false),
            ("--name a --data-dir /a", "--name a --data-dir /b", false),
            // The last one counts.
            ("--name a --log x --log y", "--name a --log y --log x", false),
            ("--name a --log x --log y", "--log x --name a --log y", true),
            // Which of these is a value is not known.
            ("run --name a", "--name a run", false),
            ("run --name a", "run --name a", true),
            // What is no member's may go by its order.
            ("-x 1 -y 2", "-y 2 -x 1", false),
        ] {
            assert_eq!(mean_the_same(&words(one), &words(other)), same, "{one:?} and {other:?}");
            assert_eq!(mean_the_same(&words(other), &words(one)), same, "{other:?} and {one:?}");
        }
    }

    #[test]
    fn a_difference_names_what_differs() {
        for (process, playbook, told) in [
            ("-a 1", "1 -a", "it has the same arguments in another order or number"),
            ("-a 1 --debug", "-a 1", "it also has `--debug`"),
            ("-a 1", "-a 1 --new", "it does not have `--new`"),
            ("-a 1 -b", "-a 2 -b", "it has `1` where the playbook has `2`"),
        ] {
            assert_eq!(difference(&words(process), &words(playbook)).to_string(), told);
        }
    }

    #[test]
    fn a_difference_is_short_whatever_a_process_was_started_with() {
        let many: Vec<_> = (0..1000).map(|number| format!("{number}{}", "é".repeat(100_000))).collect();
        let told = difference(&many, &words("-a")).to_string();
        assert!(told.len() < 2_000 && told.contains("…` and 992 more where the playbook has `-a`"), "{told}");
    }
}
