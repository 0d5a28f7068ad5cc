//! Starts a member: its data directory, its log, its part in the group, and everything that it does by itself.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use consensus::{Applier, Group, GroupError, Settings, SnapshotError, Snapshots, both};
use disk::Folder;
use futures_util::future::join_all;
use proto::{LeaseId, MemberId, Release, Revision};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tonic::Status;
use wal::{Wal, WalError};

use super::{
    Counts, Limits, Member, Shared, auto_compaction, calling_back, comparing::Hashed, counts, downgrade, following,
    leading, lease_clock, proposing, publishing, reading, wire,
};
use crate::{
    config::{Config, FIXTURES, InitialState},
    features::Registry,
    host::{Host, Listener},
    identity::{self, Identity, IdentityError, founders},
    machine::{Machine, Proposals},
    peer::{self, Answers, Handshake, Links, Remote, Unapplied},
    transport::tls::ClientTls,
};

/// As many proposals wait to be sent.
const QUEUE: usize = 16_384;
/// Before the founders are asked again what they are.
const FOUNDERS_RETRY_INTERVAL: Duration = Duration::from_millis(100);

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
    /// It would found another cluster beside the data of an etcd.
    #[error(
        "{}: this is the data directory of an etcd, which this node cannot read; it is left as it is; give another --data-dir, and \
         copy the keys over with `etcdctl make-mirror`",
        path.display()
    )]
    Etcd { path: PathBuf },
    /// It would join a cluster that runs.
    #[error(
        "--initial-cluster-state=existing with an empty data directory {}: this release starts founders only; give new, \
         or the data directory that this member had",
        path.display()
    )]
    Joins { path: PathBuf },
}

/// The folder that etcd keeps in its data directory.
const ETCD_FOLDER: &str = "member";

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
pub struct Setup {
    /// The machine that it runs on.
    pub host: Arc<dyn Host>,
    pub config: Config,
    pub release: Release,
    /// What that knows of features.
    pub registry: Registry,
    /// Where other members reach it.
    pub listeners: Vec<Listener>,
    /// With what it reaches others by https.
    pub tls: Option<Arc<ClientTls>>,
}

/// Starts the member on the runtime that this is called on.
///
/// # Errors
/// [`StartError`]: nothing runs.
pub async fn start(setup: Setup) -> Result<Running, StartError> {
    let Setup { host, config, release, registry, listeners, tls } = setup;
    let config = Arc::new(config);
    let data_dir = data_dir(&*host, &config)?;
    let version = release.cluster_version();
    let (wal, Stored { identity, machine, applier }) = open(&*host, &*data_dir, &config, release, registry)?;
    let had_log = wal.state()?.last.is_some();
    let settings = Settings {
        heartbeat: config.heartbeat_interval,
        election: config.election_timeout,
        snapshot_count: config.snapshot_count,
        catchup_entries: config.snapshot_catchup_entries,
        reads: config.linearizable_reads,
    };
    let unapplied = Unapplied::read(&wal, version)?;
    let handshake = Handshake::new(identity.clone(), machine.clone(), had_log).with(unapplied);
    let (links, called_back) = Links::new(host.clone(), tls, handshake.clone());
    let (listeners, call_backs) = (listeners.into_iter().chain([called_back]).collect(), links.call_backs());
    let log_measured = wal.measured().clone();
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
        handshake: handshake.clone(),
        limits,
        clock: lease_clock::LeaseClock::new(host),
        counts: Counts::default(),
        log_measured,
        proposing,
        reading,
        asking,
    };
    let shared = Arc::new(shared);
    let ends = watch::Sender::default();
    let (answers, traffic) = (Arc::new(Peer { shared: shared.clone() }), shared.links.traffic().clone());
    tokio::spawn(peer::serve(handshake, group.clone(), answers, traffic, call_backs, listeners, ends.subscribe()));
    tokio::spawn(counts::count_leaders(shared.clone()));
    tokio::spawn(end_when_refused(shared.clone()));
    tokio::spawn(proposing::run(shared.clone(), queued));
    tokio::spawn(reading::run(shared.clone(), waiting));
    tokio::spawn(reading::lead(shared.clone(), asked));
    tokio::spawn(found(shared.clone(), config.clone()));
    tokio::spawn(leading::run(shared.clone(), config.clone()));
    tokio::spawn(following::run(shared.clone()));
    tokio::spawn(calling_back::run(shared.clone(), config.clone()));
    tokio::spawn(downgrade::run(shared.clone()));
    tokio::spawn(auto_compaction::run(shared.clone(), config.auto_compaction));
    tokio::spawn(shared.machine.clone().forget());
    tokio::spawn(publishing::run(shared.clone(), config, data_dir));
    Ok(Running { member: Member { shared }, group, ends })
}

