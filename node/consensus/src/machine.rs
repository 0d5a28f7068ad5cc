//! The state machine as this crate sees it, and the adapter that openraft drives it by.

use std::{
    io::{self, BufRead, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use openraft::storage::{ApplyResponder, EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use tokio::time::sleep;

use crate::{
    group::with_causes,
    members::Members,
    schedule::Schedule,
    snapshots::{SnapshotError, SnapshotFile, Snapshots},
    threads::{aside, off_thread},
    types::{LogId, Payload, Snapshot, SnapshotMeta, StoredMembership, Types},
};

/// Why a state machine cannot go on.
pub type Stop = Box<dyn std::error::Error + Send + Sync>;

/// Writes a state, as it was at one moment, to wherever it is wanted.
pub type Frozen = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

/// Puts a stored state, which was read, in place of a machine's own.
///
/// It fails where the member must end: this release must not go on with that state. Then nothing was changed.
pub type Restored = Box<dyn FnOnce() -> Result<(), Stop> + Send>;

/// What is in a committed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Raft's own, which says nothing to a state machine.
    Nothing,
    /// A command of the machine's.
    Command(Bytes),
    /// These are the members from here on.
    Members(Members),
}

/// What a log's commands are for.
pub trait Machine: Send + Sync + 'static {
    /// Applies committed entries, in order.
    ///
    /// # Errors
    /// The member must end: it can not become what the others are.
    fn apply(&self, entries: &[(u64, Content)]) -> Result<(), Stop>;

    /// The state as it is now.
    fn freeze(&self) -> Frozen;

    /// Reads a whole stored state, and changes nothing yet.
    ///
    /// # Errors
    /// The bytes are none that this release reads.
    fn read_state(self: Arc<Self>, bytes: &mut dyn BufRead) -> Result<Restored, Stop>;
}

/// Before a snapshot that could not be stored is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// As many entries are applied at once as are there, but no more than this.
const BATCH: usize = 4096;

/// The state machine, how far it is, and its snapshots.
#[derive(Clone)]
pub struct Applier {
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) snapshots: Snapshots,
    pub(crate) schedule: Arc<Schedule>,
    position: Arc<Mutex<Position>>,
}

#[derive(Clone, Default)]
struct Position {
    applied: Option<LogId>,
    membership: StoredMembership,
}

impl Applier {
    /// Brings the machine to the newest snapshot in the folder, if there is one.
    ///
    /// # Errors
    /// A snapshot is damaged, or of a newer release.
    pub fn open(machine: Arc<dyn Machine>, snapshots: Snapshots) -> Result<Self, SnapshotError> {
        let (mut position, schedule) = (Position::default(), Schedule::default());
        if let Some(file) = snapshots.newest()? {
            let (meta, restored) = file.read(&machine)?;
            restored().map_err(|source| file.unfit(source))?;
            schedule.stored(file.bytes()?);
            position = Position { applied: meta.last_log_id, membership: meta.last_membership };
        }
        let (schedule, position) = (Arc::new(schedule), Arc::new(Mutex::new(position)));
        Ok(Self { machine, snapshots, schedule, position })
    }

    /// The last entry that the machine has applied; 0 before the first.
    pub fn applied(&self) -> u64 {
        self.position().applied.map_or(0, |id| id.index)
    }

    /// The entry to be applied next. The first of a log has the index 0: it names those who found the group.
    pub(crate) fn next(&self) -> u64 {
        self.position().applied.map_or(0, |id| id.index + 1)
    }

