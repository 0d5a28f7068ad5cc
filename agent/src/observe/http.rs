//! What a member says over plain HTTP: `/version` and, where it has gates or its progress is in doubt, `/metrics`.
//!
//! HTTP answers carry no member id. They are asked for at an address where that member has just proved itself, or where
//! the playbook says that it serves HTTP; and `/version` must name the release that the member itself named.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use proto::{ClusterVersion, MemberId, Release};
use reqwest::header::DATE;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::{
    access::{Access, CALL},
    activity::Activity,
    clock::{self, Apart},
    error::ObserveError,
    line::CONNECT,
    metrics,
    view::GateReport,
};

/// How many bytes of a page are read; etcd's `/version` has some fifty, its `/metrics` some hundred thousand.
const MAX_PAGE: usize = 4 * 1024 * 1024;
/// A page up to this length, in bytes, is read whatever others are: so no honest member waits for one that lies.
const SHORT_PAGE: usize = 512 * 1024;
/// How many longer ones are read on at the same time, since a look asks for many. The others wait, until their call is over.
const LONG_AT_ONCE: usize = 4;

/// The HTTP side of a cluster's members.
#[derive(Debug)]
pub(super) struct Http {
    access: Arc<Access>,
    /// The client, and with which state of the TLS files it was made.
    client: Mutex<(reqwest::Client, u64)>,
    by_name: BTreeMap<String, String>,
    /// Which long pages are read on.
    turns: Semaphore,
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
        Ok(Self { access, client: Mutex::new(made), by_name, turns: Semaphore::new(LONG_AT_ONCE) })
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

    /// What does not change while this member runs, and how far its clock is from this host's; `None` where that cannot be had from the
    /// member itself.
    pub(super) async fn own_page(
        &self,
        name: &str,
        address: &str,
        member: MemberId,
    ) -> Option<(metrics::OwnPage, Option<Apart>)> {
        let asked = SystemTime::now();
        let Page { text, date } = self.page(name, address, "metrics").await.ok()??;
        let apart = date.and_then(|date| clock::apart(date, (asked, SystemTime::now())));
        Some((metrics::own_page(&text, member)?, apart))
    }

    /// The revision of this member's users and roles; `None` where that cannot be had from the member itself.
    pub(super) async fn users_revision(&self, name: &str, address: &str, member: MemberId) -> Option<u64> {
        metrics::users_revision(&self.get(name, address, "metrics").await.ok()??, member)
    }

    /// What this member is in the middle of; `None` where that cannot be had from the member itself.
    pub(super) async fn activities(&self, name: &str, address: &str, member: MemberId) -> Option<BTreeSet<Activity>> {
        metrics::activities(&self.get(name, address, "metrics").await.ok()??, member)
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
        Ok(self.page(name, address, page).await?.map(|page| page.text))
    }

    async fn page(&self, name: &str, address: &str, page: &str) -> Result<Option<Page>, TooLong> {
        let base = self.by_name.get(name).map_or(address, |base| base.trim_end_matches('/'));
        let url = format!("{base}/{page}");
        match read(self.client().get(&url), &self.turns).await {
            Ok(Some(page)) => Ok(Some(page)),
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

/// A page, and when its server says that it was made.
struct Page {
    text: String,
    date: Option<SystemTime>,
}

/// The page; `None` where it does not end.
async fn read(request: reqwest::RequestBuilder, turns: &Semaphore) -> reqwest::Result<Option<Page>> {
    let mut answer = request.send().await?.error_for_status()?;
    let date = answer.headers().get(DATE).and_then(|date| clock::date(date.to_str().ok()?));
    let (mut bytes, mut turn) = (Vec::new(), None);
    while let Some(chunk) = answer.chunk().await? {
        if bytes.len() + chunk.len() > MAX_PAGE {
            return Ok(None);
        }
        if bytes.len() + chunk.len() > SHORT_PAGE && turn.is_none() {
            // Who waits for longer than the call may take finds it over then. Nobody closes the semaphore.
            turn = turns.acquire().await.ok();
        }
        bytes.extend_from_slice(&chunk);
    }
    // A copy only of what is no text.
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Some(Page { text, date }))
}

fn client(access: &Access) -> reqwest::Result<(reqwest::Client, u64)> {
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .timeout(CALL)
        .http1_only()
        // A pool keeps connections that were opened and not needed, and etcd does not end before one that has sent nothing.
        .pool_max_idle_per_host(0)
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        task::JoinSet,
    };

    use super::*;

    /// Answers `/long` with more than a short page that never ends, and anything else with `ok`.
    async fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut peer, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut asked = [0; 1024];
                    let length = peer.read(&mut asked).await.unwrap();
                    if asked[..length].starts_with(b"GET /long") {
                        let page = vec![b'x'; 2 * SHORT_PAGE];
                        peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4000000\r\n\r\n").await.unwrap();
                        let _ = peer.write_all(&page).await;
                        std::future::pending::<()>().await;
                    }
                    peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                });
            }
        });
        url
    }

    #[tokio::test]
    async fn few_long_pages_are_read_at_once_and_no_short_one_waits_for_them() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = server().await;
        let client = reqwest::Client::builder().no_proxy().timeout(CALL).build().unwrap();
        let turns = Arc::new(Semaphore::new(LONG_AT_ONCE));
        let mut long = JoinSet::new();
        for _ in 0..3 * LONG_AT_ONCE {
            let (request, turns) = (client.get(format!("{url}/long")), Arc::clone(&turns));
            long.spawn(async move { read(request, &turns).await });
        }
        let begun = std::time::Instant::now();
        while turns.available_permits() > 0 {
            assert!(begun.elapsed() < 6 * CALL, "all are read at once");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let short = read(client.get(format!("{url}/short")), &turns).await;
        let short = short.unwrap().map(|page| page.text);
        assert_eq!((short.as_deref(), turns.available_permits()), (Some("ok"), 0));
        // Their calls end, those that never had a turn as well, and give back what they had.
        while let Some(ended) = long.join_next().await {
            assert!(ended.unwrap().is_err_and(|error| error.is_timeout()));
        }
        assert_eq!(turns.available_permits(), LONG_AT_ONCE);
    }
}
