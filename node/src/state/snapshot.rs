//! The whole state as bytes, and back.

use crc32c::crc32c;
use prost::Message;
use proto::{ClusterVersion, LogIndex, MemberId, Release};

use super::{
    State,
    sessions::{Session, Sessions},
};
use crate::{
    cluster::{downgrade::LOWEST, member::Starts},
    entry::{decode_cluster, decode_version, encode_cluster, encode_version},
    features::{COMPRESSION, Registry},
    mvcc::{self, SnapshotError},
    stored::entry::{self as stored, Alarm, StateHead},
};

/// The format that is written, and the newest that is read.
const FORMAT: u32 = 1;
/// No head is longer: a cluster has a handful of members.
const LONGEST_HEAD: usize = 16 << 20;

/// Why bytes are no state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A newer release wrote it; nothing of it is taken.
    #[error("a stored state of format {0}, which is newer than the {FORMAT} that this release reads")]
    Newer(u32),
    /// It is in the form of a cluster version that this release cannot have; nothing of it is taken.
    #[error(
        "what is stored is for release {storage} and later, and this is {release}: start it with release {storage}, or make it fit \
         first: online, one minor at a time, by `etcdctl downgrade enable`; offline by `node migrate --target-version {}` of release {storage}",
        release.cluster_version()
    )]
    Storage { storage: ClusterVersion, release: Release },
    /// Its head is damaged, or cut off.
    #[error("a stored state whose head is damaged: {0}")]
    Head(String),
    #[error(transparent)]
    Keys(#[from] SnapshotError),
}

/// How a state is written: so that the release of the cluster's version reads all of it, and drops nothing without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The first release that reads it.
    pub storage: ClusterVersion,
    /// Whether large values are compressed (`ClusterSnapshotCompression`, from 3.7 on).
    pub compresses: bool,
}

impl Form {
    /// That of the first release, which all read.
    pub const FIRST: Self = Self { storage: LOWEST, compresses: false };
}

impl State {
    /// The form in which it is stored and sent: that of its cluster version.
    pub fn form(&self, registry: &Registry) -> Form {
        let compresses = self.cluster.is_enabled(COMPRESSION, registry);
        Form { storage: self.cluster.version.unwrap_or(LOWEST), compresses }
    }

    /// The whole state as bytes, in pieces. Equal states give equal bytes.
    pub fn snapshot(&self, form: Form) -> impl Iterator<Item = Vec<u8>> {
        let alarms = self.alarms.iter().map(|(member, kind)| Alarm { member: member.0, kind: *kind });
        let mut head = StateHead {
            format: FORMAT,
            applied: self.applied.0,
            cluster: Some(encode_cluster(&self.cluster)),
            alarms: alarms.collect(),
            sessions: self.sessions.by_member.iter().map(session).collect(),
            storage: Some(form.storage).filter(|storage| *storage > LOWEST).map(encode_version),
            checksum: 0,
        };
        head.checksum = checksum(&head);
        std::iter::once(head.encode_length_delimited_to_vec()).chain(self.keys.snapshot_in(form.compresses))
    }
}

fn session((member, session): (&MemberId, &Session)) -> stored::Session {
    stored::Session {
        member: member.0,
        starts: session.starts.0,
        settled: session.settled,
        applied: session.applied.iter().copied().collect(),
    }
}

fn read_session(read: stored::Session) -> (MemberId, Session) {
    let applied = read.applied.into_iter().collect();
    (MemberId(read.member), Session { starts: Starts(read.starts), settled: read.settled, applied })
}

fn checksum(head: &StateHead) -> u32 {
    crc32c(&StateHead { checksum: 0, ..head.clone() }.encode_to_vec())
}

/// A state that is being read.
#[derive(Debug, Default)]
pub struct Restore {
    /// What is not a whole head yet.
    pending: Vec<u8>,
    head: Option<StateHead>,
    keys: mvcc::Restore,
    /// Who reads it; none: nobody starts with it.
    reader: Option<Release>,
}

impl Restore {
    /// By a member of this release.
    pub fn by(reader: &Release) -> Self {
        Self { reader: Some(reader.clone()), ..Self::default() }
    }

    /// Of bytes that are filled up with this many zeros at most.
    pub fn filled_up(most_bytes: usize) -> Self {
        Self { keys: mvcc::Restore::filled_up(most_bytes), ..Self::default() }
    }

    /// Takes in the next bytes, however they are cut.
    ///
    /// # Errors
    /// [`StateError`]
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        if self.head.is_some() {
            return Ok(self.keys.push(bytes)?);
        }
        self.pending.extend_from_slice(bytes);
        let mut rest = &self.pending[..];
        let Ok(length) = prost::decode_length_delimiter(&mut rest) else {
            // A varint has ten bytes at most.
            return if self.pending.len() < 10 { Ok(()) } else { Err(StateError::Head("it has no length".into())) };
        };
        if length > LONGEST_HEAD {
            return Err(StateError::Head(format!("it says that it has {length} bytes")));
        }
        let Some((head, rest)) = rest.split_at_checked(length) else { return Ok(()) };
        let head = StateHead::decode(head).map_err(|error| StateError::Head(error.to_string()))?;
        if head.format > FORMAT {
            return Err(StateError::Newer(head.format));
        }
        if head.checksum != checksum(&head) && !cfg!(fuzzing) {
            return Err(StateError::Head("its checksum is another".into()));
        }
        let storage = head.storage.as_ref().map_or(LOWEST, decode_version);
        if let Some(release) = self.reader.as_ref().filter(|release| storage > release.cluster_version()) {
            return Err(StateError::Storage { storage, release: release.clone() });
        }
        self.head = Some(head);
        let rest = rest.to_vec();
        self.pending = Vec::new();
        Ok(self.keys.push(&rest)?)
    }

    /// The state, once all bytes were taken in.
    ///
    /// # Errors
    /// [`StateError`]
    pub fn finish(self) -> Result<State, StateError> {
        let head = self.head.ok_or_else(|| StateError::Head("it is cut off".into()))?;
        Ok(State {
            applied: LogIndex(head.applied),
            keys: self.keys.finish()?,
            cluster: decode_cluster(head.cluster.unwrap_or_default()),
            sessions: Sessions { by_member: head.sessions.into_iter().map(read_session).collect() },
            alarms: head.alarms.iter().map(|alarm| (MemberId(alarm.member), alarm.kind)).collect(),
        })
    }
}
