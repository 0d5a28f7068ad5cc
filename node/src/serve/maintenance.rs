//! etcd's `Maintenance`.

use crc32c::crc32c_append;
use futures_util::stream::BoxStream;
use proto::{
    ClusterVersion, MemberId,
    etcdserverpb::{
        AlarmMember, AlarmRequest, AlarmResponse, AlarmType, DefragmentRequest, DefragmentResponse, DowngradeInfo,
        DowngradeRequest, DowngradeResponse, FeatureGateStatusRequest, FeatureGateStatusResponse, HashKvRequest,
        HashKvResponse, HashRequest, HashResponse, MoveLeaderRequest, MoveLeaderResponse, SnapshotRequest,
        SnapshotResponse, StatusRequest, StatusResponse, alarm_request::AlarmAction, maintenance_server::Maintenance,
    },
};
use tokio::time::Instant;
use tonic::{Request, Response, Status, async_trait};

use super::{context::ServiceContext, feature, snapshot};
use crate::{api_error::ApiError, entry::EntryKind, state::State};

/// The release that first told of the version of its stored data, and from what revision a hash is.
const FIRST_WITH_STORAGE_VERSION: ClusterVersion = ClusterVersion { major: 3, minor: 6 };

/// What etcd counts as the least.
const PAGE_BYTES: u64 = 4096;

#[async_trait]
impl Maintenance for ServiceContext {
    /// To ask which stand is a read here, where etcd proposes it.
    async fn alarm(&self, request: Request<AlarmRequest>) -> Result<Response<AlarmResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        if request.action() != AlarmAction::Get {
            return self.outcome(self.propose_request(requires, request, EntryKind::Alarm).await?);
        }
        let listed = |state: &State| {
            let asked = state.alarms.iter().filter(|(_, kind)| request.alarm == 0 || *kind == request.alarm);
            let alarms = asked.map(|(member, kind)| AlarmMember { member_id: member.0, alarm: *kind }).collect();
            Ok((state.keys.revision().0, alarms))
        };
        let (revision, alarms) = self.read(&requires, listed).await?;
        Ok(Response::new(AlarmResponse { header: self.header(revision), alarms }))
    }

    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        self.admit_to_any(request.metadata())?;
        Ok(Response::new(self.status_now()))
    }

    /// What was freed is free at once; there is nothing to do.
    async fn defragment(&self, request: Request<DefragmentRequest>) -> Result<Response<DefragmentResponse>, Status> {
        self.admit(request.metadata()).await?;
        Ok(Response::new(DefragmentResponse { header: self.newest_header() }))
    }

    async fn hash(&self, request: Request<HashRequest>) -> Result<Response<HashResponse>, Status> {
        self.admit(request.metadata()).await?;
        let _turn = self.member.machine().turn_to_hash().await;
        let began = Instant::now();
        let (revision, hash) = self.scan(|state| (state.keys.revision().0, hash(state))).await?;
        self.member.counts().hashes.whole.observe(began.elapsed());
        Ok(Response::new(HashResponse { header: self.header(revision), hash }))
    }

    async fn hash_kv(&self, request: Request<HashKvRequest>) -> Result<Response<HashKvResponse>, Status> {
        let (metadata, _, HashKvRequest { revision }) = request.into_parts();
        self.admit(&metadata).await?;
        let machine = self.member.machine();
        let mut hash = match machine.hash_of_compaction(revision) {
            Some(hash) => hash,
            None => {
                let _turn = machine.turn_to_hash().await;
                let began = Instant::now();
                let hash = self.scan(move |state| state.keys.hash_kv(revision)).await??;
                self.member.counts().hashes.at_revision.observe(began.elapsed());
                hash
            }
        };
        if !self.has_storage_version() {
            hash.hash_revision = 0;
        }
        self.answer(hash)
    }

    type SnapshotStream = BoxStream<'static, Result<SnapshotResponse, Status>>;

    async fn snapshot(&self, request: Request<SnapshotRequest>) -> Result<Response<Self::SnapshotStream>, Status> {
        self.admit_to_any(request.metadata())?;
        let place = snapshot::place().await;
        let state = self.member.frozen();
        let form = state.form(self.member.machine().registry());
        let version = self.storage_version(&state).unwrap_or_default();
        let header = self.header(state.keys.revision().0);
        let revision = state.keys.revision().0;
        tracing::info!(
            revision,
            "sends a client a snapshot: `node snapshot restore` reads the file, `etcdutl` does not"
        );
        Ok(Response::new(Box::pin(snapshot::stream(state, form, version, header, place))))
    }

    async fn move_leader(&self, request: Request<MoveLeaderRequest>) -> Result<Response<MoveLeaderResponse>, Status> {
        let (metadata, _, MoveLeaderRequest { target_id }) = request.into_parts();
        self.admit(&metadata).await?;
        if self.member.raft_status().leader != Some(self.member.identity().member) {
            return Err(ApiError::NotLeader.into());
        }
        self.member.move_leader(MemberId(target_id)).await?;
        Ok(Response::new(MoveLeaderResponse { header: self.newest_header() }))
    }

    async fn downgrade(&self, request: Request<DowngradeRequest>) -> Result<Response<DowngradeResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        self.admit(&metadata).await?;
        Ok(Response::new(self.downgrade_step(&request).await?))
    }

    async fn feature_gate_status(
        &self,
        request: Request<FeatureGateStatusRequest>,
    ) -> Result<Response<FeatureGateStatusResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        if !self.has_gates() {
            let words = "unknown method FeatureGateStatus for service etcdserverpb.Maintenance";
            return Err(Status::unimplemented(words));
        }
        let requires = self.admit(&metadata).await?;
        Ok(Response::new(self.feature_gate(&requires, &request).await?))
    }
}

