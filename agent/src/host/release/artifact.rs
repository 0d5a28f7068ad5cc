//! An artifact becomes a release: `releases/<release>-<first 12 of sha256>/`, complete before its name appears.
//!
//! It is put together under a temporary name, fsynced, and renamed; so a folder with a release's name is whole, and
//! an artifact that is there already is not fetched again. The artifact is read once for it: the bytes that are put
//! there are those whose checksum is compared, and written down with them (`release_record.rs`). All this is done in
//! folders that nobody else may write to. No release is ever deleted here: not the one that `binary` points to, nor the
//! one before it.

use std::{
    fs::{self, File},
    io::Seek,
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
use rustix::fs::OFlags;

use super::{
    archive,
    digest::{self, DigestError, Sha256},
    download::{self, DownloadError},
    release_record::{self, RecordError},
    unpack::{self, UnpackError, Unpacked},
};
use crate::{
    host::{
        blocking::blocking,
        files::durable::{self, At, FileError},
        program::{
            executable,
            path_owner::{self, PathOwnerError, Writers},
        },
    },
    words::typed,
};

/// How the name of a release that is being put together begins.
const UNFINISHED: &str = ".baton-unfinished-";
/// What an artifact with several executables is taken to be of, unless the playbook says more.
const USUAL: &str = "etcd";
/// How a gzip file begins (RFC 1952, section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The lock's name among the releases.
const LOCK: &str = ".baton-lock";
/// How long another agent that unpacks into the same folder of releases is waited for: what it unpacks may be large.
const LOCK_LIMIT: Duration = Duration::from_secs(600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The release that it is said to be.
    pub release: Release,
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
    pub folder: PathBuf,
    /// The node's executable in it.
    pub executable: PathBuf,
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
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// Others may write where it is to lie, so what is there is theirs.
    #[error(transparent)]
    Owner(#[from] PathOwnerError),
    /// What is there is not what was installed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Others may change what nothing is known of beforehand, and what is run from it would be theirs.
    #[error("the artifact has no `sha256`, and {source}; or give it a `sha256`, which `sha256sum` prints of a file")]
    Unpinned { source: PathOwnerError },
    /// Something else has the release's name.
    #[error(
        "{} is there already and holds something else than the artifact; if no member runs from it, type: rm -r {}",
        .0.display(), typed(&.0.to_string_lossy())
    )]
    Taken(PathBuf),
    /// It is not what the playbook says, or what it was a moment before.
    #[error("{} has the SHA-256 {found}, expected {expected}", path.display())]
    OtherSha256 {
        path: PathBuf,
        found: Sha256,
        /// That of the playbook; without one, that of the artifact when it was read before.
        expected: Sha256,
    },
    /// A download of unknown content.
    #[error("{} needs `sha256`: what comes from a URL must be known beforehand", download::shown(.0))]
    NeedsSha256(Url),
    /// It is nothing that can be installed; a script is none, since what it would run is not known.
    #[error("{} is {what}: expected a folder, a program or a .tar.gz", path.display())]
    OtherKind {
        path: PathBuf,
        /// `a script (#!/bin/sh)`, `no ELF file`.
        what: String,
    },
    /// Another agent unpacks something there.
    #[error("another agent has been unpacking in {} for more than {LOCK_LIMIT:?}", .0.display())]
    Busy(PathBuf),
    /// There is no executable of that name.
    #[error("{} holds no executable named `{name}`; {}", folder.display(), list(found))]
    NoSuchExecutable {
        folder: PathBuf,
        /// The name that was asked for.
        name: String,
        /// The executables that there are.
        found: Vec<String>,
    },
    /// There are several, and nothing says which.
    #[error("{} holds {}: name the node's with `executable`", folder.display(), list(found))]
    WhichExecutable {
        folder: PathBuf,
        /// The executables that there are.
        found: Vec<String>,
    },
}

/// What takes long in an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Underway {
    Download {
        /// How many bytes have arrived.
        bytes: u64,
        /// Of how many, if that is known.
        of: Option<u64>,
    },
    /// Another agent unpacks something in this folder.
    Another(PathBuf),
}

/// Called with what an installation is about.
pub type Notify<'a> = &'a (dyn Fn(Underway) + Sync);

fn list(names: &[String]) -> String {
    if names.is_empty() { "it holds none at all".into() } else { format!("it holds `{}`", names.join("`, `")) }
}

