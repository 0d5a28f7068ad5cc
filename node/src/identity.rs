//! Who a member is, and the file that keeps it so: which cluster, which member, and how often it has started.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crc32c::crc32c;
use disk::Folder;
use prost::Message;
use proto::{ClusterId, MemberId, Release};
use sha2::{Digest, Sha256};

use crate::{
    cluster::member::{Incarnation, Starts},
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
    /// Which data directory it has; one that an earlier release made has none.
    pub incarnation: Option<Incarnation>,
    /// The last count of starts that it was about to publish.
    published: Arc<AtomicU64>,
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    cluster: ClusterId,
    member: MemberId,
    starts: Starts,
    incarnation: Option<Incarnation>,
    published: Starts,
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
    /// A newer release wrote it.
    #[error("{} has format {found}, written by a newer release; start that one", path.display())]
    Newer { path: PathBuf, found: u32 },
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
        let mut plain: Vec<_> = urls.iter().map(|url| url.replacen("https://", "http://", 1)).collect();
        plain.sort();
        let id = MemberId(number(&format!("{}|{}", plain.join(","), config.initial_cluster_token)));
        (id, name.clone(), urls)
    };
    let mut founders: Vec<_> = config.initial_cluster.iter().map(founder).collect();
    founders.sort();
    founders
}

fn cluster(founders: &[(MemberId, String, Vec<String>)]) -> ClusterId {
    let ids: Vec<String> = founders.iter().map(|(id, ..)| id.key_form()).collect();
    ClusterId(number(&ids.join(",")))
}

/// Never 0, which is nobody.
fn number(text: &str) -> u64 {
    let digest = Sha256::digest(text);
    u64::from_be_bytes(std::array::from_fn(|at| digest[at])).max(1)
}

impl Identity {
    /// The identity in a data directory, which starts once more; of a new member, by its flags, where there is none.
    ///
    /// # Errors
    /// [`IdentityError`]: nothing was changed.
    pub fn load(folder: &dyn Folder, config: &Config, release: Release) -> Result<Self, IdentityError> {
        let founders = founders(config);
        let flags = cluster(&founders);
        let own = founders.iter().find(|(_, name, _)| *name == config.name).map(|(id, ..)| *id).unwrap_or_default();
        let path = folder.path(NAME);
        let kept = match disk::read(folder, NAME) {
            Ok(bytes) => read(&path, &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Kept {
                cluster: flags,
                member: own,
                starts: Starts(0),
                incarnation: Incarnation::read(RandomState::new().hash_one(own).max(1)),
                published: Starts(0),
            },
            Err(source) => return Err(IdentityError::Io { doing: "read", path, source }),
        };
        if kept.cluster != flags {
            return Err(IdentityError::OtherCluster { path: folder.path(""), stored: kept.cluster, flags });
        }
        let kept = Kept { starts: Starts(kept.starts.0 + 1), ..kept };
        write(folder, kept)?;
        Ok(Self::new(kept, config.name.clone(), release))
    }

    fn new(kept: Kept, name: String, release: Release) -> Self {
        let Kept { cluster, member, starts, incarnation, published } = kept;
        Self { cluster, member, name, release, starts, incarnation, published: Arc::new(published.0.into()) }
    }

    /// Of a member without a data directory, as a test has.
    pub fn of_none(cluster: ClusterId, member: MemberId, release: Release, starts: Starts) -> Self {
        Self::new(Kept { cluster, member, starts, incarnation: None, published: Starts(0) }, "m1".into(), release)
    }

    /// The last count of starts that it was about to publish.
    pub fn published(&self) -> Starts {
        Starts(self.published.load(Ordering::Relaxed))
    }

    /// Notes, durably, that this start is about to be published: a copy of the data directory that is older than what other
    /// members know can be told from it, however often the copy is started.
    ///
    /// # Errors
    /// [`IdentityError`]
    pub fn publish(&self, folder: &dyn Folder) -> Result<(), IdentityError> {
        if self.published() == self.starts {
            return Ok(());
        }
        let Self { cluster, member, starts, incarnation, .. } = *self;
        write(folder, Kept { cluster, member, starts, incarnation, published: starts })?;
        self.published.store(starts.0, Ordering::Relaxed);
        Ok(())
    }
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
        published: Starts(read.published),
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
        published: kept.published.0,
        checksum: 0,
    };
    identity.checksum = checksum(&identity);
    disk::write_whole(folder, NAME, "identity.tmp", &identity.encode_to_vec()).at("write", &folder.path(NAME))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    fn config(folder: &Path, token: &str) -> Config {
        let flags = [
            "--name=m1".to_owned(),
            format!("--data-dir={}", folder.display()),
            "--initial-advertise-peer-urls=http://127.0.0.1:2380".into(),
            "--initial-cluster=m1=http://127.0.0.1:2380,m2=http://127.0.0.1:2381".into(),
            format!("--initial-cluster-token={token}"),
        ];
        Config::read(flags, []).unwrap()
    }

