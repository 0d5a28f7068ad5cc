//! Starts a member: its data directory, its log, its part in the group, and everything that it does by itself.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use consensus::{Applier, Group, GroupError, Settings, SnapshotError, Snapshots, both};
use disk::Folder;
use proto::{ClusterId, ClusterVersion, LeaseId, MemberId, Release, Revision};
use tokio::{
    sync::{Mutex, mpsc, watch},
    time::timeout,
};
use tonic::Status;
use wal::{Wal, WalError};

use super::{
    Counts, Limits, Member, Shared, auto_compaction, calling_back, changing, comparing::Hashed, counts, downgrade,
    following, founding, leading, lease_clock, proposing, publishing, reading, wire,
};
use crate::{
    cluster::membership::Rules,
    config::{Config, InitialState},
    features::Registry,
    host::{Host, Listener},
    identity::{self, Identity, IdentityError},
    machine::{Foreign, Machine, Proposals},
    migrate,
    peer::{self, Answers, Handshake, JoinError, Links, Unapplied},
    state::State,
    transport::tls::ClientTls,
};

/// For a majority to confirm what a member that joins is told.
const CONFIRM: Duration = Duration::from_secs(1);
/// As many proposals wait to be sent.
const QUEUE: usize = 16_384;

/// Why a member does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its data directory cannot be made.
    #[error("cannot use the data directory: {}: {source}", path.display())]
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
    /// It was put at a lower version offline, and has not run at that since: the others may not have gone down.
    #[error(
        "{}: `node migrate` made it fit for release {version}, and this is {release}: start this member, and all others, with release \
         {version} first",
        path.display()
    )]
    Migrated { path: PathBuf, version: ClusterVersion, release: Release },
    /// What lies before that is in its log still, and must be sent to nobody.
    #[error(
        "{}: `node migrate --target-version {version}` was interrupted: run it again, with the release that it was run with",
        path.display()
    )]
    HalfMigrated { path: PathBuf, version: ClusterVersion },
    /// It would join a cluster that runs, and cannot.
    #[error(transparent)]
    Join(#[from] JoinError),
}

/// The folder that etcd keeps in its data directory.
const ETCD_FOLDER: &str = "member";

/// Why a member ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It is a member no more.
    Removed,
    /// It cannot go on.
    Failed(String),
}

/// A member that runs, and what ends it.
pub struct Running {
    pub member: Member,
    group: Group,
    ends: watch::Sender<bool>,
}

