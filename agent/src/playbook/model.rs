//! A playbook as plain data: defaults filled in, paths absolute, combinations possible.
//!
//! Whoever holds a [`Playbook`] need not check it again. Nothing here reads files or knows YAML's syntax;
//! how each value is written out again (`agent validate`) is said by the `Serialize` attributes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use proto::{MemberId, Release};
use semver::VersionReq;
use serde::Serialize;

use super::{
    cluster::Cluster,
    release::{Hop, Hops, Source},
    secret, unit,
    window::Window,
};

/// What one host was told to do, in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "apiVersion", rename = "baton/v1")]
pub struct Playbook {
    #[serde(flatten)]
    pub kind: Kind,
    /// The cluster it is done to.
    pub cluster: Cluster,
    /// Journal, host id and lock; one cluster each.
    pub state_dir: PathBuf,
    /// The members that run on this host; never empty, names distinct.
    pub nodes: Vec<Node>,
    pub strategy: Strategy,
    /// What is compared at the end.
    pub verify: Verify,
    /// What the cluster's gates must be at the end.
    pub gates: Gates,
    /// Programs to run around each step.
    pub hooks: Hooks,
    /// Whether a member's database is saved before anything is changed, and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// How `agent restore` makes the cluster anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,
    /// Who the members are, and where each is reached by the others: what `agent verify membership` compares; empty if that is not
    /// asked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub expect_members: BTreeMap<MemberId, BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind")]
pub enum Kind {
    /// Every member runs the release of the last hop in the end.
    Upgrade(Hops),
    /// The same, to an older release.
    Downgrade(Hops),
    /// Every member was started once for this id: a change of configuration or gates.
    Restart {
        /// Free text, such as a ticket or a date; another id is another run.
        #[serde(rename = "restart", serialize_with = "unit::restart_id")]
        id: String,
    },
    /// Other members: these voters, and no others, at the end.
    Scale {
        /// By name, in order; an odd number.
        members: Vec<String>,
    },
    /// One member for another.
    #[serde(serialize_with = "unit::replace")]
    Replace {
        /// Who goes.
        member: String,
        /// Who comes; the same name where its host lost its disk.
        by: String,
    },
}

impl Kind {
    /// The releases that every member is brought to, one after the other; a restart and a change of members have none.
    pub fn hops(&self) -> Option<&Hops> {
        match self {
            Self::Upgrade(hops) | Self::Downgrade(hops) => Some(hops),
            Self::Restart { .. } | Self::Scale { .. } | Self::Replace { .. } => None,
        }
    }

    /// The hop that is gone now, and the only one of a playbook that an agent carries out; a restart has none of it.
    pub fn hop(&self) -> Option<&Hop> {
        self.hops().map(Hops::last)
    }

    /// Whether members come or go by it.
    pub fn changes_members(&self) -> bool {
        matches!(self, Self::Scale { .. } | Self::Replace { .. })
    }
}

/// Where a member's database is saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backup {
    /// A folder.
    pub dir: PathBuf,
    /// How many of the cluster's backups stay there, the new one counted; all of them where nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
}

/// What `agent restore` is to know that neither the file nor this host says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restore {
    /// The program that makes a data directory; beside the member's executable where nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<PathBuf>,
    /// How many revisions are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bump_revision: Option<usize>,
    /// The new cluster's voters by name, each with its peer URLs; as the file lists them where it is empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, BTreeSet<String>>,
}

/// One member that runs on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The member's name as the cluster knows it.
    pub name: String,
    /// How its process is started and stopped.
    pub runtime: Runtime,
    /// The symlink to the executable that an upgrade switches; always there in an upgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<PathBuf>,
    /// Files that change together with the release.
    pub files: Vec<ConditionalFile>,
    /// How its process is asked to end.
    pub stop: Stop,
    /// Where the others are to reach it, and where its data is: of a member that joins or leaves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peer_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// Whether it may come or go by this playbook: then it is never started on nothing but as a newcomer.
    #[serde(skip)]
    pub may_join: bool,
    /// What `{{initial_cluster}}` stands for, where an agent has started it as a newcomer; no part of the playbook.
    #[serde(skip)]
    pub initial_cluster: String,
}

/// How a member's process is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Runtime {
    /// The agent starts the process itself, and it outlives the agent. Nobody starts it after a reboot.
    Process(Process),
    /// A supervisor of the operator's is asked.
    Command(Command),
    /// The host's systemd is asked, which starts it at boot, too.
    Systemd(Systemd),
}

/// A process that the agent starts itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Program and arguments, never empty; templates not yet expanded.
    pub argv: Vec<String>,
    /// Arguments added for some releases only, after `argv`, in this order.
    pub args: Vec<ConditionalArgs>,
    /// Variables set for it, templates not yet expanded. Their values are not written out.
    #[serde(serialize_with = "secret::names_alone")]
    pub env: BTreeMap<String, String>,
    /// The folder it is started in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The user it runs as; the agent's own where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The file its output is appended to.
    pub log: PathBuf,
}

/// A supervisor's commands: argv lists, never empty, never a shell; templates not yet expanded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    pub start: Vec<String>,
    pub stop: Vec<String>,
    /// Exits 0 when it runs and 3 when it is stopped; prints the pid if it knows it.
    pub status: Vec<String>,
}

/// A service of the host's systemd. Flags and variables are the unit's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Systemd {
    pub unit: String,
}

/// Arguments for some releases only, since every minor of etcd drops flags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionalArgs {
    /// The arguments; templates not yet expanded.
    pub add: Vec<String>,
    /// `for:`, a requirement on the release about to be started; without one they are always added.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none", serialize_with = "unit::optional_text")]
    pub only_for: Option<VersionReq>,
}

