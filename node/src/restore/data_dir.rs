//! A data directory made from a saved file. It is written aside, made durable, and put in its place at the end.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use consensus::{BeginError, FIRST_INDEX, SnapshotError, Snapshots, begin_with};
use disk::Folder;
use proto::{ClusterId, ClusterVersion, LogIndex, MemberId, Release};
use sha2::{Digest, Sha256};
use wal::{Options, Wal, WalError};

use super::{FileError, HashCheck, Saved, read};
use crate::{
    cluster::{Cluster, entry::Entry},
    config::Config,
    features::Registry,
    identity::{Identity, IdentityError, Origin, founders},
    state::{Sessions, State},
};

/// What is restored, and for whom.
#[derive(Clone, Debug)]
pub struct Restoring {
    pub file: PathBuf,
    pub hash_check: HashCheck,
    /// How many revisions are left out before the next one is written; 0: history stays, and nothing is compacted.
    pub bump: u64,
    /// Name, data directory, initial cluster and token of the member.
    pub config: Config,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub cluster: ClusterId,
    pub member: MemberId,
    pub revision: i64,
    pub leases: usize,
}

/// Why no data directory was made.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    File(#[from] FileError),
    /// Its data may be in a form that this release does not know.
    #[error(
        "{} was saved from a cluster of version {version}, above {release} that this is: restore it with release {version}",
        path.display()
    )]
    Newer { path: PathBuf, version: ClusterVersion, release: Release },
    /// Somebody's data is there.
    #[error("--data-dir {}: it is not empty. Name another one, or move what is in it away", path.display())]
    NotEmpty { path: PathBuf },
    /// A path such as `/`.
    #[error("--data-dir {}: expected a folder that can be made", path.display())]
    NoName { path: PathBuf },
    /// Another process makes the same one.
    #[error("{} is in use: another `node snapshot restore` makes this data directory", path.display())]
    Busy { path: PathBuf },
    /// It may be somebody's data.
    #[error("{} is in the way, and nothing in it says that `node snapshot restore` made it. Move it away", path.display())]
    InTheWay { path: PathBuf },
    /// Revisions are numbers of 64 bits.
    #[error("--bump-revision={by}: the file is at revision {revision}, and that would leave too few revisions")]
    Bump { by: u64, revision: i64 },
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// A verb: `make`, `read`, `rename`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Log(#[from] WalError),
    #[error(transparent)]
    Snapshots(#[from] SnapshotError),
    #[error(transparent)]
    Begin(#[from] BeginError),
}

trait At<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, RestoreError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, RestoreError> {
        self.map_err(|source| RestoreError::Io { doing, path: path.into(), source })
    }
}

/// Makes the data directory from which this member of a new cluster starts.
///
/// # Errors
/// [`RestoreError`]: nothing was made.
pub fn restore(restoring: &Restoring, release: &Release) -> Result<Restored, RestoreError> {
    let Restoring { file, hash_check, bump, config } = restoring;
    let place = Place::of(&config.data_dir)?;
    let saved = read(file, *hash_check)?;
    if let Some(version) = saved.state.cluster.version.filter(|version| *version > release.cluster_version()) {
        return Err(RestoreError::Newer { path: file.clone(), version, release: release.clone() });
    }
    let origin = origin(&saved, *bump);
    let mut state = begun_anew(saved.state);
    let revision = state.keys.revision().0;
    if *bump > 0 && !state.keys.bump(*bump) {
        return Err(RestoreError::Bump { by: *bump, revision });
    }
    let unfinished = place.begin()?;
    let (cluster, member) = write(&*unfinished.folder, config, origin, &mut state, &Registry::of(release))?;
    let restored =
        Restored { cluster, member, revision: state.keys.revision().0, leases: state.keys.leases().iter().count() };
    unfinished.finish()?;
    Ok(restored)
}

/// All that the new state is made from: who restores another file, or the same one in another way, makes another cluster.
fn origin(saved: &Saved, bump: u64) -> Origin {
    let digest = Sha256::new().chain_update(saved.digest).chain_update(bump.to_be_bytes());
    Origin::of(&digest.finalize().into())
}

/// What of a state a new cluster has. The version stays, as with etcd: a lower release must not read what a higher one wrote.
/// Alarms stay, too: what is full or corrupt still is. Sessions count the starts of the old members, and would have the first
/// proposals of the new ones passed over.
fn begun_anew(state: State) -> State {
    let State { mut keys, cluster, alarms, .. } = state;
    keys.forget_lease_checkpoints();
    State {
        applied: LogIndex(FIRST_INDEX),
        keys,
        cluster: Cluster { version: cluster.version, ..Cluster::default() },
        sessions: Sessions::default(),
        alarms,
    }
}