impl Running {
    /// Resolves when raft has stopped by itself: then the member must end.
    pub async fn ended(&self) -> End {
        let mut raft_status = self.group.raft_status();
        // Without a sender there is nobody left to say more.
        let _ = raft_status.wait_for(|raft_status| !raft_status.is_running).await;
        match self.member.shared.is_removed.load(Ordering::Relaxed) {
            true => End::Removed,
            false => End::Failed(self.group.fault().unwrap_or_else(|| "raft has stopped".into())),
        }
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
    let joins = config.initial_cluster_state == InitialState::Existing;
    let has_begun = data_dir.has(identity::NAME).map_err(|source| failed(&config, source))?;
    let mut joined = match joins && !has_begun {
        true => Some(founding::joined(&host, tls.as_ref(), &config).await?),
        false => None,
    };
    let born = joined.as_ref().map(|joined| (joined.cluster, joined.member));
    let (wal, Stored { identity, machine, applier }) = open(&*host, &*data_dir, &config, release, registry, born)?;
    let had_log = wal.state()?.last.is_some();
    if !had_log && applier.applied() == 0 {
        match joins {
            false => identity.check(&config)?,
            // It was ended before it had heard of anything.
            true if has_begun => {
                let again = founding::joined(&host, tls.as_ref(), &config).await?;
                identity.check_joined(&config, (again.cluster, again.member))?;
                joined = Some(again);
            }
            true => {}
        }
    }
    let settings = Settings {
        heartbeat: config.heartbeat_interval,
        election: config.election_timeout,
        snapshot_count: config.snapshot_count,
        catchup_entries: config.snapshot_catchup_entries,
        reads: config.linearizable_reads,
    };
    let unapplied = Unapplied::read(&wal, version)?;
    let handshake =
        Handshake::new(identity.clone(), machine.clone(), had_log).with(unapplied).demanding(config.join_policy);
    let (links, called_back) = Links::new(host.clone(), tls, handshake.clone());
    let (listeners, call_backs) = (listeners.into_iter().chain([called_back]).collect(), links.call_backs());
    let log_measured = wal.measured().clone();
    let group = Group::open(identity.member.0, settings, wal, applier, Arc::new(links.clone())).await?;
    // Founders have no cluster that could let them in.
    match handshake.is_new() && !joins {
        true => group.may_stand(true),
        false => handshake.wait(),
    }
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
        rules: Rules { is_strict: config.strict_reconfig_check, max_learners: config.max_learners, registry },
        server_features: config.server_features.clone(),
        changing: Mutex::default(),
        clock: lease_clock::LeaseClock::new(host),
        counts: Counts::default(),
        log_measured,
        is_removed: AtomicBool::default(),
        proposing,
        reading,
        asking,
    };
    let shared = Arc::new(shared);
    let ends = watch::Sender::default();
    let first = Arc::new(joined.map_or_else(|| founding::addresses(&config), |joined| joined.members));
    let (answers, traffic) = (Arc::new(Peer { shared: shared.clone() }), shared.links.traffic().clone());
    tokio::spawn(peer::serve(handshake, group.clone(), answers, traffic, call_backs, listeners, ends.subscribe()));
    tokio::spawn(counts::count_leaders(shared.clone()));
    tokio::spawn(end_when_refused(shared.clone()));
    tokio::spawn(proposing::run(shared.clone(), queued));
    tokio::spawn(reading::run(shared.clone(), waiting));
    tokio::spawn(reading::lead(shared.clone(), asked));
    tokio::spawn(founding::found(shared.clone(), config.clone(), first.clone()));
    tokio::spawn(leading::run(shared.clone(), config.clone()));
    tokio::spawn(following::run(shared.clone()));
    tokio::spawn(calling_back::run(shared.clone(), first));
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

fn failed(config: &Config, source: io::Error) -> StartError {
    StartError::Folder { path: config.data_dir.clone(), source }
}

/// Opens the data directory that the flags name. Nothing may be written there before this was asked.
///
/// # Errors
/// [`StartError`]: what is in it, or is not, forbids that the member starts.
pub fn data_dir(host: &dyn Host, config: &Config) -> Result<Arc<dyn Folder>, StartError> {
    let path = &config.data_dir;
    let folder = |source| failed(config, source);
    let data_dir = host.data_dir(path).map_err(folder)?;
    let names = data_dir.names().map_err(folder)?;
    if names.iter().any(|name| name == ETCD_FOLDER) && !data_dir.has(identity::NAME).map_err(folder)? {
        return Err(StartError::Etcd { path: path.clone() });
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
    born: Option<(ClusterId, MemberId)>,
) -> Result<(Wal, Stored), StartError> {
    let failed_at = |part| move |source| StartError::Folder { path: data_dir.path(part), source };
    let failed = failed_at("");
    let log = data_dir.folder("wal").map_err(failed_at("wal"))?;
    log.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => WalError::Locked { path: log.path("") }.into(),
        _ => failed_at("wal")(error),
    })?;
    let snapshots = data_dir.folder("snap").map_err(failed_at("snap"))?;
    // The log comes first, and who the member is comes last: what is missing of the three was there.
    let names = log.names().map_err(failed)?;
    let has_log = names.iter().any(|name| name.ends_with(wal::SUFFIX));
    let has_identity = data_dir.has(identity::NAME).map_err(failed)?;
    let missing = |part| StartError::from(IdentityError::Missing { path: data_dir.path(part) });
    if has_identity && !has_log {
        return Err(missing("wal/*.wal"));
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
            let identity = Arc::new(Identity::load(data_dir, &*log, config, release.clone(), born)?);
            let proposals = Proposals::new(identity.member, identity.starts);
            let machine = Machine::warning_after(config.warning_apply, release, registry, proposals);
            let applier = Applier::open(Arc::new(machine.clone()), Snapshots::open(snapshots)?)?;
            Ok::<_, StartError>(Stored { identity, machine, applier })
        },
    );
    let (wal, stored) = (wal?, stored?);
    stored.machine.read(|state| stored.identity.check_stored(data_dir, &state.cluster))?;
    let is_marked = data_dir.has(migrate::MARK).map_err(failed)?;
    let lowered = |state: &State| state.cluster.version.filter(|_| state.cluster.was_lowered());
    if let Some(version) = stored.machine.read(lowered) {
        let (path, release) = (config.data_dir.clone(), stored.identity.release.clone());
        if is_marked && release.cluster_version() > version {
            return Err(StartError::Migrated { path, version, release });
        }
        if is_marked && !wal.entries(..=stored.applier.applied(), 1)?.is_empty() {
            return Err(StartError::HalfMigrated { path, version });
        }
    }
    if is_marked {
        data_dir.remove(migrate::MARK).and_then(|()| data_dir.sync_names()).map_err(failed)?;
    }
    // What the log has purged is in the snapshot that it was purged for.
    if let Some(purged) = wal.state()?.purged {
        if !has_snapshot {
            return Err(missing("snap/*.snap"));
        }
        if stored.applier.applied() < purged.index.0 {
            return Err(IdentityError::Older { path: data_dir.path("snap") }.into());
        }
    }
    Ok((wal, stored))
}

