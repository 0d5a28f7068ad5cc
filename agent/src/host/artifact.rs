//! An artifact becomes a release: `releases/<release>-<first 12 of sha256>/`, complete before its name appears.
//!
//! It is put together under a temporary name, fsynced, and renamed; so a folder with a release's name is whole, and
//! an artifact that is there already is not fetched again. No release is ever deleted here: not the one that
//! `binary` points to, nor the one before it.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};
use proto::Release;
use reqwest::Url;

use super::{
    blocking::blocking,
    digest::{self, DigestError, Sha256},
    download::{self, DownloadError},
    durable::{self, At, FileError},
    executable,
    unpack::{self, UnpackError},
};

/// How the name of a release that is being put together begins.
const UNFINISHED: &str = ".baton-unfinished-";
/// What an artifact with several executables is taken to be of, unless the playbook says more.
const USUAL: &str = "etcd";
/// How a gzip file begins (RFC 1952, section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];
/// How long another agent that unpacks into the same folder of releases is waited for: what it unpacks may be large.
const LOCK_LIMIT: Duration = Duration::from_secs(600);

/// What is to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The release that it is said to be.
    pub release: Release,
    /// Where it comes from.
    pub source: Source,
    /// Its checksum: of the file, or of the folder as [`Sha256::of_folder`] has it.
    pub sha256: Option<Sha256>,
    /// The name of the node's executable in it: a path in the artifact, or a file name that is there once.
    pub executable: Option<String>,
}

/// Where an artifact comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder, one executable, or a `.tar.gz`.
    Path(PathBuf),
    /// A `.tar.gz` or one executable behind http or https; its checksum is required.
    Url(Url),
}

/// A release that is in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its folder.
    pub folder: PathBuf,
    /// The node's executable in it.
    pub executable: PathBuf,
    /// The artifact's checksum.
    pub sha256: Sha256,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// Why an artifact was not installed.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It could not be downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// It could not be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// It has no checksum.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// It is not what the playbook says.
    #[error("{} has the SHA-256 {found}, expected {expected}", path.display())]
    OtherSha256 {
        /// The artifact.
        path: PathBuf,
        /// Its checksum.
        found: Sha256,
        /// That of the playbook.
        expected: Sha256,
    },
    /// A download of unknown content.
    #[error("{} needs `sha256`: what comes from a URL must be known beforehand", download::shown(.0))]
    NeedsSha256(Url),
    /// It is nothing that can be installed; a script is none, since what it would run is not known.
    #[error("{} is {what}: expected a folder, a program or a .tar.gz", path.display())]
    OtherKind {
        /// The artifact.
        path: PathBuf,
        /// `a script (#!/bin/sh)`, `no ELF file`.
        what: String,
    },
    /// Another agent unpacks something there.
    #[error("another agent has been unpacking in {} for more than {LOCK_LIMIT:?}", .0.display())]
    Busy(PathBuf),
    /// There is no executable of that name.
    #[error("{} holds no executable named `{name}`; there are {}", folder.display(), list(found))]
    NoSuchExecutable {
        /// The artifact, unpacked.
        folder: PathBuf,
        /// The name that was asked for.
        name: String,
        /// The executables that there are.
        found: Vec<String>,
    },
    /// There are several, and nothing says which.
    #[error("{} holds {}: name the node's with `executable`", folder.display(), list(found))]
    WhichExecutable {
        /// The artifact, unpacked.
        folder: PathBuf,
        /// The executables that there are.
        found: Vec<String>,
    },
}

/// What takes long in an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Underway {
    /// The download.
    Download {
        /// How many bytes have arrived.
        bytes: u64,
        /// Of how many, if that is known.
        of: Option<u64>,
    },
    /// Another agent unpacks something in this folder.
    Another(PathBuf),
}

/// Told what an installation is about.
pub type Told<'a> = &'a (dyn Fn(Underway) + Sync);

fn list(names: &[String]) -> String {
    if names.is_empty() { "no executable at all".into() } else { format!("`{}`", names.join("`, `")) }
}

