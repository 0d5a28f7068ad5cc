//! How a member is set up: etcd's flags, its environment variables and its configuration file.
//!
//! A flag comes before the variable `ETCD_…` of the same name; with `--config-file` neither counts. One table has all
//! settings (`setting.rs`). Pure but for the reading of the file. Source: etcd documentation, "Configuration options".

mod check;
mod duration;
mod etcd_flag;
mod gates;
mod local_address;
mod reader;
mod said;
mod setting;
mod source;
mod tls;
mod url;
mod utf8;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use consensus::ReadMode;

pub use etcd_flag::ETCD_FLAGS;
pub use gates::overruled;
pub use setting::{Role, SETTINGS, Setting};
pub use source::ConfigError;
pub use tls::{Allowed, CLIENT_TLS, FIXTURES, Identity, PEER_TLS, SelfSigned, TlsFlags, TlsSettings, TlsVersions};
pub use url::{Url, UrlError};
pub use utf8::{arguments, variables};

use crate::features::{Features, Overrides, Registry};

/// What `--quota-backend-bytes` is where nobody says otherwise (etcd, `DefaultQuotaBytes`).
pub const DEFAULT_QUOTA_BYTES: u64 = 2 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub name: String,
    /// Where it keeps what it must not forget.
    pub data_dir: PathBuf,
    /// Where it listens for clients.
    pub listen_client_urls: Vec<Url>,
    /// Where it listens for clients by HTTP. Where it does, those before take gRPC alone.
    pub listen_client_http_urls: Vec<Url>,
    /// Where it tells clients to come.
    pub advertise_client_urls: Vec<Url>,
    /// Where it listens for other members.
    pub listen_peer_urls: Vec<Url>,
    /// Where it tells the members of a new cluster to come.
    pub initial_advertise_peer_urls: Vec<Url>,
    /// Why it cannot found or join a cluster with that.
    first_start: Result<(), ConfigError>,
    /// The members of a new cluster, by name, each with its peer URLs.
    pub initial_cluster: BTreeMap<String, Vec<Url>>,
    /// Whether the cluster is new.
    pub initial_cluster_state: InitialState,
    /// What tells one new cluster from another with the same members.
    pub initial_cluster_token: String,
    /// Beside whom this member takes part.
    pub join_policy: JoinPolicy,
    /// Members come and go only where a quorum stays (etcd, `--strict-reconfig-check`).
    pub strict_reconfig_check: bool,
    /// As many learners there may be (etcd, `--max-learners`).
    pub max_learners: usize,
    /// Between two heartbeats of a leader.
    pub heartbeat_interval: Duration,
    /// How long a member goes without a leader before it stands for election.
    pub election_timeout: Duration,
    /// How it knows that it leads, when it does and somebody reads.
    pub linearizable_reads: ReadMode,
    /// For clients.
    pub client_tls: TlsSettings,
    /// For other members.
    pub peer_tls: TlsSettings,
    /// Whether it refuses to listen for members without TLS, where others than this machine can come.
    pub require_peer_tls: bool,
    /// Entries between two snapshots.
    pub snapshot_count: u64,
    /// Entries that stay in the log behind a snapshot, for members that are a little behind.
    pub snapshot_catchup_entries: u64,
    /// How large the state may grow; 0 for the default.
    pub quota_backend_bytes: u64,
    /// How often the leader compares what the members hold; never where it is not there.
    pub corrupt_check_time: Option<Duration>,
    /// A request that takes longer is logged.
    pub warning_unary_request: Duration,
    /// So is what takes longer to be applied, or to be read.
    pub warning_apply: Duration,
    /// What this member wants of the cluster's gate.
    pub cluster_feature_gates: Overrides,
    /// What is said of this server alone.
    pub feature_gates: Overrides,
    /// What is on of a server's own features by that.
    pub server_features: Features,
    /// As many operations a transaction of a client may have.
    pub max_txn_operations: usize,
    /// How large a request of a client may be.
    pub max_request_bytes: usize,
    /// As many calls of a client may be under way on one connection.
    pub max_concurrent_streams: u32,
    pub keepalive: Keepalive,
    pub auto_compaction: AutoCompaction,
    /// How long a watch that asked for progress hears nothing before it is told.
    pub progress_interval: Duration,
    /// Where it listens for those who ask for metrics and health alone.
    pub listen_metrics_urls: Vec<Url>,
    pub log: LogSettings,
    /// What an operator may have meant otherwise.
    pub warnings: Vec<String>,
}

/// How a client that says nothing is found to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// It is pinged when it was silent for so long; never where it is not there.
    pub interval: Option<Duration>,
    /// It is gone when it has not answered for so long.
    pub timeout: Duration,
}

/// What is kept of the history of keys where nobody compacts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoCompaction {
    Off,
    /// What is younger.
    Periodic(Duration),
    /// As many revisions.
    Revisions(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// debug, info, warn, error
    pub level: String,
    /// Else as etcd writes it for people.
    pub is_json: bool,
    pub outputs: Vec<LogOutput>,
}

/// Where lines of the log go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogOutput {
    Stderr,
    Stdout,
    File(PathBuf),
}

impl LogOutput {
    /// As etcd names it.
    fn of(text: &str) -> Self {
        match text {
            "default" | "stderr" | "systemd/journal" => Self::Stderr,
            "stdout" => Self::Stdout,
            path => Self::File(path.into()),
        }
    }
}

/// `--initial-cluster-state`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialState {
    /// The members start it together.
    New,
    Existing,
}

/// `--join-policy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JoinPolicy {
    /// One protocol that both speak, and a release that fits the cluster version.
    #[default]
    Compatible,
    /// The same release, too.
    Strict,
}

impl JoinPolicy {
    /// As the flag has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Strict => "strict",
        }
    }
}

impl Config {
    /// Reads arguments (without the program's name) and environment, for a release that knows these features.
    ///
    /// # Errors
    /// [`ConfigError`]: which setting, from where, what it was and what was expected.
    pub fn read(
        arguments: impl IntoIterator<Item = String>,
        environment: impl IntoIterator<Item = (String, String)>,
        registry: Registry,
    ) -> Result<Self, ConfigError> {
        let given = source::gather(arguments, environment)?;
        let (given, warnings) = etcd_flag::settle(given)?;
        let mut config = reader::build(&given)?;
        check::check(&config, &given, registry)?;
        config.first_start = check::first_start(&config, &given);
        config.warnings.splice(..0, warnings);
        gates::settle(&mut config, registry);
        Ok(config)
    }

    /// Whether a member can start with this that has no data yet.
    ///
    /// # Errors
    /// `--initial-cluster` has it not, or otherwise.
    pub fn check_first_start(&self) -> Result<(), ConfigError> {
        self.first_start.clone()
    }

    /// Reads the flags alone, as etcd does before it prints its version: the configuration file and the environment are not
    /// looked at. Gives what they want of the cluster's features.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn check_flags(
        arguments: impl IntoIterator<Item = String>,
        registry: Registry,
    ) -> Result<Overrides, ConfigError> {
        let (flags, _) = source::of_arguments(arguments)?;
        let (flags, _) = etcd_flag::settle(flags)?;
        let config = reader::build(&flags)?;
        check::gates(&config, &flags, registry)?;
        Ok(config.cluster_feature_gates)
    }
}

#[cfg(test)]
#[path = "config_test.rs"]
mod tests;

#[cfg(test)]
mod wrong_test;