    fn load(folder: &Path, token: &str) -> Result<Identity, String> {
        Identity::load(&*disk::real(folder).unwrap(), &config(folder, token), Release::new(3, 5, 0))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_member_stays_who_it_is_and_counts_its_starts() {
        let folder = tempfile::tempdir().unwrap();
        let first = load(folder.path(), "a").unwrap();
        let second = load(folder.path(), "a").unwrap();
        assert_eq!((first.starts, second.starts), (Starts(1), Starts(2)));
        assert_eq!((first.cluster, first.member), (second.cluster, second.member));
        assert!(first.incarnation.is_some() && first.incarnation == second.incarnation);
        assert_eq!(second.published(), Starts(0));
        second.publish(&*disk::real(folder.path()).unwrap()).unwrap();
        assert_eq!(second.published(), Starts(2));
        let refusal = load(folder.path(), "b").unwrap_err();
        assert!(refusal.contains("belongs to a member of cluster") && refusal.contains("--initial-cluster-token"));
        let third = load(folder.path(), "a").unwrap();
        assert_eq!(third.starts, Starts(3), "a refused start is none");
        assert_eq!(third.published(), Starts(2), "what was published stays");
        let other = tempfile::tempdir().unwrap();
        assert_ne!(load(other.path(), "a").unwrap().incarnation, first.incarnation);
    }

    /// What was written once is read by every later release. Never written anew: another meaning is another field.
    #[test]
    fn the_bytes_are_those_of_the_release_that_first_wrote_them() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept {
            cluster: ClusterId(0x1234),
            member: MemberId(0xabc),
            starts: Starts(300),
            incarnation: None,
            published: Starts(0),
        };
        write(&*disk::real(folder.path()).unwrap(), kept).unwrap();
        let golden = b"\x08\x01\x10\xb4\x24\x18\xbc\x15\x20\xac\x02\x7d\xd4\x83\xc9\xdb";
        let path = folder.path().join(NAME);
        assert_eq!(fs::read(&path).unwrap(), golden);
        assert_eq!(read(&path, golden).unwrap(), kept);
        let more = Kept { incarnation: Incarnation::read(0x0102_0304_0506_0708), published: Starts(299), ..kept };
        write(&*disk::real(folder.path()).unwrap(), more).unwrap();
        let golden = b"\x08\x01\x10\xb4\x24\x18\xbc\x15\x20\xac\x02\x29\x08\x07\x06\x05\x04\x03\x02\x01\x30\xab\x02";
        assert_eq!(fs::read(&path).unwrap()[..golden.len()], golden[..]);
        assert_eq!(read(&path, &fs::read(&path).unwrap()).unwrap(), more);
    }

    #[test]
    fn a_damaged_file_is_refused_at_every_bit() {
        let folder = tempfile::tempdir().unwrap();
        load(folder.path(), "a").unwrap();
        let path = folder.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            fs::write(&path, flipped).unwrap();
            assert!(load(folder.path(), "a").is_err(), "bit {at}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(load(folder.path(), "a").is_err(), "cut off at {length}");
        }
    }
}