fn write(
    folder: &dyn Folder,
    config: &Config,
    origin: Origin,
    state: &mut State,
    registry: &Registry,
) -> Result<(ClusterId, MemberId), RestoreError> {
    let (id, member) = Identity::restored(folder, config, origin)?;
    let founders = founders(config);
    let addresses: BTreeMap<_, _> = founders.iter().map(|(id, _, urls)| (id.0, urls.join(","))).collect();
    let members = founders.into_iter().map(|(id, name, urls)| (id, (name, urls))).collect();
    state.cluster.apply(state.applied, Entry::Bootstrap { id, members });
    let part = |name| folder.folder(name).at("make", &folder.path(name));
    let (log, snapshots) = (Wal::open_in(part("wal")?, Options::default())?, Snapshots::open(part("snap")?)?);
    let frozen = state.clone();
    let form = frozen.form(registry);
    let frozen =
        Box::new(move |out: &mut dyn io::Write| frozen.snapshot(form).try_for_each(|piece| out.write_all(&piece)));
    begin_with(frozen, &addresses, &log, &snapshots)?;
    Ok((id, member))
}

/// A file that says who makes this folder, until it is whole: one that was killed leaves it, and it is cleared by the next.
const UNFINISHED: &str = "unfinished-restore";

/// Where the data directory is to be.
pub(super) struct Place {
    parent: PathBuf,
    name: String,
}

impl Place {
    /// It is not there, or empty.
    pub(super) fn of(path: &Path) -> Result<Self, RestoreError> {
        let path = match fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                None => path.canonicalize().at("read", path)?,
                Some(_) => return Err(RestoreError::NotEmpty { path: path.into() }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
            Err(source) => return Err(RestoreError::Io { doing: "read", path: path.into(), source }),
        };
        let no_name = || RestoreError::NoName { path: path.clone() };
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(no_name)?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { parent: parent.into(), name })
    }

    /// An empty folder beside it, for this process alone.
    pub(super) fn begin(self) -> Result<Unfinished, RestoreError> {
        let parent = disk::real(&self.parent).at("make", &self.parent)?;
        let aside = format!("{}.restoring", self.name);
        let path = parent.path(&aside);
        let folder = parent.folder(&aside).at("make", &path)?;
        // Where others may write, one of them may have made it, or a link to anywhere.
        let found = fs::symlink_metadata(&path).at("read", &path)?;
        if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
            return Err(RestoreError::InTheWay { path });
        }
        folder.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => RestoreError::Busy { path: path.clone() },
            _ => RestoreError::Io { doing: "lock", path: path.clone(), source: error },
        })?;
        let names = folder.names().at("read", &path)?;
        if !names.is_empty() && !names.iter().any(|name| name == UNFINISHED) {
            return Err(RestoreError::InTheWay { path });
        }
        fs::set_permissions(&path, Permissions::from_mode(0o700)).at("change", &path)?;
        let unfinished = Unfinished { parent, aside, name: self.name, folder, is_whole: false };
        let mark = path.join(UNFINISHED);
        fs::write(&mark, "").at("write", &mark)?;
        for name in names.into_iter().filter(|name| name != UNFINISHED) {
            let left = path.join(name);
            match left.is_dir() && !left.is_symlink() {
                true => fs::remove_dir_all(&left),
                false => fs::remove_file(&left),
            }
            .at("remove", &left)?;
        }
        Ok(unfinished)
    }
}

/// A data directory that is being written, beside its place. It goes with this value unless it was finished.
pub(super) struct Unfinished {
    parent: Arc<dyn Folder>,
    aside: String,
    name: String,
    folder: Arc<dyn Folder>,
    is_whole: bool,
}

impl Unfinished {
    /// Puts it in its place; an empty folder there gives way.
    pub(super) fn finish(mut self) -> Result<(), RestoreError> {
        let place = self.parent.path(&self.name);
        self.folder.remove(UNFINISHED).at("remove", &self.folder.path(UNFINISHED))?;
        self.folder.sync_names().at("sync", &self.folder.path(""))?;
        self.parent.rename(&self.aside, &self.name).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty => RestoreError::NotEmpty { path: place.clone() },
            _ => RestoreError::Io { doing: "make", path: place.clone(), source: error },
        })?;
        self.is_whole = true;
        self.parent.sync_names().at("sync", &place)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_whole {
            // What stays is cleared when the same is restored again.
            let _ = fs::remove_dir_all(self.parent.path(&self.aside));
        }
    }
}
