//! The state machine as this crate sees it, and the adapter that openraft drives it by.

use std::{
    io::{self, BufRead, Write},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use openraft::storage::{ApplyResponder, EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

use crate::{
    snapshots::{SnapshotError, SnapshotFile, Snapshots},
    types::{Command, LogId, Payload, Snapshot, SnapshotMeta, StoredMembership, Types},
};

/// Why a state machine cannot go on.
pub type Stop = Box<dyn std::error::Error + Send + Sync>;

/// Writes a state, as it was at one moment, to wherever it is wanted.
pub type Frozen = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

/// What a log's commands are for.
pub trait Machine: Send + Sync + 'static {
    /// Applies committed entries, in order; one without a command says nothing to it.
    ///
    /// # Errors
    /// The member must end: it can not become what the others are.
    fn apply(&self, entries: &[(u64, Option<Bytes>)]) -> Result<(), Stop>;

    /// The state as it is now.
    fn freeze(&self) -> Frozen;

    /// Puts a stored state in place of this one.
    ///
    /// # Errors
    /// The bytes are none that this release reads. Nothing was changed.
    fn restore(&self, bytes: &mut dyn BufRead) -> Result<(), Stop>;
}

/// As many entries are applied at once as are there, but no more than this.
const BATCH: usize = 4096;

/// Does what takes long, or waits for a lock, while another thread goes on with raft's tasks: without heartbeats the
/// others would elect another leader.
pub fn off_thread<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

/// The state machine, how far it is, and its snapshots.
#[derive(Clone)]
pub struct Applier {
    machine: Arc<dyn Machine>,
    pub(crate) snapshots: Snapshots,
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
        let mut position = Position::default();
        if let Some(file) = snapshots.newest()? {
            let meta = file.read(|bytes| machine.restore(bytes))?;
            position = Position { applied: meta.last_log_id, membership: meta.last_membership };
        }
        Ok(Self { machine, snapshots, position: Arc::new(Mutex::new(position)) })
    }

    fn position(&self) -> Position {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn apply_batch(&self, batch: Batch) -> io::Result<()> {
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
        responders.into_iter().for_each(|responder| responder.send(()));
        Ok(())
    }

    fn install(&self, meta: &SnapshotMeta, snapshot: SnapshotFile) -> io::Result<()> {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        snapshot.read(|bytes| self.machine.restore(bytes)).map_err(io::Error::other)?;
        self.snapshots.keep(meta, snapshot).map_err(io::Error::other)?;
        *position = Position { applied: meta.last_log_id, membership: meta.last_membership.clone() };
        Ok(())
    }

    /// Where the state is, and the state: of one moment.
    fn freeze(&self) -> (SnapshotMeta, Frozen) {
        let position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let Position { applied, membership } = position.clone();
        (SnapshotMeta { last_log_id: applied, last_membership: membership }, self.machine.freeze())
    }
}

#[derive(Default)]
struct Batch {
    last: Option<LogId>,
    membership: Option<StoredMembership>,
    entries: Vec<(u64, Option<Bytes>)>,
    responders: Vec<ApplyResponder<Types>>,
}

impl Batch {
    fn push(&mut self, (entry, responder): EntryResponder<Types>) {
        let command = match entry.payload {
            Payload::Normal(Command(bytes)) => Some(bytes),
            Payload::Membership(membership) => {
                self.membership = Some(StoredMembership::new(Some(entry.log_id), membership));
                None
            }
            Payload::Blank => None,
        };
        self.last = Some(entry.log_id);
        self.entries.push((entry.log_id.index, command));
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
        let meta = file.meta().map_err(io::Error::other)?;
        Ok(Some(Snapshot { meta, snapshot: file }))
    }
}

impl RaftSnapshotBuilder<Types> for Applier {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        let (meta, frozen) = off_thread(|| self.freeze());
        let (snapshots, written) = (self.snapshots.clone(), meta.clone());
        let write = move || snapshots.write(&written, frozen);
        let file = tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?.map_err(io::Error::other)?;
        Ok(Snapshot { meta, snapshot: file })
    }
}