impl ServiceContext {
    /// What is on, once this member has applied all that was committed when it was asked.
    pub(super) async fn feature_gate(
        &self,
        requires: &[String],
        request: &FeatureGateStatusRequest,
    ) -> Result<FeatureGateStatusResponse, Status> {
        let registry = self.member.machine().registry();
        let look = |state: &State| Ok((state.keys.revision().0, feature::status(state, registry, request)));
        let (revision, features) = self.read(requires, look).await?;
        Ok(FeatureGateStatusResponse { header: self.header(revision), features })
    }

    fn status_now(&self) -> StatusResponse {
        let raft_status = self.member.raft_status();
        let no_leader = raft_status.leader.is_none().then(|| ApiError::NoLeader.to_string());
        let mut status = self.member.read(|state| StatusResponse {
            header: state.keys.header(),
            version: self.member.identity().release.to_string(),
            // etcd never has less than a page, and etcdctl divides by it.
            db_size: state.keys.size_bytes().max(PAGE_BYTES) as i64,
            db_size_in_use: state.keys.size_bytes() as i64,
            leader: raft_status.leader.map_or(0, |leader| leader.0),
            // Known before the state was looked at, which may have moved on since.
            raft_index: raft_status.committed.max(state.applied).0,
            raft_term: raft_status.term.0,
            raft_applied_index: state.applied.0,
            errors: no_leader.into_iter().chain(state.alarms.iter().map(alarm)).collect(),
            is_learner: raft_status.is_learner,
            storage_version: self.storage_version(state).unwrap_or_default(),
            db_size_quota: if self.has_storage_version() { self.options.quota_bytes() as i64 } else { 0 },
            downgrade_info: self.has_storage_version().then(|| DowngradeInfo {
                enabled: state.cluster.downgrade.is_some(),
                target_version: state.cluster.downgrade.map(|target| format!("{target}.0")).unwrap_or_default(),
            }),
        });
        // Not while the state is looked at, which may not be done twice at once.
        self.sign(&mut status.header);
        status
    }

    /// The version of the stored data, which follows the cluster's.
    pub(super) fn storage_version(&self, state: &State) -> Option<String> {
        let version = state.cluster.storage_version(self.member.snapshot_index())?;
        self.has_storage_version().then(|| format!("{version}.0"))
    }

    pub(super) fn has_storage_version(&self) -> bool {
        self.member.identity().release.cluster_version() >= FIRST_WITH_STORAGE_VERSION
    }
}

/// Of keys and leases alone: how often its members have started changes nothing that a client has written.
fn hash(state: &State) -> u32 {
    state.keys.snapshot().fold(0, |hash, bytes| crc32c_append(hash, &bytes))
}

/// An alarm as etcd prints it, with the space at its end.
fn alarm((member, kind): &(MemberId, i32)) -> String {
    match AlarmType::try_from(*kind) {
        Ok(kind) => format!("memberID:{} alarm:{} ", member.0, kind.as_str_name()),
        Err(_) => format!("memberID:{} alarm:{kind} ", member.0),
    }
}
