//! What is typed to hold hosts for the members they carry, and to have one go.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use crate::playbook::unit::parse_duration;

/// `agent adopt`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Adopt {
    /// The playbook, a YAML file of any kind: its cluster and nodes count
    pub playbook: PathBuf,
    /// Forget this host instead: nothing holds it any more. Holds of others go first
    #[arg(long)]
    pub forget: bool,
    /// The state directory of this host was lost: take over what it has written of this host's members
    #[arg(long, conflicts_with = "forget")]
    pub take_over: bool,
}

/// `agent drain`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Drain {
    /// The playbook, a YAML file of any kind: its cluster counts
    pub playbook: PathBuf,
    /// The host: its name, that of a member it carries, or its id
    pub host: String,
    /// Only say whether it may be taken away now: exit 0, or 3 with what keeps it. Marks nothing
    #[arg(long, conflicts_with_all = ["undo", "wait"])]
    pub check: bool,
    /// Take the mark away: the host stays
    #[arg(long, conflicts_with = "wait")]
    pub undo: bool,
    /// Wait no longer than this: 10m, 1h. The mark stays all the same
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub wait: Option<Duration>,
    /// Who wants it to go; without it the user and this host
    #[arg(long, value_name = "WHO", value_parser = word)]
    pub by: Option<String>,
    /// Why it is to go, for people
    #[arg(long, value_name = "TEXT", default_value = "", value_parser = reason)]
    pub why: String,
}

/// `agent hold`
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Hold {
    /// Keep a host, and its member in the cluster, until the hold is removed
    Add(HoldAdd),
    /// Show every host that is known, and what holds it
    List(HoldList),
    /// Take a hold away
    Remove(HoldRemove),
}

/// `agent hold add`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct HoldAdd {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// Why, for people
    #[arg(long, value_name = "TEXT", default_value = "", value_parser = reason)]
    pub why: String,
}

/// `agent hold list`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct HoldList {
    /// The playbook, a YAML file of any kind: its cluster counts
    pub playbook: PathBuf,
}

/// `agent hold remove`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct HoldRemove {
    /// Which.
    #[command(flatten)]
    pub named: Named,
}

/// One hold of one host.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Named {
    /// The playbook, a YAML file of any kind: its cluster counts
    pub playbook: PathBuf,
    /// The host: its name, that of a member it carries, or its id
    pub host: String,
    /// What the hold is called; each host has a name once. `quorum` is the agents' own, of the owner `baton`
    #[arg(value_parser = word)]
    pub name: String,
    /// Whose it is: only its owner removes it
    #[arg(long, value_name = "WHO", value_parser = word)]
    pub owner: String,
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; expected {}", error.expected()))
}

/// Bytes that a name may have at most.
const LONGEST: usize = 100;

/// Bytes that a reason may have at most: a record has many holds, each agent says it, and none reads a key that is too large.
const LONGEST_REASON: usize = 500;

fn word(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("expected a text".to_owned());
    }
    bounded(text, LONGEST)
}

/// A text for people, that is written into a key.
pub(super) fn reason(text: &str) -> Result<String, String> {
    bounded(text, LONGEST_REASON)
}

fn bounded(text: &str, most: usize) -> Result<String, String> {
    match text.len() <= most && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected at most {most} bytes, without control characters")),
    }
}