/// What a member has in its data directory, besides its log.
struct Stored {
    identity: Arc<Identity>,
    machine: Machine,
    applier: Applier,
}

/// Opens the data directory that the flags name. Nothing may be written there before this was asked.
///
/// # Errors
/// [`StartError`]: what is in it, or is not, forbids that the member starts.
pub fn data_dir(host: &dyn Host, config: &Config) -> Result<Arc<dyn Folder>, StartError> {
    let path = &config.data_dir;
    let folder = |source| StartError::Folder { path: path.clone(), source };
    let joins = config.initial_cluster_state == InitialState::Existing;
    if joins && !host.has_data_dir(path).map_err(folder)? {
        return Err(StartError::Joins { path: path.clone() });
    }
    let data_dir = host.data_dir(path).map_err(folder)?;
    let names = data_dir.names().map_err(folder)?;
    if names.iter().any(|name| name == ETCD_FOLDER) && !data_dir.has(identity::NAME).map_err(folder)? {
        return Err(StartError::Etcd { path: path.clone() });
    }
    // Certificates are made before anything else is.
    if joins && names.iter().all(|name| name == FIXTURES) {
        return Err(StartError::Joins { path: path.clone() });
    }
    Ok(data_dir)
}

/// The log beside all else: each takes its time of disk and processor. The log's lock is for the whole data directory.
fn open(
    host: &dyn Host,
    data_dir: &dyn Folder,
    config: &Config,
    release: Release,
    registry: Registry,
) -> Result<(Wal, Stored), StartError> {
    let failed = |source| StartError::Folder { path: config.data_dir.clone(), source };
    let log = data_dir.folder("wal").map_err(failed)?;
    log.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => WalError::Locked { path: log.path("") }.into(),
        _ => failed(error),
    })?;
    let snapshots = data_dir.folder("snap").map_err(failed)?;
    // The log comes first, and who the member is comes last: what is missing of the three was there.
    let names = log.names().map_err(failed)?;
    let has_log = names.iter().any(|name| name.ends_with(wal::SUFFIX));
    let has_identity = data_dir.has(identity::NAME).map_err(failed)?;
    let missing = |part| StartError::from(IdentityError::Missing { path: data_dir.path(part) });
    if has_identity && !has_log {
        return Err(missing("wal"));
    }
    let has_snapshot = Snapshots::open(snapshots.clone())?.has_any()?;
    let wal_of_new = match has_identity {
        true => None,
        false => Some(host.open_log(log.clone())?),
    };
    if let Some(wal) = &wal_of_new
        && (has_snapshot || wal.state()?.last.is_some() || wal.vote()?.is_some())
    {
        return Err(missing(identity::NAME));
    }
    let (wal, stored) = both(
        || wal_of_new.map_or_else(|| host.open_log(log.clone()), Ok),
        || {
            let identity = Arc::new(Identity::load(data_dir, &*log, config, release.clone())?);
            let proposals = Proposals::new(identity.member, identity.starts);
            let machine = Machine::warning_after(config.warning_apply, release, registry, proposals);
            let applier = Applier::open(Arc::new(machine.clone()), Snapshots::open(snapshots)?)?;
            Ok::<_, StartError>(Stored { identity, machine, applier })
        },
    );
    let (wal, stored) = (wal?, stored?);
    // What the log has purged is in the snapshot that it was purged for.
    if let Some(purged) = wal.state()?.purged {
        if !has_snapshot {
            return Err(missing("snap"));
        }
        if stored.applier.applied() < purged.index.0 {
            return Err(IdentityError::Older { path: data_dir.path("snap") }.into());
        }
    }
    Ok((wal, stored))
}

