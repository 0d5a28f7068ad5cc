//! Downloads: an http(s) URL into a file of known SHA-256, over broken connections and restarts of the agent.
//!
//! What has arrived lies in `<sha256>.part`; a break is followed by a request for the rest (RFC 9110, section 14).
//! Only a file whose checksum was verified loses the `.part`. What lies behind the URL may change between two tries:
//! the checksum notices, and the download begins once more. A try counts as failed unless it brings a certain amount:
//! a server that keeps a connection alive with a few bytes would else hold the agent up for ever.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use reqwest::{
    Client, Response, StatusCode, Url,
    header::{CONTENT_RANGE, RANGE},
};
use rustix::fs::OFlags;

use super::digest::{DigestError, Sha256};
use crate::host::{
    blocking::blocking,
    files::durable::{self, At, FileError},
};

/// The largest download, in bytes.
pub const MAX_BYTES: u64 = 2 << 30;
/// How often in a row a try may fail.
const TRIES: u32 = 5;
/// How long a server may be silent, when connecting and in between.
const SILENCE: Duration = Duration::from_secs(30);
/// What a download must bring at least.
pub const PACE: Pace = Pace { bytes: 64 << 10, within: Duration::from_secs(60) };
/// The first pause between two tries; each next one is twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// Why there is no download.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// What has arrived could not be read.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// The client could not be made.
    #[error("cannot set up HTTP")]
    Client(#[source] reqwest::Error),
    /// The server could not be reached, or broke off, again and again.
    #[error("cannot download {url}, tried {TRIES} times without progress")]
    Broken {
        /// The address, as [`shown`] has it.
        url: String,
        source: reqwest::Error,
    },
    /// The server sends next to nothing, again and again.
    #[error("cannot download {url}, tried {TRIES} times: it sends fewer than {} bytes in {:?}", pace.bytes, pace.within)]
    Slow {
        /// The address, as [`shown`] has it.
        url: String,
        /// What it should have sent.
        pace: Pace,
    },
    #[error("{url} answers {status}")]
    Status {
        /// The address, as [`shown`] has it.
        url: String,
        status: StatusCode,
    },
    /// It is larger than any artifact.
    #[error("{url} is larger than {MAX_BYTES} bytes")]
    TooLarge {
        /// The address, as [`shown`] has it.
        url: String,
    },
    /// It is not what the playbook says.
    #[error("{url} has the SHA-256 {found}, expected {expected}")]
    Other {
        /// The address, as [`shown`] has it.
        url: String,
        found: Sha256,
        expected: Sha256,
    },
}

/// So many bytes in so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// As many bytes make a try a good one, however it ends.
    pub bytes: u64,
    /// A try that brings fewer in this time is broken off.
    pub within: Duration,
}

/// Told how many bytes have arrived, and of how many if that is known.
pub type Progress<'a> = &'a (dyn Fn(u64, Option<u64>) + Sync);