/// Installs an artifact into a folder of releases; what is there and whole is left as it is. Downloads are kept in
/// `downloads`, for the other nodes of this host.
pub async fn install(
    artifact: &Artifact,
    releases: &Path,
    downloads: &Path,
    notify: Notify<'_>,
) -> Result<Installed, ArtifactError> {
    durable::create_folder(releases, 0o755)?;
    path_owner::check(releases, &Writers::own())?;
    let (wanted, place) = (artifact.clone(), releases.to_owned());
    let looked = blocking(move || {
        check_source(&wanted)?;
        let sha256 = sha256(&wanted)?;
        let folder = folder_of(&wanted, &place, sha256);
        Ok::<_, ArtifactError>((sha256, is_there(&folder, sha256)?, folder))
    });
    let (sha256, is_there, folder) = looked.await?;
    let mut is_new = !is_there;
    if is_new {
        let path = match &artifact.source {
            Source::Path(path) => path.clone(),
            Source::Url(url) => {
                let progress = |bytes, of| notify(Underway::Download { bytes, of });
                download::download(url, sha256, downloads, &progress).await?
            }
        };
        let lock = lock(releases, notify).await?;
        let (artifact, folder) = (artifact.clone(), folder.clone());
        is_new = blocking(move || put_in_place(lock, &artifact, &path, sha256, &folder)).await?;
    }
    let executable = find_executable(&folder, artifact.executable.as_deref())?;
    Ok(Installed { folder, executable, sha256, is_new })
}

/// Looks whether an artifact could be installed, as far as that can be told without writing anything; returns its
/// executable where that can be run already.
pub fn check(artifact: &Artifact, releases: &Path) -> Result<Option<PathBuf>, ArtifactError> {
    let name = artifact.executable.as_deref();
    if releases.exists() {
        path_owner::check(releases, &Writers::own())?;
    }
    check_source(artifact)?;
    // To read all of an artifact takes its time, so only where there is something to compare it with.
    let known = artifact.sha256.map(|_| sha256(artifact)).transpose()?;
    if let Some(sha256) = known {
        let folder = folder_of(artifact, releases, sha256);
        if is_there(&folder, sha256)? {
            return find_executable(&folder, name).map(Some);
        }
    }
    if known.is_none() {
        check_installed(artifact, releases)?;
    }
    let executable = match &artifact.source {
        Source::Url(url) if known.is_none() => return Err(ArtifactError::NeedsSha256(url.clone())),
        Source::Url(_) => None,
        Source::Path(path) if path.is_dir() => Some(find_executable(path, name)?),
        Source::Path(path) => match kind(path)?.1 {
            Kind::Executable => Some(path.clone()).filter(|path| executable::check(path).is_ok()),
            Kind::Archive => None,
        },
    };
    // What others may change is known by its checksum, and is not run where it lies.
    let is_safe = |path: &PathBuf| path_owner::check(path, &Writers::own()).is_ok();
    Ok(executable.filter(|path| artifact.sha256.is_none() || is_safe(path)))
}

/// Refuses an artifact that was installed before, where what was installed is not as it was any more.
fn check_installed(artifact: &Artifact, releases: &Path) -> Result<(), ArtifactError> {
    let prefix = format!("{}-", artifact.release);
    let Ok(entries) = fs::read_dir(releases) else { return Ok(()) };
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| {
        path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
    });
    for folder in folders {
        // Which artifact it was of is asked only then: that reads all of it.
        let Err(why) = release_record::check_whole(&folder) else { continue };
        if folder == folder_of(artifact, releases, sha256(artifact)?) {
            return Err(why.into());
        }
    }
    Ok(())
}

/// Refuses an artifact without a checksum that others may change: it decides what is run here.
fn check_source(artifact: &Artifact) -> Result<(), ArtifactError> {
    match (&artifact.source, artifact.sha256) {
        (Source::Path(path), None) => path_owner::check_tree(path, &Writers::own()).map_err(|source| match source {
            PathOwnerError::File(error) => ArtifactError::File(error),
            source => ArtifactError::Unpinned { source },
        }),
        _ => Ok(()),
    }
}

/// Whether an artifact was installed as this folder before.
fn is_there(folder: &Path, sha256: Sha256) -> Result<bool, RecordError> {
    if folder.is_dir() { release_record::is_of(folder, sha256) } else { Ok(false) }
}

fn folder_of(artifact: &Artifact, releases: &Path, sha256: Sha256) -> PathBuf {
    releases.join(format!("{}-{}", artifact.release, sha256.short()))
}

