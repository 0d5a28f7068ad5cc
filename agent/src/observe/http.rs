//! What a member says over plain HTTP: `/version` and, where it has gates or its progress is in doubt, `/metrics`.
//!
//! HTTP answers carry no member id. They are asked for at an address where that member has just proved itself, or where
//! the playbook says that it serves HTTP; and `/version` must name the release that the member itself named.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use proto::{ClusterVersion, MemberId, Release};
use serde::Deserialize;

use super::{
    access::{Access, CALL},
    error::ObserveError,
    line::CONNECT,
    metrics,
    view::GateReport,
};

/// How many bytes of a page are read; etcd's `/version` has some fifty, its `/metrics` some hundred thousand.
const MAX_PAGE: usize = 4 * 1024 * 1024;

/// The HTTP side of a cluster's members.
#[derive(Debug)]
pub(super) struct Http {
    access: Arc<Access>,
    /// The client, and with which state of the TLS files it was made.
    client: Mutex<(reqwest::Client, u64)>,
    by_name: BTreeMap<String, String>,
}

/// Why a page was not read that was there.
#[derive(Debug, thiserror::Error)]
#[error("its {url} does not end within {MAX_PAGE} bytes, and was not read further")]
pub(super) struct TooLong {
    url: String,
}

/// The answer to `GET /version`.
#[derive(Debug, Deserialize)]
struct Versions {
    etcdserver: String,
    etcdcluster: String,
}

impl Http {
    /// A client on the same TLS files; `by_name` are the members that serve HTTP elsewhere.
    pub(super) fn new(access: Arc<Access>, by_name: BTreeMap<String, String>) -> Result<Self, ObserveError> {
        // Whoever came first has installed the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = client(&access).map_err(|error| ObserveError::Tls(error.into()))?;
        Ok(Self { access, client: Mutex::new(made), by_name })
    }

    /// The cluster version this member holds; `None` while it is undecided, and where it cannot be had from the member
    /// itself.
    pub(super) async fn cluster_version(
        &self,
        name: &str,
        address: &str,
        release: &str,
    ) -> Result<Option<ClusterVersion>, TooLong> {
        let text = self.get(name, address, "version").await?;
        let versions = text.and_then(|text| serde_json::from_str::<Versions>(&text).ok());
        // Else it is somebody else's answer, or the member was restarted this very moment.
        let own = versions.filter(|versions| versions.etcdserver == release);
        Ok(own.and_then(|versions| versions.etcdcluster.parse().ok()))
    }

    /// The release that whoever answers at this address says it runs.
    pub(super) async fn release(&self, address: &str) -> Option<Release> {
        let text = self.get("", address, "version").await.ok()??;
        serde_json::from_str::<Versions>(&text).ok()?.etcdserver.parse().ok()
    }

    /// How many bytes this member has received from its peers.
    pub(super) async fn received_bytes(&self, name: &str, address: &str) -> Option<u64> {
        metrics::received_bytes(&self.get(name, address, "metrics").await.ok()??)
    }

    /// What this member shows of the cluster's gates; `None` where that cannot be had from the member itself.
    pub(super) async fn gates(
        &self,
        name: &str,
        address: &str,
        member: MemberId,
    ) -> Result<Option<GateReport>, TooLong> {
        let page = self.get(name, address, "metrics").await?;
        Ok(page.and_then(|page| metrics::gates(&page, member)))
    }

    async fn get(&self, name: &str, address: &str, page: &str) -> Result<Option<String>, TooLong> {
        let base = self.by_name.get(name).map_or(address, |base| base.trim_end_matches('/'));
        let url = format!("{base}/{page}");
        match read(self.client().get(&url)).await {
            Ok(Some(text)) => Ok(Some(text)),
            Ok(None) => Err(TooLong { url }),
            Err(error) => {
                tracing::debug!(member = name, page, %error, "no answer over HTTP");
                Ok(None)
            }
        }
    }

    /// One that connects with the TLS files as they are now.
    fn client(&self) -> reqwest::Client {
        // Nothing panics with the lock held, so what a poisoned lock guards is whole.
        let mut made = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if made.1 != self.access.generation() {
            match client(&self.access) {
                Ok(newer) => *made = newer,
                Err(error) => tracing::warn!(%error, "HTTP goes on with the TLS files as they were"),
            }
        }
        made.0.clone()
    }
}

/// The page; `None` where it does not end.
async fn read(request: reqwest::RequestBuilder) -> reqwest::Result<Option<String>> {
    let mut answer = request.send().await?.error_for_status()?;
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if bytes.len() + chunk.len() > MAX_PAGE {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn client(access: &Access) -> reqwest::Result<(reqwest::Client, u64)> {
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .timeout(CALL)
        .http1_only()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    let (Some(tls), generation) = access.tls() else {
        return Ok((builder.tls_certs_only([]).build()?, 0));
    };
    let builder = builder.tls_certs_only(tls.authorities()?);
    let client = match tls.identity() {
        Some(identity) => builder.identity(identity?).build()?,
        None => builder.build()?,
    };
    Ok((client, generation))
}