/// Installs an artifact into a folder of releases; what is there and whole is left as it is. Downloads are kept in
/// `downloads`, for the other nodes of this host.
pub async fn install(
    artifact: &Artifact,
    releases: &Path,
    downloads: &Path,
    told: Told<'_>,
) -> Result<Installed, ArtifactError> {
    durable::create_folder(releases, 0o755)?;
    let wanted = artifact.clone();
    let sha256 = blocking(move || sha256(&wanted)).await?;
    let folder = folder_of(artifact, releases, sha256);
    let mut is_new = !folder.is_dir();
    if is_new {
        let path = match &artifact.source {
            Source::Path(path) => path.clone(),
            Source::Url(url) => {
                let progress = |bytes, of| told(Underway::Download { bytes, of });
                download::download(url, sha256, downloads, &progress).await?
            }
        };
        let lock = lock(releases, told).await?;
        let (artifact, folder) = (artifact.clone(), folder.clone());
        is_new = blocking(move || put_in_place(lock, &artifact, &path, &folder)).await?;
    }
    let executable = find_executable(&folder, artifact.executable.as_deref())?;
    Ok(Installed { folder, executable, sha256, is_new })
}

/// Looks whether an artifact could be installed, as far as that can be told without writing anything; returns its
/// executable where that can be run already.
pub fn check(artifact: &Artifact, releases: &Path) -> Result<Option<PathBuf>, ArtifactError> {
    let name = artifact.executable.as_deref();
    // To read all of an artifact takes its time, so only where there is something to compare it with.
    let known = artifact.sha256.map(|_| sha256(artifact)).transpose()?;
    let folder = known.map(|sha256| folder_of(artifact, releases, sha256)).filter(|folder| folder.is_dir());
    match (&artifact.source, folder) {
        (_, Some(folder)) => find_executable(&folder, name).map(Some),
        (Source::Url(url), None) if known.is_none() => Err(ArtifactError::NeedsSha256(url.clone())),
        (Source::Url(_), None) => Ok(None),
        (Source::Path(path), None) if path.is_dir() => find_executable(path, name).map(Some),
        (Source::Path(path), None) => match executable::head(path)? {
            head if head.starts_with(executable::ELF) => Ok(executable::check(path).ok().map(|()| path.clone())),
            head if head.starts_with(GZIP) => Ok(None),
            head => Err(ArtifactError::OtherKind { path: path.into(), what: executable::kind(&head) }),
        },
    }
}

/// Where a release lies.
fn folder_of(artifact: &Artifact, releases: &Path, sha256: Sha256) -> PathBuf {
    releases.join(format!("{}-{}", artifact.release, sha256.short()))
}

/// One agent at a time: two clusters' agents may share a folder of releases. Each downloads for itself, into its own
/// state directory, so that nobody waits for the mirror of another.
async fn lock(releases: &Path, told: Told<'_>) -> Result<Flock<File>, ArtifactError> {
    let begun = Instant::now();
    while begun.elapsed() < LOCK_LIMIT {
        let folder = File::open(releases).at("open", releases)?;
        match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((_, Errno::EWOULDBLOCK)) => {
                told(Underway::Another(releases.into()));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err((_, error)) => Err(error).at("lock", releases)?,
        }
    }
    Err(ArtifactError::Busy(releases.into()))
}

fn remove_leftovers(releases: &Path) -> Result<(), FileError> {
    for entry in fs::read_dir(releases).at("read", releases)? {
        let entry = entry.at("read", releases)?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            fs::remove_dir_all(entry.path()).at("remove", &entry.path())?;
        }
    }
    Ok(())
}

/// Of a local artifact it is computed, each time; a download's is known beforehand, or nothing is downloaded.
fn sha256(artifact: &Artifact) -> Result<Sha256, ArtifactError> {
    let path = match (&artifact.source, artifact.sha256) {
        (Source::Url(_), Some(sha256)) => return Ok(sha256),
        (Source::Url(url), None) => return Err(ArtifactError::NeedsSha256(url.clone())),
        (Source::Path(path), _) => path,
    };
    let found = if path.is_dir() { Sha256::of_folder(path)? } else { Sha256::of_file(path)? };
    match artifact.sha256 {
        Some(expected) if expected != found => Err(ArtifactError::OtherSha256 { path: path.into(), found, expected }),
        _ => Ok(found),
    }
}