    fn position(&self) -> Position {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn apply_batch(&self, batch: Batch) -> io::Result<()> {
        let Batch { last, membership, entries, responders } = batch;
        let Some(last) = last else { return Ok(()) };
        // In one step with the state: a snapshot must not name a position that is not its own.
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        self.machine.apply(&entries).map_err(io::Error::other)?;
        position.applied = Some(last);
        if let Some(membership) = membership {
            position.membership = membership;
        }
        drop(position);
        let length = |(_, content): &(u64, Content)| match content {
            Content::Command(command) => command.len() as u64,
            Content::Nothing | Content::Members(_) => 0,
        };
        let bytes = entries.iter().map(length).sum();
        self.schedule.applied(entries.len() as u64, bytes);
        responders.into_iter().for_each(|responder| responder.send(()));
        Ok(())
    }

    fn install(&self, meta: &SnapshotMeta, mut snapshot: SnapshotFile) -> io::Result<()> {
        let restored = match snapshot.restored.take() {
            Some(restored) => restored,
            None => snapshot.read(&self.machine).map_err(io::Error::other)?.1,
        };
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let before = position.applied.map_or(0, |id| id.index);
        restored().map_err(|source| io::Error::other(snapshot.unfit(source)))?;
        let kept = self.snapshots.keep(meta, snapshot).map_err(io::Error::other)?;
        self.schedule.taken();
        self.schedule.stored(kept.bytes().map_err(io::Error::other)?);
        *position = Position { applied: meta.last_log_id, membership: meta.last_membership.clone() };
        // In the words of etcd (`applySnapshot` in server/etcdserver/server.go), as those on snapshots below and in `network.rs`.
        tracing::info!(
            current_applied_index = before,
            incoming_leader_snapshot_index = meta.last_log_id.map_or(0, |id| id.index),
            incoming_leader_snapshot_term = meta.last_log_id.map_or(0, |id| id.leader_id.term),
            "applied snapshot"
        );
        Ok(())
    }

    /// Stores the state as it is now.
    async fn store(&self) -> Result<Snapshot, Box<dyn std::error::Error + Send + Sync>> {
        let (meta, frozen) = off_thread(|| self.freeze());
        let (snapshots, written) = (self.snapshots.clone(), meta.clone());
        let file = aside(move || snapshots.write(&written, frozen)).await??;
        self.schedule.stored(file.bytes()?);
        tracing::info!(snapshot_index = meta.last_log_id.map_or(0, |id| id.index), "saved snapshot to disk");
        Ok(Snapshot { meta, snapshot: file })
    }

    /// Where the state is, and the state: of one moment.
    pub(crate) fn freeze(&self) -> (SnapshotMeta, Frozen) {
        let position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let Position { applied, membership } = position.clone();
        self.schedule.taken();
        (SnapshotMeta { last_log_id: applied, last_membership: membership }, self.machine.freeze())
    }
}

#[derive(Default)]
pub(crate) struct Batch {
    last: Option<LogId>,
    membership: Option<StoredMembership>,
    entries: Vec<(u64, Content)>,
    responders: Vec<ApplyResponder<Types>>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The index behind its last entry, or its first.
    pub(crate) fn next(&self, first: u64) -> u64 {
        self.last.map_or(first, |last| last.index + 1)
    }

    pub(crate) fn entries(self) -> Vec<(u64, Content)> {
        self.entries
    }

    pub(crate) fn push(&mut self, (entry, responder): EntryResponder<Types>) {
        let content = match entry.payload {
            Payload::Normal(command) => Content::Command(command.bytes()),
            Payload::Membership(membership) => {
                let members = Members::of(&membership);
                self.membership = Some(StoredMembership::new(Some(entry.log_id), membership));
                Content::Members(members)
            }
            Payload::Blank => Content::Nothing,
        };
        self.last = Some(entry.log_id);
        self.entries.push((entry.log_id.index, content));
        self.responders.extend(responder);
    }
}

impl RaftStateMachine<Types> for Applier {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        let Position { applied, membership } = self.position();
        Ok((applied, membership))
    }

    async fn apply<S>(&mut self, entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + Send,
    {
        let mut chunks = entries.ready_chunks(BATCH);
        while let Some(chunk) = chunks.next().await {
            let mut batch = Batch::default();
            for item in chunk {
                batch.push(item?);
            }
            self.apply_batch(batch)?;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotFile) -> io::Result<()> {
        off_thread(|| self.install(meta, snapshot))
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        let Some(file) = self.snapshots.newest().map_err(io::Error::other)? else { return Ok(None) };
        let machine = self.machine.clone();
        match aside(move || checked(file, &machine)).await? {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(error) => {
                let error = with_causes(&error);
                tracing::error!(error, "a snapshot on this member's disk is damaged; it takes a new one in its place");
                self.build_snapshot().await.map(Some)
            }
        }
    }
}

/// A snapshot that may be sent: all of it is read first where another member has found it damaged.
fn checked(file: SnapshotFile, machine: &Arc<dyn Machine>) -> Result<Snapshot, SnapshotError> {
    let meta = match file.is_doubted() {
        true => {
            let (meta, _) = file.read(machine)?;
            file.doubt(false);
            meta
        }
        false => file.meta()?,
    };
    Ok(Snapshot { meta, snapshot: file })
}

impl RaftSnapshotBuilder<Types> for Applier {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        // openraft ends a member whose snapshot fails. But nothing depends on it yet: the log has all that it would hold.
        loop {
            match self.store().await {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) => {
                    let error = with_causes(&*error);
                    tracing::error!(error, "cannot store a snapshot; the log is kept, and it is tried again");
                    sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }
}
