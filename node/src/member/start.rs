//! Starts a member: its data directory, its log, its part in the group, and everything that it does by itself.

use std::{fs, io, panic::resume_unwind, path::PathBuf, sync::Arc, thread, time::Duration};

use bytes::Bytes;
use consensus::{Applier, Group, GroupError, Settings, SnapshotError, Snapshots};
use futures_util::future::join_all;
use proto::{LeaseId, Release};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    time::timeout,
};
use tonic::Status;
use wal::{Options, RealDisk, Wal, WalError};

use super::{Limits, Member, Shared, downgrade, leading, proposing, publishing, reading, wire};
use crate::{
    config::{Config, InitialState},
    features::Registry,
    identity::{Identity, IdentityError, founders},
    machine::{Machine, Proposals},
    peer::{self, Answers, Handshake, Links},
};

/// As many proposals wait to be sent.
const QUEUE: usize = 16_384;

/// Why a member does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its data directory cannot be made.
    #[error("cannot make the data directory {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// Who it is cannot be said.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its log cannot be used.
    #[error(transparent)]
    Log(#[from] WalError),
    /// Its snapshots cannot be used.
    #[error(transparent)]
    Snapshots(#[from] SnapshotError),
    /// Raft does not start.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// It would join a cluster that runs.
    #[error(
        "--initial-cluster-state=existing with an empty data directory {}: this release starts founders only; give new, \
         or the data directory that this member had",
        path.display()
    )]
    Joins { path: PathBuf },
}

/// A member that runs, and what ends it.
pub struct Running {
    pub member: Member,
    group: Group,
    ends: watch::Sender<bool>,
}

impl Running {
    /// Resolves when raft has stopped by itself, with the reason: then the member must end.
    pub async fn failed(&self) -> String {
        let mut raft_status = self.group.raft_status();
        // Without a sender there is nobody left to say more.
        let _ = raft_status.wait_for(|raft_status| !raft_status.is_running).await;
        self.group.fault().unwrap_or_else(|| "raft has stopped".into())
    }

    /// Ends it. What was acknowledged is on disk already.
    pub async fn end(self) {
        self.ends.send_replace(true);
        self.group.shutdown().await;
    }
}

/// What a member is started with.
#[derive(Debug)]
pub struct Setup {
    pub config: Config,
    pub release: Release,
    /// What that knows of features.
    pub registry: Registry,
    /// Where other members reach it.
    pub listeners: Vec<TcpListener>,
}

/// Starts the member on the runtime that this is called on.
///
/// # Errors
/// [`StartError`]: nothing runs.
pub async fn start(setup: Setup) -> Result<Running, StartError> {
    let Setup { config, release, registry, listeners } = setup;
    let config = Arc::new(config);
    let folder = &config.data_dir;
    let is_new = !folder.join("identity").exists();
    if is_new && config.initial_cluster_state == InitialState::Existing {
        return Err(StartError::Joins { path: folder.clone() });
    }
    fs::create_dir_all(folder).map_err(|source| StartError::Folder { path: folder.clone(), source })?;
    let (wal, Stored { identity, machine, applier }) = open(&config, release, registry)?;
    let had_log = wal.state()?.last.is_some();
    let settings = Settings {
        heartbeat: config.heartbeat_interval,
        election: config.election_timeout,
        snapshot_count: config.snapshot_count,
    };
    let handshake = Handshake::new(identity.clone(), machine.clone(), had_log);
    let links = Links::new(handshake.clone());
    let group = Group::open(identity.member.0, settings, wal, applier, Arc::new(links.clone())).await?;
    let (proposing, queued) = mpsc::channel(QUEUE);
    let (reading, waiting) = mpsc::channel(QUEUE);
    let (asking, asked) = mpsc::channel(QUEUE);
    let limits = Limits {
        request: Duration::from_secs(5) + 2 * config.election_timeout,
        round: config.election_timeout,
        recent: 3 * config.heartbeat_interval,
        election: config.election_timeout,
    };
    let shared = Shared {
        identity,
        machine,
        group: group.clone(),
        links,
        limits,
        clock: Default::default(),
        received: Default::default(),
        proposing,
        reading,
        asking,
    };
    let shared = Arc::new(shared);
    let ends = watch::Sender::default();
    for listener in listeners {
        let (handshake, group, ended) = (handshake.clone(), group.clone(), ends.subscribe());
        let (answers, received) = (Arc::new(Peer { shared: shared.clone() }), shared.received.clone());
        let serving = peer::serve(handshake, group, answers, received, listener, ended);
        tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "cannot serve other members any more");
            }
        });
    }
    tokio::spawn(announce(shared.clone()));
    tokio::spawn(proposing::run(shared.clone(), queued));
    tokio::spawn(reading::run(shared.clone(), waiting));
    tokio::spawn(reading::lead(shared.clone(), asked));
    tokio::spawn(found(group.clone(), config.clone()));
    tokio::spawn(leading::run(shared.clone(), config.clone()));
    tokio::spawn(downgrade::run(shared.clone()));
    tokio::spawn(publishing::run(shared.clone(), config));
    Ok(Running { member: Member { shared }, group, ends })
}

