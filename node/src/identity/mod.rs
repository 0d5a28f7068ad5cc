//! Who a member is, and the file that keeps it so: which cluster, which member, and how often it has started.

mod started;

use std::{
    hash::{BuildHasher, RandomState},
    io,
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crc32c::crc32c;
use disk::Folder;
use prost::Message;
use proto::{ClusterId, MemberId, Release};
use sha2::{Digest, Sha256};

use crate::{
    cluster::{
        Cluster,
        member::{Incarnation, Start, StartId, Starts},
    },
    config::Config,
    stored::entry as stored,
};

/// The format that is written, and the newest that is read.
const FORMAT: u32 = 1;
pub(super) const NAME: &str = "identity";

#[derive(Clone, Debug)]
pub struct Identity {
    pub cluster: ClusterId,
    pub member: MemberId,
    pub name: String,
    pub release: Release,
    /// How often it has started.
    pub starts: Starts,
    /// Which start this is: what another process of the same count says is not this one's. None in a test.
    pub start_id: Option<StartId>,
    /// Which data directory it has; one that an earlier release made has none.
    pub incarnation: Option<Incarnation>,
    /// The last start before this one that it was about to publish.
    published: Start,
    /// It was about to publish this one.
    publishes: Arc<AtomicBool>,
    origin: Option<Origin>,
}

/// What the state of a new cluster was restored from: every snapshot, and every other way to restore it, has another number. It
/// is a part of the cluster's id: members that began with different states are strangers to each other (N-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(NonZeroU64);

impl Origin {
    /// Of the SHA-256 of all that the state was made from.
    pub fn of(digest: &[u8; 32]) -> Self {
        Self(NonZeroU64::new(number_of(digest)).unwrap_or(NonZeroU64::MIN))
    }
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    cluster: ClusterId,
    member: MemberId,
    starts: Starts,
    incarnation: Option<Incarnation>,
    published: Start,
    origin: Option<Origin>,
}

/// Why a data directory is not this member's.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// A verb: `read`, `write`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Its bytes are not what was written.
    #[error("{}: damaged. Bring the data directory back as it was; or remove the member, empty its data directory and add it \
     again", path.display())]
    Damaged { path: PathBuf },
    /// A part of the data directory is not there.
    #[error(
        "{} is missing, and the rest of the data directory is there: this member has promised what it does not know any \
         more. Bring the data directory back as it was; or remove the member, empty its data directory and add it again",
        path.display()
    )]
    Missing { path: PathBuf },
    /// A part of the data directory is of an earlier time than the rest.
    #[error(
        "{} is an older copy than the rest of the data directory: this member has promised what it does not know any more. \
         Bring the data directory back as it was; or remove the member, empty its data directory and add it again",
        path.display()
    )]
    Older { path: PathBuf },
    /// Its parts were written by different members.
    #[error(
        "{}: its parts are not those of one member: {NAME} is of member {member} of cluster {cluster}, and what is stored is of {other}. \
         Bring the data directory back as it was; or remove the member, empty its data directory and add it again",
        path.display()
    )]
    Mixed {
        path: PathBuf,
        member: MemberId,
        cluster: ClusterId,
        /// Such as `cluster C`, or `another data directory`.
        other: String,
    },
    /// A newer release wrote it.
    #[error("{} has format {found}, written by a newer release; start that one", path.display())]
    Newer { path: PathBuf, found: u32 },
    /// It was begun before the member was added.
    #[error(
        "{} was begun as member {stored}, which has nothing yet, and the cluster that it joins has added member {joined} at its URLs: \
         empty the data directory",
        path.display()
    )]
    OtherMember {
        path: PathBuf,
        stored: MemberId,
        /// As the cluster knows it.
        joined: MemberId,
    },
    /// The flags are another cluster's.
    #[error(
        "{} belongs to a member of cluster {stored}, and the flags found cluster {flags}: give --initial-cluster and \
         --initial-cluster-token as they were, or another --data-dir",
        path.display()
    )]
    OtherCluster {
        path: PathBuf,
        stored: ClusterId,
        /// The cluster that the flags make.
        flags: ClusterId,
    },
}

trait At<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, IdentityError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, IdentityError> {
        self.map_err(|source| IdentityError::Io { doing, path: path.into(), source })
    }
}