/// A member that another one tells to have lost its data directory ends: it has no part in what goes on, and founds nothing.
async fn end_when_refused(shared: Arc<Shared>) {
    let why = shared.links.refused().await;
    shared.group.end(why);
}

/// What other founders say.
#[derive(Clone, Copy, Debug, Default)]
struct Founders {
    /// They have no log yet.
    new: usize,
    /// They have.
    old: usize,
    /// Of those, such as are of a cluster that the same founders have restored from a snapshot, or that another list has founded.
    elsewhere: usize,
}

impl Shared {
    /// Tells the others that this member is there, so that they need not wait for their next try; and hears what they are.
    async fn announce(&self, members: &BTreeMap<u64, String>) -> Founders {
        let others = members.iter().filter(|(id, _)| **id != self.identity.member.0);
        let answers = others.map(|(id, address)| async { (*id, self.tell_of_start(*id, address).await) });
        let mut founders = Founders::default();
        for (id, answer) in join_all(answers).await {
            match answer {
                Ok(remote) if remote.is_new => founders.new += 1,
                Ok(_) => founders.old += 1,
                Err(status) if self.handshake.other_cluster(MemberId(id), status.metadata()).is_some() => {
                    founders.old += 1;
                    founders.elsewhere += 1;
                }
                Err(_) => {}
            }
        }
        founders
    }

    async fn tell_of_start(&self, id: u64, address: &str) -> Result<Remote, Status> {
        let peer = consensus::Peer { id, address: address.to_owned() };
        let told = async { self.links.other(&peer)?.started(self.links.call(id, wire::Nothing {})).await };
        let answer = timeout(self.limits.round, told).await.map_err(|_| Status::unavailable("it does not answer"))?;
        self.links.answerer(id, &self.links.heed(id, answer)?)
    }
}

/// Makes the first membership, once a majority of the founders, and all that answer, say that they are new, as this one is: one
/// that has lost its data founds nothing beside a cluster that is there. The first by id does it at once, the others when
/// nobody has called them for a while, so that they do not all stand for election at the same moment.
async fn found(shared: Arc<Shared>, config: Arc<Config>) {
    let group = &shared.group;
    let founders = founders(&config);
    let is_first = founders.first().is_some_and(|(_, name, _)| *name == config.name);
    let members: BTreeMap<_, _> = founders.into_iter().map(|(id, _, urls)| (id.0, urls.join(","))).collect();
    // Who is away will find this member by itself.
    let mut heard = shared.announce(&if shared.handshake.is_new() { members.clone() } else { group.members() }).await;
    let mut raft_status = group.raft_status();
    if !is_first {
        let _ =
            timeout(config.election_timeout, raft_status.wait_for(|raft_status| raft_status.leader.is_some())).await;
    }
    let mut was_said = false;
    while shared.handshake.is_new() {
        if heard.elsewhere > 0 && !was_said {
            tracing::warn!(
                "founds no cluster: a founder is of another cluster already. If that was restored from a snapshot, restore this \
                 member from the same file (`node snapshot restore`); else give the same --initial-cluster and \
                 --initial-cluster-token"
            );
            was_said = true;
        }
        if heard.old == 0 && 2 * (heard.new + 1) > members.len() {
            if let Err(error) = group.found(&members).await {
                tracing::error!(%error, "cannot found the cluster");
            }
            return;
        }
        if timeout(FOUNDERS_RETRY_INTERVAL, raft_status.wait_for(|status| status.leader.is_some())).await.is_ok() {
            return;
        }
        heard = shared.announce(&members).await;
    }
}

/// What a member does for others.
struct Peer {
    shared: Arc<Shared>,
}

impl Answers for Peer {
    async fn propose(&self, from: MemberId, proposals: Vec<Bytes>) -> Result<Vec<u32>, Status> {
        let read = proposals.iter().try_for_each(|proposal| self.shared.machine.may_propose(from, proposal));
        read.map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(self.shared.propose_here(proposals).await)
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

    async fn hash(&self, at: Revision) -> Result<wire::HashOf, Status> {
        let Hashed { hash, compacted } = self.shared.hash_here(at).await?;
        Ok(wire::HashOf { hash, compacted: compacted.0, revision: at.0 })
    }
}