/// Downloads into `folder` and returns the file; one that is there and whole is not downloaded again.
pub async fn download(
    url: &Url,
    sha256: Sha256,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<PathBuf, DownloadError> {
    download_at(PACE, url, sha256, folder, progress).await
}

/// As [`download`], at another pace than [`PACE`].
pub async fn download_at(
    pace: Pace,
    url: &Url,
    sha256: Sha256,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<PathBuf, DownloadError> {
    durable::create_folder(folder, 0o700)?;
    let done = folder.join(sha256.to_string());
    if done.is_file() && checksum(&done).await? == sha256 {
        return Ok(done);
    }
    let part = folder.join(format!("{sha256}.part"));
    let resumed = length(&part) > 0;
    let download = Download { url, client: client()?, part: &part, pace, progress };
    let mut found = download.complete().await?;
    if found != sha256 && resumed {
        // It may be the beginning of one file and the end of another.
        durable::remove_if_there(&part)?;
        found = download.complete().await?;
    }
    if found != sha256 {
        durable::remove_if_there(&part)?;
        return Err(DownloadError::Other { url: shown(url), found, expected: sha256 });
    }
    fs::rename(&part, &done).at("rename", &part)?;
    durable::sync_folder(folder)?;
    Ok(done)
}

fn client() -> Result<Client, DownloadError> {
    // Fails when there is one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().connect_timeout(SILENCE).read_timeout(SILENCE);
    client.user_agent("baton").build().map_err(DownloadError::Client)
}

async fn checksum(path: &Path) -> Result<Sha256, DigestError> {
    let path = path.to_owned();
    blocking(move || Sha256::of_file(&path)).await
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

struct Download<'a> {
    url: &'a Url,
    client: Client,
    part: &'a Path,
    pace: Pace,
    progress: Progress<'a>,
}

enum Try {
    Whole,
    Broken(reqwest::Error),
    Slow,
}

impl Download<'_> {
    /// Tries until the file is whole, and returns its checksum.
    async fn complete(&self) -> Result<Sha256, DownloadError> {
        let (mut failures, mut before) = (0, length(self.part));
        loop {
            let url = || shown(self.url);
            let failure = match self.try_once().await? {
                Try::Whole => return Ok(checksum(self.part).await?),
                Try::Broken(source) => DownloadError::Broken { url: url(), source },
                Try::Slow => DownloadError::Slow { url: url(), pace: self.pace },
            };
            let got = length(self.part);
            failures = if got >= before + self.pace.bytes { 1 } else { failures + 1 };
            before = got;
            if failures >= TRIES {
                return Err(failure);
            }
            tokio::time::sleep(PAUSE * (1 << (failures - 1))).await;
        }
    }

    /// Asks for what is missing and appends it.
    async fn try_once(&self) -> Result<Try, DownloadError> {
        let have = length(self.part);
        let mut request = self.client.get(self.url.clone());
        if have > 0 {
            request = request.header(RANGE, format!("bytes={have}-"));
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Ok(Try::Broken(error.without_url())),
        };
        match response.status() {
            StatusCode::PARTIAL_CONTENT if range_start(&response) == Some(have) => self.receive(response, have).await,
            StatusCode::OK => self.receive(response, 0).await,
            // Nothing is missing, or the file behind the URL is shorter now: the checksum will tell.
            StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => Ok(Try::Whole),
            status if is_passing(status) => match response.error_for_status() {
                Err(error) => Ok(Try::Broken(error.without_url())),
                Ok(_) => Err(DownloadError::Status { url: shown(self.url), status }),
            },
            status => Err(DownloadError::Status { url: shown(self.url), status }),
        }
    }

    /// Writes the answer's body from this offset on.
    async fn receive(&self, mut response: Response, from: u64) -> Result<Try, DownloadError> {
        let total = response.content_length().map(|rest| from + rest);
        if total.is_some_and(|total| total > MAX_BYTES) {
            return Err(DownloadError::TooLarge { url: shown(self.url) });
        }
        let mut file = durable::open(self.part, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE, 0o600)?;
        file.set_len(from).at("cut", self.part)?;
        let (mut have, mut lap) = (from, (Instant::now(), from));
        let end = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    have += chunk.len() as u64;
                    if have > MAX_BYTES {
                        return Err(DownloadError::TooLarge { url: shown(self.url) });
                    }
                    file.write_all(&chunk).at("write", self.part)?;
                    (self.progress)(have, total);
                }
                Ok(None) => break Try::Whole,
                // A body that ends before its announced length is an error too.
                Err(error) => break Try::Broken(error.without_url()),
            }
            if lap.0.elapsed() >= self.pace.within {
                if have < lap.1 + self.pace.bytes {
                    break Try::Slow;
                }
                lap = (Instant::now(), have);
            }
        };
        file.sync_all().at("fsync", self.part)?;
        Ok(end)
    }
}

/// An address as it may be shown and kept: what gives access to it, a query or a user, is left out.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // They fail where there is no host, and so nobody to log in as.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// Whether the same request may well succeed in a moment.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

/// `Content-Range: bytes 100-199/200`: where the answer begins.
fn range_start(response: &Response) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}

/// Removes all downloads, whole and begun: once every node of this host has its release.
pub fn clear(folder: &Path) -> Result<(), FileError> {
    durable::remove_tree(folder)
}