/// The id of each founder by name, with its peer URLs; from hosts, ports and token alone, so that all come to the same, and still
/// do once members have gone from http to https.
pub(super) fn founders(config: &Config) -> Vec<(MemberId, String, Vec<String>)> {
    let founder = |(name, urls): (&String, &Vec<crate::config::Url>)| {
        let mut urls: Vec<String> = urls.iter().map(ToString::to_string).collect();
        urls.sort();
        let mut plain: Vec<_> =
            urls.iter().map(|url| url.replacen("https://", "http://", 1).replacen("unixs://", "unix://", 1)).collect();
        plain.sort();
        let id = MemberId(number(&format!("{}|{}", plain.join(","), config.initial_cluster_token)));
        (id, name.clone(), urls)
    };
    let mut founders: Vec<_> = config.initial_cluster.iter().map(founder).collect();
    founders.sort();
    founders
}

fn cluster(founders: &[(MemberId, String, Vec<String>)], origin: Option<Origin>) -> ClusterId {
    let ids: Vec<String> = founders.iter().map(|(id, ..)| id.key_form()).collect();
    let origin = origin.map_or_else(String::new, |origin| format!("|{:x}", origin.0));
    ClusterId(number(&format!("{}{origin}", ids.join(","))))
}

fn number(text: &str) -> u64 {
    number_of(&Sha256::digest(text).into())
}

/// Never 0, which is nobody.
fn number_of(digest: &[u8; 32]) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|at| digest[at])).max(1)
}

impl Identity {
    /// Whether a member has started in this data directory.
    pub fn is_in(data_dir: &Path) -> bool {
        data_dir.join(NAME).exists()
    }

    /// The identity in a data directory, which starts once more; of a new member, by its flags or as it has `joined` a cluster,
    /// where there is none. The folder
    /// of the log counts the starts, too: one that is older than the rest shows by that (N-7).
    ///
    /// # Errors
    /// [`IdentityError`]: nothing was changed.
    pub fn load(
        folder: &dyn Folder,
        log: &dyn Folder,
        config: &Config,
        release: Release,
        joined: Option<(ClusterId, MemberId)>,
    ) -> Result<Self, IdentityError> {
        let path = folder.path(NAME);
        let (kept, was_there) = match disk::read(folder, NAME) {
            Ok(bytes) => (read(&path, &bytes)?, true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (joined.map_or_else(|| Kept::new(config, None), Kept::joined), false)
            }
            Err(source) => return Err(IdentityError::Io { doing: "read", path, source }),
        };
        let starts = kept.next(&path, log, was_there)?;
        // A start that was cut short has left one of an identity that nobody has.
        let is_owned = was_there && kept.owns(log)?;
        let kept = Kept { starts, ..kept };
        if !is_owned {
            write(log, Kept { starts: Starts(0), published: Start::default(), ..kept })?;
        }
        started::write(log, starts)?;
        write(folder, kept)?;
        Ok(Self { start_id: StartId::read(random(kept.member)), ..Self::new(kept, config.name.clone(), release) })
    }

    /// Whose data directory this is, without a start.
    ///
    /// # Errors
    /// [`IdentityError`]
    pub fn stored(folder: &dyn Folder, log: &dyn Folder, release: Release) -> Result<Self, IdentityError> {
        let path = folder.path(NAME);
        let bytes = disk::read(folder, NAME).at("read", &path)?;
        let kept = read(&path, &bytes)?;
        kept.next(&path, log, true)?;
        kept.owns(log)?;
        Ok(Self::new(kept, String::new(), release))
    }

    /// Whether what is stored beside it is of this member's cluster, and knows this data directory, if any.
    ///
    /// # Errors
    /// [`IdentityError::Mixed`]
    pub fn check_stored(&self, folder: &dyn Folder, stored: &Cluster) -> Result<(), IdentityError> {
        let known = stored.members.get(&self.member).and_then(|member| member.incarnation);
        let other = match (known, self.incarnation) {
            // Before anything is applied there is no cluster.
            _ if stored.id != self.cluster && !stored.members.is_empty() => format!("cluster {}", stored.id),
            (Some(known), Some(own)) if known != own => "another data directory".to_owned(),
            _ => return Ok(()),
        };
        Err(IdentityError::Mixed { path: folder.path(""), member: self.member, cluster: self.cluster, other })
    }

    /// Writes the identity that a member of a cluster with this origin starts with, which is new: its cluster and its own id.
    ///
    /// # Errors
    /// [`IdentityError`]
    pub fn restored(
        folder: &dyn Folder,
        config: &Config,
        origin: Origin,
    ) -> Result<(ClusterId, MemberId), IdentityError> {
        let kept = Kept::new(config, Some(origin));
        write(folder, kept)?;
        Ok((kept.cluster, kept.member))
    }

    fn new(kept: Kept, name: String, release: Release) -> Self {
        let Kept { cluster, member, starts, incarnation, published, origin } = kept;
        let publishes = Arc::default();
        Self { cluster, member, name, release, starts, start_id: None, incarnation, published, publishes, origin }
    }