/// One agent at a time: two clusters' agents may share a folder of releases. Each downloads for itself, into its own
/// state directory, so that nobody waits for the mirror of another.
async fn lock(releases: &Path, notify: Notify<'_>) -> Result<Flock<File>, ArtifactError> {
    let begun = Instant::now();
    while begun.elapsed() < LOCK_LIMIT {
        // A file that nobody else can open: whoever may read a folder may lock it, and keep all agents waiting (flock(2)).
        let file = durable::open(&releases.join(LOCK), OFlags::RDWR | OFlags::CREATE, 0o600)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((_, Errno::EWOULDBLOCK)) => {
                notify(Underway::Another(releases.into()));
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
    // A file of nothing can have any length.
    if fs::metadata(path).is_ok_and(|seen| seen.len() > unpack::MAX_BYTES) {
        return Err(UnpackError::TooLarge { path: path.into() }.into());
    }
    let found = if path.is_dir() { Sha256::of_folder(path)? } else { Sha256::of_file(path)? };
    expect(path, found, artifact.sha256.unwrap_or(found))?;
    Ok(found)
}

fn expect(path: &Path, found: Sha256, expected: Sha256) -> Result<(), ArtifactError> {
    if found == expected { Ok(()) } else { Err(ArtifactError::OtherSha256 { path: path.into(), found, expected }) }
}

/// Unless another agent did it meanwhile. The lock is held until it is done, even where nobody waits for that any more.
fn put_in_place(
    _lock: Flock<File>,
    artifact: &Artifact,
    path: &Path,
    sha256: Sha256,
    folder: &Path,
) -> Result<bool, ArtifactError> {
    remove_leftovers(folder.parent().unwrap_or(folder))?;
    let is_new = !folder.is_dir();
    if !is_there(folder, sha256)? {
        put_together(artifact, path, sha256, folder)?;
    }
    Ok(is_new)
}

/// Under another name until it is whole, is what was to be installed, and holds the executable that is wanted.
fn put_together(artifact: &Artifact, path: &Path, sha256: Sha256, folder: &Path) -> Result<(), ArtifactError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = folder.with_file_name(format!("{UNFINISHED}{name}"));
    durable::create_folder(&unfinished, 0o755)?;
    let put = unpack_any(artifact, path, &unfinished).and_then(|unpacked| {
        expect(path, unpacked.sha256, sha256)?;
        find_executable(&unfinished, artifact.executable.as_deref())?;
        give_name(&unfinished, folder, &unpacked)
    });
    // What has its name is not there any more.
    let _ = fs::remove_dir_all(&unfinished);
    put?;
    Ok(durable::sync_folder_of(folder)?)
}

/// A folder that has the name already, but no record, may hold the same: then it gets one, and stays, as members may run
/// from it.
fn give_name(unfinished: &Path, folder: &Path, unpacked: &Unpacked) -> Result<(), ArtifactError> {
    if !folder.is_dir() {
        release_record::write(unfinished, unpacked)?;
        return Ok(fs::rename(unfinished, folder).at("rename", unfinished)?);
    }
    match release_record::is_same(unfinished, folder)? {
        true => Ok(release_record::write(folder, unpacked)?),
        false => Err(ArtifactError::Taken(folder.into())),
    }
}

/// What an artifact that is no folder can be.
enum Kind {
    Executable,
    Archive,
}

/// By what it is, not by its name: a download has none.
fn kind(path: &Path) -> Result<(File, Kind), ArtifactError> {
    let mut file = digest::open_file(path, true)?;
    let head = executable::head(&mut file).at("read", path)?;
    file.rewind().at("read", path)?;
    match &head[..] {
        head if head.starts_with(executable::ELF) => Ok((file, Kind::Executable)),
        head if head.starts_with(GZIP) => Ok((file, Kind::Archive)),
        head => Err(ArtifactError::OtherKind { path: path.into(), what: executable::kind(head) }),
    }
}

fn unpack_any(artifact: &Artifact, path: &Path, into: &Path) -> Result<Unpacked, ArtifactError> {
    if path.is_dir() {
        return Ok(unpack::folder(path, into)?);
    }
    Ok(match kind(path)? {
        (file, Kind::Executable) => unpack::executable(file, path, into, &single_name(artifact))?,
        (file, Kind::Archive) => archive::archive(file, path, into)?,
    })
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
