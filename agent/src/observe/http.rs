//! What a member says over plain HTTP: `/version` and, where it has gates or its progress is in doubt, `/metrics`.
//!
//! HTTP answers carry no member id. They are asked for at an address where that member has just proved itself, or where
//! the playbook says that it serves HTTP; and `/version` must name the release that the member itself named.

use std::collections::BTreeMap;

use proto::{ClusterVersion, MemberId, Release};
use serde::Deserialize;

use super::{
    access::{Access, CALL, CONNECT},
    error::ObserveError,
    metrics,
    view::GateReport,
};

/// The HTTP side of a cluster's members.
#[derive(Clone, Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    by_name: BTreeMap<String, String>,
}

/// The answer to `GET /version`.
#[derive(Debug, Deserialize)]
struct Versions {
    etcdserver: String,
    etcdcluster: String,
}

impl Http {
    /// A client on the same TLS files; `by_name` are the members that serve HTTP elsewhere.
    pub(super) fn new(access: &Access, by_name: BTreeMap<String, String>) -> Result<Self, ObserveError> {
        // Whoever came first has installed the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = client(access).map_err(|error| ObserveError::Tls(error.into()))?;
        Ok(Self { client, by_name })
    }

    /// The cluster version this member holds; `None` while it is undecided, and where it cannot be had from the member
    /// itself.
    pub(super) async fn cluster_version(&self, name: &str, address: &str, release: &str) -> Option<ClusterVersion> {
        let text = self.get(name, address, "version").await?;
        let versions: Versions = serde_json::from_str(&text).ok()?;
        // Somebody else's answer, or the member was restarted this very moment.
        if versions.etcdserver != release {
            return None;
        }
        versions.etcdcluster.parse().ok()
    }

    /// The release that whoever answers at this address says it runs.
    pub(super) async fn release(&self, address: &str) -> Option<Release> {
        let text = self.get("", address, "version").await?;
        serde_json::from_str::<Versions>(&text).ok()?.etcdserver.parse().ok()
    }

    /// How many bytes this member has received from its peers.
    pub(super) async fn received_bytes(&self, name: &str, address: &str) -> Option<u64> {
        metrics::received_bytes(&self.get(name, address, "metrics").await?)
    }

    /// What this member shows of the cluster's gates; `None` where that cannot be had from the member itself.
    pub(super) async fn gates(&self, name: &str, address: &str, member: MemberId) -> Option<GateReport> {
        metrics::gates(&self.get(name, address, "metrics").await?, member)
    }

    async fn get(&self, name: &str, address: &str, page: &str) -> Option<String> {
        let base = self.by_name.get(name).map_or(address, |base| base.trim_end_matches('/'));
        let answer = self.client.get(format!("{base}/{page}")).send().await.and_then(|it| it.error_for_status());
        match answer {
            Ok(answer) => answer.text().await.ok(),
            Err(error) => {
                tracing::debug!(member = name, page, %error, "no answer over HTTP");
                None
            }
        }
    }
}

fn client(access: &Access) -> reqwest::Result<reqwest::Client> {
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .timeout(CALL)
        .http1_only()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    let Some(tls) = access.tls() else {
        return builder.tls_certs_only([]).build();
    };
    let builder = builder.tls_certs_only(tls.authorities()?);
    match tls.identity() {
        Some(identity) => builder.identity(identity?).build(),
        None => builder.build(),
    }
}