    /// Of a member without a data directory, as a test has.
    pub fn of_none(cluster: ClusterId, member: MemberId, release: Release, starts: Starts) -> Self {
        let published = Start::default();
        Self::new(Kept { cluster, member, starts, incarnation: None, published, origin: None }, "m1".into(), release)
    }

    /// Whether the flags are those of this member's cluster: as long as it has no log, they found it.
    ///
    /// # Errors
    /// They are not.
    pub fn check(&self, config: &Config) -> Result<(), IdentityError> {
        let flags = cluster(&founders(config), self.origin);
        match self.cluster == flags {
            true => Ok(()),
            false => Err(IdentityError::OtherCluster { path: config.data_dir.clone(), stored: self.cluster, flags }),
        }
    }

    /// Whether this is the member that a cluster says it is, which it joins and has no log of yet.
    ///
    /// # Errors
    /// It is another one.
    pub fn check_joined(&self, config: &Config, joined: (ClusterId, MemberId)) -> Result<(), IdentityError> {
        match (self.cluster, self.member) == joined {
            true => Ok(()),
            false => {
                Err(IdentityError::OtherMember { path: config.data_dir.clone(), stored: self.member, joined: joined.1 })
            }
        }
    }

    /// This start.
    pub fn start(&self) -> Start {
        Start { starts: self.starts, id: self.start_id }
    }

    /// The last start that it was about to publish.
    pub fn published(&self) -> Start {
        if self.publishes.load(Ordering::Relaxed) { self.start() } else { self.published }
    }

    /// Notes, durably, that this start is about to be published: a copy of the data directory that is older than what other
    /// members know can be told from it, however often the copy is started.
    ///
    /// # Errors
    /// [`IdentityError`]
    pub fn publish(&self, folder: &dyn Folder) -> Result<(), IdentityError> {
        if self.published() == self.start() {
            return Ok(());
        }
        let Self { cluster, member, starts, incarnation, origin, .. } = *self;
        write(folder, Kept { cluster, member, starts, incarnation, published: self.start(), origin })?;
        self.publishes.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Kept {
    /// Of a member that the flags make, and that has not started yet.
    fn new(config: &Config, origin: Option<Origin>) -> Self {
        let founders = founders(config);
        let own = founders.iter().find(|(_, name, _)| *name == config.name).map(|(id, ..)| *id).unwrap_or_default();
        Self { origin, ..Self::joined((cluster(&founders, origin), own)) }
    }

    /// Of a member that was added to a cluster, and that has not started yet.
    fn joined((cluster, member): (ClusterId, MemberId)) -> Self {
        Self {
            cluster,
            member,
            starts: Starts(0),
            incarnation: Incarnation::read(random(member)),
            published: Start::default(),
            origin: None,
        }
    }
}

/// Of the system's chance; never 0, which is none.
fn random(member: MemberId) -> u64 {
    RandomState::new().hash_one(member).max(1)
}

fn read(path: &Path, bytes: &[u8]) -> Result<Kept, IdentityError> {
    let damaged = || IdentityError::Damaged { path: path.into() };
    let read = stored::Identity::decode(bytes).map_err(|_| damaged())?;
    if read.format > FORMAT {
        return Err(IdentityError::Newer { path: path.into(), found: read.format });
    }
    if read.checksum != checksum(&read) || read.member == 0 {
        return Err(damaged());
    }
    Ok(Kept {
        cluster: ClusterId(read.cluster),
        member: MemberId(read.member),
        starts: Starts(read.starts),
        incarnation: Incarnation::read(read.incarnation),
        published: Start { starts: Starts(read.published), id: StartId::read(read.published_id) },
        origin: NonZeroU64::new(read.origin).map(Origin),
    })
}

fn checksum(identity: &stored::Identity) -> u32 {
    crc32c(&stored::Identity { checksum: 0, ..*identity }.encode_to_vec())
}

fn write(folder: &dyn Folder, kept: Kept) -> Result<(), IdentityError> {
    let mut identity = stored::Identity {
        format: FORMAT,
        cluster: kept.cluster.0,
        member: kept.member.0,
        starts: kept.starts.0,
        incarnation: Incarnation::written(kept.incarnation),
        published: kept.published.starts.0,
        published_id: StartId::written(kept.published.id),
        origin: kept.origin.map_or(0, |origin| origin.0.get()),
        checksum: 0,
    };
    identity.checksum = checksum(&identity);
    disk::write_whole(folder, NAME, "identity.tmp", &identity.encode_to_vec()).at("write", &folder.path(NAME))
}

#[cfg(test)]
#[path = "identity_test.rs"]
mod tests;