/// A file that is put in place together with the release, and put back with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionalFile {
    /// The file that the member reads.
    pub path: PathBuf,
    pub source: PathBuf,
    /// `for:`, a requirement on the release about to be started; without one it is always put.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none", serialize_with = "unit::optional_text")]
    pub only_for: Option<VersionReq>,
}

/// How a member's process is asked to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// How long it has after it was asked.
    #[serde(serialize_with = "unit::duration")]
    pub timeout: Duration,
    /// Whether it is killed after that; the step fails otherwise. With `kind: command` only a process that shows that it is
    /// the member is killed.
    pub kill: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Strategy {
    /// In which order members are taken down.
    pub order: Order,
    /// How long a member must be healthy before the next may go.
    #[serde(serialize_with = "unit::duration")]
    pub soak: Duration,
    /// How long a member may take to become healthy after its start.
    #[serde(serialize_with = "unit::timeout")]
    pub health: Duration,
    /// How long cluster version and gates may take to settle after the last member.
    #[serde(serialize_with = "unit::timeout")]
    pub convergence: Duration,
    /// How long this host waits while nobody makes progress.
    #[serde(serialize_with = "unit::duration")]
    pub stall_timeout: Duration,
    /// How long to wait for others to take part.
    #[serde(serialize_with = "unit::duration")]
    pub join_window: Duration,
    /// What happens before the point of no return.
    pub finalize: Finalize,
    /// What happens to a member that failed.
    pub on_failure: OnFailure,
    /// Whether a healthy member of a cluster of five or more may go while another is not ready.
    pub allow_degraded: bool,
    /// Whether a cluster of one or two voters may be down for a moment.
    pub allow_downtime: bool,
    /// How many newcomers may be learners at once; the cluster's own limit is its `--max-learners`.
    pub max_learners: usize,
    /// Hazards of the catalogue that are passed, by id.
    pub accept_hazards: BTreeSet<String>,
    /// The user's own health check of a member that was restarted: an argv list, templates not yet expanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Vec<String>>,
    /// When this host may begin a step; at any time where nobody says.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "unit::optional_text")]
    pub window: Option<Window>,
    /// Whether the agent reads through the cluster all the while, to say how available it was.
    pub canary: bool,
}

/// The order of the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Members that are not ready, learners, followers, and the leader at the end.
    LeaderLast,
}

/// What happens before the point of no return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finalize {
    /// The run goes on by itself.
    Auto,
    /// The run is held until `agent finalize`.
    Manual,
}

/// What happens to a member that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It is put back, where that is safe.
    Rollback,
    Stop,
}

/// What is compared at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verify {
    /// The largest database, in bytes, whose hash is still asked for: the scan stalls the member.
    #[serde(serialize_with = "unit::size")]
    pub max_db: u64,
}

/// What the cluster's feature gates must be at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Gates {
    pub expect: BTreeMap<String, bool>,
}

/// Programs run around each step: argv lists, never empty, never a shell; templates not yet expanded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Hooks {
    /// Before a member is taken down; one that fails stops the step.
    pub before_node: Vec<Vec<String>>,
    /// After a member is back; one that fails is a warning.
    pub after_node: Vec<Vec<String>>,
}

impl Playbook {
    /// The release that every member runs in the end; a restart has none.
    pub fn target(&self) -> Option<&Release> {
        self.kind.hop().map(|hop| &hop.to)
    }

    /// This host's node of that name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The playbook in its normal form, defaults filled in: YAML that [`Playbook::parse`] reads back as an equal value,
    /// unless something [is left out](Playbook::has_secrets).
    ///
    /// # Errors
    /// When a path is not UTF-8, which the playbook's own folder can bring in.
    pub fn to_yaml(&self) -> Result<String, serde_yaml::Error> {
        serde_yaml::to_string(self)
    }
}

impl Playbook {
    /// Whether the normal form leaves something out: values of `env`, the query of a URL.
    pub fn has_secrets(&self) -> bool {
        let has_env = |node: &Node| matches!(&node.runtime, Runtime::Process(process) if !process.env.is_empty());
        let has_query =
            |hop: &Hop| matches!(&hop.artifact.source, Source::Url { url, .. } if secret::in_text(url) != *url);
        self.nodes.iter().any(has_env) || self.kind.hops().is_some_and(|hops| hops.iter().any(has_query))
    }
}

impl Cluster {
    /// What `cluster.election_timeout` is when the playbook does not say; etcd's own default.
    pub const DEFAULT_ELECTION_TIMEOUT: Duration = Duration::from_secs(1);

    /// Where the state lies when the playbook does not say.
    pub fn default_state_dir(&self) -> PathBuf {
        Path::new("/var/lib/baton").join(&self.name)
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), kill: false }
    }
}

impl Default for Verify {
    fn default() -> Self {
        Self { max_db: 256 << 20 }
    }
}

impl Default for Strategy {
    fn default() -> Self {
        Self {
            order: Order::LeaderLast,
            soak: Duration::from_secs(10),
            health: Duration::from_secs(2 * 60),
            convergence: Duration::from_secs(2 * 60),
            stall_timeout: Duration::from_secs(10 * 60),
            join_window: Duration::from_secs(5),
            finalize: Finalize::Auto,
            on_failure: OnFailure::Rollback,
            allow_degraded: false,
            allow_downtime: false,
            max_learners: 1,
            accept_hazards: BTreeSet::new(),
            probe: None,
            window: None,
            canary: false,
        }
    }
}
