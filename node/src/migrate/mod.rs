//! The way down with nobody running: what a member has stored is made fit for a lower release (KEP-4647, "Cluster Offline
//! Downgrade").
//!
//! Each member is stopped at a place of its own, and all must be the same afterwards. So the cluster goes down at whatever place that
//! is, and what may still be replayed behind it must do the same before and after. Else nothing is done.

mod command;
pub(crate) mod tail;

use std::{fmt, io, path::Path, path::PathBuf, sync::Arc};

use consensus::{Applier, OfflineError, SnapshotError, Snapshots};
use proto::{ClusterVersion, LogIndex, MemberId, Release};
use wal::WalError;

pub use command::{Command, MigrateCommandError, USAGE};

use crate::{
    cluster::member::Starts,
    features::Registry,
    host::Host,
    identity::{self, Identity, IdentityError},
    machine::{Machine, Proposals},
};

/// A file that says that what is stored was put at a lower version, and has not been started at that since.
pub const MARK: &str = "migrated";

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("{}: expected a member's data directory: {missing} is not there", path.display())]
    Missing { path: PathBuf, missing: &'static str },
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("{} is in use: stop the member first", path.display())]
    Busy { path: PathBuf },
    #[error("{}: nothing that is stored tells a cluster version: this member has never been part of a cluster, or its log is damaged. \
         Nothing was changed", path.display())]
    NoVersion { path: PathBuf },
    #[error("{} is at cluster version {version}, below {target}: members rise by themselves, started with release {target}", path.display())]
    Above { path: PathBuf, version: ClusterVersion, target: ClusterVersion },
    #[error(
        "{}: the log still needs release {version}: entry {index} {what}. If most members are not migrated yet, start those once more \
         with release {version}, let them come to rest, stop them, and migrate them; those that were migrated stay stopped meanwhile. \
         Else start the migrated ones with release {target}, remove this member, empty its data directory, and add it anew",
        path.display()
    )]
    Needed { path: PathBuf, version: ClusterVersion, target: ClusterVersion, index: LogIndex, what: &'static str },
    #[error(transparent)]
    Log(#[from] WalError),
    #[error(transparent)]
    Snapshots(#[from] SnapshotError),
    #[error(transparent)]
    Offline(#[from] OfflineError),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrated {
    Already(ClusterVersion),
    Lowered { from: ClusterVersion, to: ClusterVersion, at: LogIndex },
}

impl fmt::Display for Migrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Already(version) => write!(f, "it is fit for release {version} already"),
            Self::Lowered { from, to, at } => write!(
                f,
                "what is stored is fit for release {to} now (it was for {from}), as of entry {at}\n\
                 next: migrate the other members, before any is started; then start all with release {to}"
            ),
        }
    }
}

/// Makes what is stored in this data directory fit for a release of this minor.
///
/// # Errors
/// [`MigrateError`]: nothing was changed.
pub fn migrate(
    host: &dyn Host,
    path: &Path,
    target: ClusterVersion,
    release: &Release,
) -> Result<Migrated, MigrateError> {
    let io = |source| MigrateError::Io { path: path.into(), source };
    let missing = |missing| MigrateError::Missing { path: path.into(), missing };
    if !path.is_dir() {
        return Err(missing("the folder"));
    }
    let folder = host.data_dir(path).map_err(io)?;
    let names = folder.names().map_err(io)?;
    if let Some(part) = [identity::NAME, "wal", "snap"].into_iter().find(|part| !names.iter().any(|name| name == part))
    {
        return Err(missing(part));
    }
    let log = folder.folder("wal").map_err(io)?;
    log.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => MigrateError::Busy { path: path.into() },
        _ => io(error),
    })?;
    let has_log = log.names().map_err(io)?.iter().any(|name| name.ends_with(wal::SUFFIX));
    let snapshots = Snapshots::open(folder.folder("snap").map_err(io)?)?;
    // As at a start: nothing is made whole here that would not start.
    if !has_log {
        return Err(missing("a file of its log"));
    }
    let identity = Identity::stored(&*folder, &*log, release.clone())?;
    let log = host.open_log(log)?;
    if log.state()?.purged.is_some() && !snapshots.has_any()? {
        return Err(missing("its snapshot"));
    }
    // Nobody proposes anything.
    let proposals = Proposals::new(MemberId(0), Starts(0));
    let machine = Machine::new(release.clone(), Registry::of(release), proposals);
    let applier = Applier::open(Arc::new(machine.clone()), snapshots)?;
    if let Some(purged) = log.state()?.purged.filter(|purged| applier.applied() < purged.index.0) {
        return Err(OfflineError::Gap(purged.index.0).into());
    }
    applier.replay(&log)?;
    machine.read(|state| identity.check_stored(&*folder, &state.cluster))?;
    let version = machine.read(|state| state.cluster.version);
    let version = version.ok_or_else(|| MigrateError::NoVersion { path: path.into() })?;
    if version < target {
        return Err(MigrateError::Above { path: path.into(), version, target });
    }
    let rest = applier.rest(&log)?;
    let own = release.cluster_version();
    let against =
        rest.iter().find_map(|(index, content)| Some((*index, tail::against(content, own, version, target)?)));
    if let Some((index, what)) = against {
        return Err(MigrateError::Needed { path: path.into(), version, target, index: LogIndex(index), what });
    }
    if version == target {
        // It may have been lowered in the log alone, or the one before was killed half way.
        applier.store_offline(&log)?;
        return Ok(Migrated::Already(target));
    }
    // Before anything is lower.
    folder.create(MARK).and_then(|file| file.sync()).and_then(|()| folder.sync_names()).map_err(io)?;
    machine.lower_to(target);
    applier.store_offline(&log)?;
    Ok(Migrated::Lowered { from: version, to: target, at: LogIndex(applier.applied()) })
}
