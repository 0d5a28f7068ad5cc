//! The command line, as it is typed. What the words mean is each verb's own affair.

mod guarding;
mod hosting;
mod looking;
mod reporting;
mod restoring;

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use proto::Release;

pub use guarding::Guard;
pub use hosting::{Adopt, Drain, Hold, HoldAdd, HoldList, HoldRemove, Named};
pub use looking::{Accepting, Backup, Check, Gates, Hazards, Membership, Reach, Status, Storage, Verify};
pub use reporting::Report;
pub use restoring::Restore;

use crate::report::stop::reason;
pub use crate::report::{Form, Output};

const EXAMPLES: &str = "\
Examples:
  agent init --endpoints http://10.0.0.1:2379 --to 3.6.14 --artifact /srv/etcd.tgz -o upgrade.yaml
  agent plan upgrade.yaml        # what would be done; touches nothing
  agent run upgrade.yaml         # on every host, in any order; the same command again goes on where it stopped
  agent status upgrade.yaml --watch
  agent report /var/log/baton/*.events -o report.html    # what happened, as a page; from the --events files of all hosts
  agent gates upgrade.yaml ClusterLeaseCheckpoint    # true or false, exit 0 or 1; all of them, with why, without a name
  agent hazards --from 3.5.16 --to 3.6.14    # what is known to hurt on that way
  agent check --to 3.6.14 --endpoints http://10.0.0.1:2379    # whether this cluster meets any of it
  agent rollback upgrade.yaml    # back to the old release, while that is safe
  agent explain strategy         # what a field of the playbook means
";

/// Upgrades a raft cluster one member at a time, from every host at once.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(name = "agent", version, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// How the result is printed on stdout
    #[arg(long, global = true, value_enum, default_value_t = Form::Text)]
    pub output: Form,
    /// What is logged to stderr, as for `tracing`: error, warn, info, debug, agent::observe=debug, …
    #[arg(long, global = true, value_name = "FILTER", default_value = "warn")]
    pub log: String,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Verb {
    /// Bring this host's members to the playbook's target, in turn with all other hosts
    Run(Run),
    /// Show what would be done, and the step after which there is no way back; touches nothing
    Plan(Plan),
    /// Show the cluster: members, versions, leader, the run, who holds the baton, who waits for what
    Status(Status),
    /// Say whether a feature is on for the whole cluster (exit 0: true, 1: false); without a name show all, who wants what,
    /// and why each is off
    Gates(Gates),
    /// Compare the cluster with what the playbook expects of it, before a member starts; touches nothing
    #[command(subcommand)]
    Verify(Verify),
    /// Save the database of the member that has most, in a file that etcdutl snapshot restore takes; touches no member
    Backup(Backup),
    /// Make this host's members anew, of a new cluster, from what agent backup has saved; on every host. The old data is put aside
    Restore(Restore),
    /// Read the playbook and print it with all defaults and without secrets, or say what is wrong with it
    Validate(One),
    /// Let a held run take its last member, after which there is no way back
    Finalize(Rollout),
    /// Bring this host's members back to their old release, in turn with all other hosts
    Rollback(Rollout),
    /// Let no step of the run that stands begin until agent resume; one in hand comes to its end
    Pause(Pause),
    /// Lift the pause of a run, and the mark of a failed step, by hand, and go on
    Resume(Rollout),
    /// Run a command that takes this host's members down, such as reboot, when the cluster can do without them; in turn with all
    /// other hosts
    Guard(Guard),
    /// Hold this host for the members that it carries: it is not to be taken away while the cluster counts on them
    Adopt(Adopt),
    /// Mark a host that is to go, and wait until nothing keeps it any more; for whoever takes machines away
    Drain(Drain),
    /// Keep a host, and its member in the cluster, for a reason of your own
    #[command(subcommand)]
    Hold(Hold),
    /// Give up the step of a member whose host does not come back
    Abandon(Abandon),
    /// Show every key that the agents share, and what it is; with --clear delete those that are nobody's
    Keys(Keys),
    /// Run every path, size and fault of a matrix on real members of this machine; agent-matrix does it
    Matrix(Matrix),
    /// Write a playbook for the members that run on this host, from what the cluster and they say
    Init(Box<Init>),
    /// Make one HTML page of what runs have written with --events, on one host or on several
    Report(Report),
    /// List what is known to hurt on the way from one release of etcd to another, and what to do about it
    Hazards(Hazards),
    /// Say whether a live cluster may go to a release, by what is known to hurt and what the members' databases show (exit 3: no);
    /// touches nothing, and needs no playbook
    Check(Check),
    /// Say what a field of the playbook means, and how it is written
    Explain(Explain),
    /// Print the playbook's JSON Schema, for editors that complete and check
    Schema,
    /// Print what makes a shell complete this command line
    Completions(Completions),
    /// Print the manual page; to read it: agent man | man -l -
    Man,
}

/// A playbook.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct One {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
}

/// What every verb takes that may take members down.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Rollout {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
    /// Append what happens to this file, one JSON object a line. It is made for the agent's user alone; no other user may
    /// have a say in which file it is. /dev/stderr, /dev/fd/N and a pipe with a reader will do, too
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Keep what the run sees in this file, for node_exporter's textfile collector: FILE ends in .prom there
    #[arg(long, value_name = "FILE")]
    pub metrics_file: Option<PathBuf>,
    /// Write what happened to this file at the end, as one HTML page that stands alone. A report that is there is written over
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// So many hosts take part: do not wait for more than these
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = hosts)]
    pub expect_agents: Option<usize>,
    /// Exit 5 unless the whole cluster is done
    #[arg(long)]
    pub require_complete: bool,
    /// What is passed.
    #[command(flatten)]
    pub accepting: Accepting,
    /// Do not ask after the plan. Only at a terminal is asked, and never with --output json
    #[arg(long, short)]
    pub yes: bool,
}

/// `agent run`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Run {
    /// What it shares with the others.
    #[command(flatten)]
    pub rollout: Rollout,
    /// Put this playbook's run in the place of one that stands with another intent
    #[arg(long)]
    pub replace: bool,
}

/// `agent plan`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Plan {
    /// What it shares with others.
    #[command(flatten)]
    pub one: One,
    /// Show what agent run --replace would do
    #[arg(long)]
    pub replace: bool,
    /// What is passed.
    #[command(flatten)]
    pub accepting: Accepting,
}

/// `agent abandon`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Abandon {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
    /// The member: its name, or its id as etcdctl prints it
    pub member: String,
    /// Its host is switched off or cut off for good: let the others go on without it
    #[arg(long)]
    pub host_is_fenced: bool,
    /// Do not ask, and go on though the agent of that host is at work
    #[arg(long, short)]
    pub yes: bool,
}

/// `agent pause`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Pause {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
    /// Why, for whoever finds the run paused
    #[arg(long, value_name = "TEXT", value_parser = hosting::reason)]
    pub why: Option<String>,
}

/// `agent keys`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Keys {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
    /// Delete what is stale: agents and batons without a lease. Nothing else is ever deleted
    #[arg(long)]
    pub clear: bool,
    /// Do not ask before that. Only at a terminal is asked, and never with --output json
    #[arg(long, short, requires = "clear")]
    pub yes: bool,
}

/// `agent matrix`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(disable_help_flag = true)]
pub struct Matrix {
    /// What agent-matrix takes: agent matrix --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// `agent init`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Init {
    /// Client URLs of the cluster, with commas between them
    #[arg(long, value_name = "URL,…", value_delimiter = ',', required_unless_present = "print_role")]
    pub endpoints: Vec<String>,
    /// Print the etcdctl commands that make the users and roles that Baton needs, and write no playbook
    #[arg(long, conflicts_with_all = ["to", "hops", "kind", "id", "artifact", "voters", "replace", "by", "members", "name", "state_dir", "file", "force"])]
    pub print_role: bool,
    /// The release that every member shall run in the end
    #[arg(long, value_name = "RELEASE")]
    pub to: Option<Release>,
    /// Releases on the way to it, one of each minor in between; the artifact has `{{version}}` in its path
    #[arg(long, value_name = "RELEASE,…", value_delimiter = ',', requires = "to", conflicts_with = "sha256")]
    pub hops: Vec<Release>,
    /// What is to be done; without it what --to asks for
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// With --kind restart: what names it, such as a ticket; without it the date
    #[arg(long, value_name = "TEXT")]
    pub id: Option<String>,
    /// With --kind scale: the names of all voters at the end; without it those that vote now
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub voters: Vec<String>,
    /// With --kind replace: the member that goes
    #[arg(long, value_name = "NAME", requires = "by")]
    pub replace: Option<String>,
    /// With --kind replace: who comes; the same name where its host has lost its disk
    #[arg(long, value_name = "NAME", requires = "replace")]
    pub by: Option<String>,
    /// Where the release comes from: a path, or a URL
    #[arg(long, value_name = "SOURCE")]
    pub artifact: Option<String>,
    /// Its digest, which a URL needs
    #[arg(long, value_name = "DIGEST", requires = "artifact")]
    pub sha256: Option<String>,
    /// A member that must be in it; without any all that run on this host are
    #[arg(long = "member", value_name = "NAME")]
    pub members: Vec<String>,
    /// What the cluster is called; without it what its members' names begin with
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Journal, host id and lock of this host, where they shall not lie in /var/lib/baton
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// How the endpoints are spoken to.
    #[command(flatten)]
    pub reach: Reach,
    /// The file to write; stdout without it, or with -
    #[arg(short = 'o', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
}

/// `kind`, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Every member to a newer release
    Upgrade,
    /// Every member to an older one
    Downgrade,
    /// Every member started once more
    Restart,
    /// Other voters than there are: more, or fewer
    Scale,
    /// One member for another
    Replace,
}

/// `agent explain`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Explain {
    /// The field, such as strategy.order, or a group of them; all of them without it
    pub field: Option<String>,
}

/// `agent completions`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// A shell that completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Verb {
    /// As it is typed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Plan(_) => "plan",
            Self::Status(_) => "status",
            Self::Gates(_) => "gates",
            Self::Verify(Verify::Membership(_)) => "verify membership",
            Self::Verify(Verify::Storage(_)) => "verify storage",
            Self::Validate(_) => "validate",
            Self::Finalize(_) => "finalize",
            Self::Rollback(_) => "rollback",
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
            Self::Guard(_) => "guard",
            Self::Adopt(_) => "adopt",
            Self::Drain(_) => "drain",
            Self::Hold(Hold::Add(_)) => "hold add",
            Self::Hold(Hold::List(_)) => "hold list",
            Self::Hold(Hold::Remove(_)) => "hold remove",
            Self::Abandon(_) => "abandon",
            Self::Keys(_) => "keys",
            Self::Matrix(_) => "matrix",
            Self::Init(_) => "init",
            Self::Report(_) => "report",
            Self::Hazards(_) => "hazards",
            Self::Check(_) => "check",
            Self::Backup(_) => "backup",
            Self::Restore(_) => "restore",
            Self::Explain(_) => "explain",
            Self::Schema => "schema",
            Self::Completions(_) => "completions",
            Self::Man => "man",
        }
    }

    /// The playbook's path, as it was typed.
    pub fn playbook(&self) -> Option<&PathBuf> {
        match self {
            Self::Run(Run { rollout, .. })
            | Self::Finalize(rollout)
            | Self::Rollback(rollout)
            | Self::Resume(rollout) => Some(&rollout.playbook),
            Self::Plan(Plan { one, .. }) | Self::Validate(one) => Some(&one.playbook),
            Self::Status(status) => status.playbook.as_ref(),
            Self::Gates(gates) => gates.playbook.as_ref(),
            Self::Verify(
                Verify::Membership(Membership { playbook, .. }) | Verify::Storage(Storage { playbook, .. }),
            ) => Some(playbook),
            Self::Abandon(abandon) => Some(&abandon.playbook),
            Self::Pause(pause) => Some(&pause.playbook),
            Self::Backup(backup) => Some(&backup.playbook),
            Self::Restore(restore) => Some(&restore.playbook),
            Self::Adopt(adopt) => Some(&adopt.playbook),
            Self::Drain(drain) => Some(&drain.playbook),
            Self::Hold(Hold::List(list)) => Some(&list.playbook),
            Self::Hold(Hold::Add(HoldAdd { named, .. }) | Hold::Remove(HoldRemove { named })) => Some(&named.playbook),
            Self::Guard(guard) => Some(&guard.playbook),
            Self::Keys(keys) => Some(&keys.playbook),
            Self::Matrix(_)
            | Self::Init(_)
            | Self::Report(_)
            | Self::Hazards(_)
            | Self::Check(_)
            | Self::Explain(_)
            | Self::Schema
            | Self::Completions(_)
            | Self::Man => None,
        }
    }
}

fn hosts(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..) => Ok(count),
        _ => Err("expected a number of hosts, this one counted: 1 or more".to_owned()),
    }
}

/// Reads the command line.
///
/// # Errors
/// clap's own: help and version among them, which are no mistakes.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut cli = Cli::from_arg_matches(&command().try_get_matches_from(arguments)?)?;
    if let Verb::Gates(gates) = &mut cli.verb {
        gates.settle()?;
    }
    Ok(cli)
}

/// The definition alone.
pub fn definition() -> clap::Command {
    Cli::command()
}

/// The definition, with the table of exit codes and reasons where it is looked for.
pub fn command() -> clap::Command {
    let ends = |command: clap::Command| command.after_long_help(reason::table());
    let whole = definition().after_help(EXAMPLES).after_long_help(format!("{EXAMPLES}\n{}", reason::table()));
    ["run", "finalize", "rollback", "resume", "guard", "abandon", "drain"]
        .iter()
        .fold(whole, |all, verb| all.mut_subcommand(verb, ends))
}

#[cfg(test)]
#[path = "cli_test.rs"]
mod tests;
