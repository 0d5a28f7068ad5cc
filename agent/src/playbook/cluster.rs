//! How to reach a cluster: the playbook's `cluster` part, checked and with every default filled in.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The cluster to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// What the operator calls it.
    pub name: String,
    /// Where to ask first, as URLs; the members' own addresses are learned from there.
    pub endpoints: Vec<String>,
    /// The members' election time-out: the cluster cannot be asked for it.
    pub election_timeout: Duration,
    /// How to speak TLS; plain text without it.
    pub tls: Option<Tls>,
    /// Who to be; nobody without it.
    pub auth: Option<Auth>,
    /// Where a member, by name, serves `/version` and `/metrics`, when that is not on its client URL.
    pub http: BTreeMap<String, String>,
    /// The prefix of the keys that the hosts share; ends with `/`.
    pub prefix: String,
}

/// The files of a TLS client, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The authorities that a server's certificate must come from.
    pub ca: PathBuf,
    /// Our own certificate, where the cluster wants one.
    pub cert: Option<PathBuf>,
    /// The key that belongs to it.
    pub key: Option<PathBuf>,
}

/// A user of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Its name.
    pub user: String,
    /// A file whose first line is its password.
    pub password_file: PathBuf,
}