/// Unless another agent did it meanwhile. The lock is held until it is done, even where nobody waits for that any more.
fn put_in_place(_lock: Flock<File>, artifact: &Artifact, path: &Path, folder: &Path) -> Result<bool, ArtifactError> {
    remove_leftovers(folder.parent().unwrap_or(folder))?;
    let is_new = !folder.is_dir();
    if is_new {
        put_together(artifact, path, folder)?;
    }
    Ok(is_new)
}

/// Under another name until it is whole, and holds the executable that is wanted.
fn put_together(artifact: &Artifact, path: &Path, folder: &Path) -> Result<(), ArtifactError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = folder.with_file_name(format!("{UNFINISHED}{name}"));
    durable::create_folder(&unfinished, 0o755)?;
    let put = unpack_any(artifact, path, &unfinished)
        .and_then(|()| find_executable(&unfinished, artifact.executable.as_deref()))
        .and_then(|_| Ok(fs::rename(&unfinished, folder).at("rename", &unfinished)?));
    if put.is_err() {
        let _ = fs::remove_dir_all(&unfinished);
    }
    put?;
    Ok(durable::sync_folder_of(folder)?)
}

/// By what it is, not by its name: a download has none.
fn unpack_any(artifact: &Artifact, path: &Path, into: &Path) -> Result<(), ArtifactError> {
    if path.is_dir() {
        return Ok(unpack::folder(path, into)?);
    }
    match executable::head(path)? {
        head if head.starts_with(executable::ELF) => Ok(unpack::executable(path, into, &single_name(artifact))?),
        head if head.starts_with(GZIP) => Ok(unpack::archive(path, into)?),
        head => Err(ArtifactError::OtherKind { path: path.into(), what: executable::kind(&head) }),
    }
}

/// The name of an artifact that is one executable.
fn single_name(artifact: &Artifact) -> String {
    let in_source = match &artifact.source {
        Source::Path(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        Source::Url(url) => url.path_segments().and_then(|mut parts| parts.next_back()).map(str::to_owned),
    };
    let in_playbook = artifact.executable.as_deref().and_then(|name| Path::new(name).file_name()?.to_str());
    in_playbook.map(str::to_owned).or(in_source).filter(|name| !name.is_empty()).unwrap_or_else(|| USUAL.into())
}

/// The node's executable: the one that is named; else the only one; else the one that is called as etcd's is.
fn find_executable(folder: &Path, name: Option<&str>) -> Result<PathBuf, ArtifactError> {
    let executables = executables(folder)?;
    let called = |name: &str| {
        let mut found = executables.iter().filter(|path| path.ends_with(name));
        // A whole path is exact; of several files of one name none is.
        let exact = executables.iter().find(|path| path.as_path() == Path::new(name));
        exact.or_else(|| found.next().filter(|_| found.next().is_none()))
    };
    let chosen = match (name, &executables[..]) {
        (Some(name), _) => called(name),
        (None, [only]) => Some(only),
        (None, _) => called(USUAL),
    };
    let found = || executables.iter().map(|path| path.display().to_string()).collect();
    match (chosen, name) {
        (Some(path), _) => Ok(folder.join(path)),
        (None, Some(name)) => {
            Err(ArtifactError::NoSuchExecutable { folder: folder.into(), name: name.into(), found: found() })
        }
        (None, None) => Err(ArtifactError::WhichExecutable { folder: folder.into(), found: found() }),
    }
}

/// The files with execute permission, by their names in the folder.
fn executables(folder: &Path) -> Result<Vec<PathBuf>, ArtifactError> {
    let mut found = Vec::new();
    for (name, path) in digest::files(folder)? {
        if fs::metadata(&path).at("look at", &path)?.permissions().mode() & 0o111 != 0 {
            found.push(name.into());
        }
    }
    Ok(found)
}