/// What a member has in its data directory, besides its log.
struct Stored {
    identity: Arc<Identity>,
    machine: Machine,
    applier: Applier,
}

/// The log beside all else: each takes its time of disk and processor. The log's lock is for the whole data directory.
fn open(config: &Config, release: Release, registry: Registry) -> Result<(Wal, Stored), StartError> {
    let disk = RealDisk::lock(&config.data_dir.join("wal"))?;
    let (wal, stored) = thread::scope(|scope| {
        let wal = scope.spawn(|| Wal::open_on(Arc::new(disk), Options::default()));
        let stored = Stored::open(config, release, registry);
        (wal.join().unwrap_or_else(|panic| resume_unwind(panic)), stored)
    });
    Ok((wal?, stored?))
}

impl Stored {
    fn open(config: &Config, release: Release, registry: Registry) -> Result<Self, StartError> {
        let identity = Arc::new(Identity::load(config, release.clone())?);
        let machine = Machine::new(release, registry, Proposals::new(identity.member, identity.starts));
        let snapshots = Snapshots::open(&config.data_dir.join("snap"))?;
        let applier = Applier::open(Arc::new(machine.clone()), snapshots)?;
        Ok(Self { identity, machine, applier })
    }
}

/// Tells the others that this member is there, so that it need not wait for their next try. Who is away himself will
/// find it.
async fn announce(shared: Arc<Shared>) {
    let members = shared.group.members();
    let others = members.keys().filter(|id| **id != shared.identity.member.0);
    join_all(others.map(|id| shared.tell_of_start(*id))).await;
}

impl Shared {
    async fn tell_of_start(&self, id: u64) -> Result<(), Status> {
        let peer = self.peer(id).ok_or_else(|| Status::not_found("no member any more"))?;
        self.links.other(&peer)?.started(self.links.call(id, wire::Nothing {})).await?;
        Ok(())
    }
}

/// Makes the first membership, which every founder may: the first by id at once, the others when nobody has called them
/// for a while, so that they do not all stand for election at the same moment.
async fn found(group: Group, config: Arc<Config>) {
    let founders = founders(&config);
    let is_first = founders.first().is_some_and(|(_, name, _)| *name == config.name);
    let mut raft_status = group.raft_status();
    if !is_first {
        let _ =
            timeout(config.election_timeout, raft_status.wait_for(|raft_status| raft_status.leader.is_some())).await;
    }
    let members = founders.into_iter().map(|(id, _, urls)| (id.0, urls.join(","))).collect();
    match group.is_founded().await {
        Ok(false) => {
            if let Err(error) = group.found(&members).await {
                tracing::error!(%error, "cannot found the cluster");
            }
        }
        Ok(true) => {}
        Err(error) => tracing::error!(%error, "cannot found the cluster"),
    }
}

/// What a member does for others.
struct Peer {
    shared: Arc<Shared>,
}

impl Answers for Peer {
    async fn propose(&self, proposals: Vec<Bytes>) -> Vec<u32> {
        self.shared.propose_here(proposals).await
    }

    async fn read_index(&self) -> Result<u64, Status> {
        self.shared.read_index_here().await
    }

    async fn renew(&self, lease: LeaseId) -> Result<i64, Status> {
        self.shared.renew_here(lease).await
    }

    async fn left(&self, lease: LeaseId) -> Result<i64, Status> {
        self.shared.left_here(lease).await
    }
}