/// A member that another one tells to be removed, or to have lost its data directory, ends: it has no part in what goes on, and founds nothing.
async fn end_when_refused(shared: Arc<Shared>) {
    let told = shared.links.refused().await;
    shared.end(&told);
}

/// What a member does for others.
struct Peer {
    shared: Arc<Shared>,
}

impl Answers for Peer {
    async fn propose(&self, from: MemberId, proposals: Vec<Bytes>) -> Result<Vec<u32>, Status> {
        let (mut places, mut taken) = (Vec::new(), Vec::new());
        for (place, proposal) in (0..).zip(proposals) {
            match self.shared.machine.may_propose(from, &proposal) {
                Ok(()) => {
                    places.push(place);
                    taken.push(proposal);
                }
                // Of the others in its batch it says nothing. Nobody would apply it; or it led when it proposed this.
                Err(Foreign::Early { .. } | Foreign::OfTheLeader) => {}
                Err(error) => return Err(Status::invalid_argument(error.to_string())),
            }
        }
        let again = self.shared.propose_here(taken).await;
        Ok(again.into_iter().filter_map(|at| places.get(at as usize).copied()).collect())
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

    async fn change(&self, change: wire::Change) -> Result<wire::Changed, Status> {
        Ok(self.shared.change_for(&changing::read(change)?).await)
    }

    async fn joined(&self) -> Result<wire::Joined, Status> {
        let member = Member { shared: self.shared.clone() };
        // Without the one that it waits for it is led by nobody. So may others be that wait for whoever asks.
        let is_confirmed = member.awaited_voter().is_some()
            || timeout(CONFIRM, member.linearize()).await.is_ok_and(|read| read.is_ok());
        let appended = member.appended_voter();
        let members = member.read(|state| state.cluster.members.clone());
        // It may have been applied since.
        let appended = appended.filter(|(id, _)| !members.contains_key(id));
        let members = members.into_iter().map(|(id, member)| (id, member.peer_urls)).chain(appended);
        let listed = |(id, peer_urls): (MemberId, Vec<String>)| wire::Listed { id: id.0, peer_urls };
        let (cluster, members) = (self.shared.identity.cluster.0, members.map(listed).collect::<Vec<_>>());
        if members.is_empty() {
            return Err(Status::unavailable("this member knows no cluster yet"));
        }
        Ok(wire::Joined { cluster, members, is_unconfirmed: !is_confirmed })
    }

    async fn hash(&self, at: Revision) -> Result<wire::HashOf, Status> {
        let Hashed { hash, compacted } = self.shared.hash_here(at).await?;
        Ok(wire::HashOf { hash, compacted: compacted.0, revision: at.0 })
    }
}
