//! How the cluster is reached: the `cluster` part of a playbook, as data.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::Serialize;

use super::unit;

/// The cluster that a playbook is about, and what is needed to speak to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// The name a person gives it; also the default folder of the state.
    pub name: String,
    /// Client URLs, `http://host:port` or `https://host:port`, without a slash at the end.
    pub endpoints: Vec<String>,
    /// The cluster's `--election-timeout`: it cannot be asked for it.
    #[serde(serialize_with = "unit::duration")]
    pub election_timeout: Duration,
    /// Certificates; present exactly when the endpoints are `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The user to authenticate as, where the cluster has authentication on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Member name to base URL, where `/version` and `/health` are not served on the client URLs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub http: BTreeMap<String, String>,
}

/// Certificates for `https` endpoints, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tls {
    /// The authority that signed the members' certificates.
    pub ca: PathBuf,
    /// Our own certificate, for a cluster that asks its clients for one; present exactly when `key` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// The key of `cert`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

/// The user that the agent authenticates as. The password is never in the playbook itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Auth {
    pub user: String,
    /// A file that holds the password.
    pub password_file: PathBuf,
}
