//! What all services share: the member, how it is to serve, and the ways to read and to write.

use std::{
    sync::{Arc, atomic::AtomicBool},
    thread,
};

use consensus::aside;
use instruments::Histogram;
use prost::Message;
use proto::etcdserverpb::ResponseHeader;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{ServeOptions, admission, calls::Calls, health::HealthCounts, watch::Hub};
use crate::{
    api_error::ApiError,
    cluster::FIRST_WITH_GATES,
    entry::{Entry, EntryKind},
    machine::DURATION_BOUNDS,
    member::Member,
    state::{Applied, Refusal, State},
};

/// How many proposals may be under way (etcd, `maxGapBetweenApplyAndCommitIndex`).
const MOST_PROPOSALS: usize = 5000;
/// How many bytes they may have: as many of the largest would be more than a machine has.
const MOST_BYTES: usize = 512 << 20;

/// Each of etcd's services is implemented for it, in a file of its own. Every clone is the same one.
#[derive(Clone, Debug)]
pub(super) struct ServiceContext {
    pub(super) member: Member,
    pub(super) options: ServeOptions,
    /// Cancelled when the member stops: streams end then.
    pub(super) stopping: CancellationToken,
    pub(super) hub: Hub,
    pub(super) calls: Arc<Calls>,
    pub(super) health: Arc<HealthCounts>,
    /// How long reads took, those that were performed and those that were refused.
    pub(super) ranges: Arc<[Histogram; 2]>,
    /// Looks at much of the state: each takes a processor for as long as it takes, and half of them are for what is quick.
    scans: Arc<Semaphore>,
    /// Whether an alarm is being raised.
    pub(super) raises_alarm: Arc<AtomicBool>,
}

impl ServiceContext {
    pub(super) fn new(member: Member, options: ServeOptions) -> Self {
        let hub = Hub::new(&member);
        let scans = thread::available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1));
        let calls = Arc::new(Calls::new(options.warning_unary_request));
        Self {
            member,
            options,
            stopping: CancellationToken::new(),
            hub,
            calls,
            health: Arc::default(),
            ranges: Arc::new([(); 2].map(|()| Histogram::new(&DURATION_BOUNDS))),
            scans: Arc::new(Semaphore::new(scans)),
            raises_alarm: Arc::default(),
        }
    }

    /// Looks at the state where it holds all that was acknowledged before.
    pub(super) async fn read<T>(
        &self,
        requires: &[String],
        look: impl FnOnce(&State) -> Result<T, ApiError>,
    ) -> Result<T, Status> {
        self.member.linearize().await?;
        self.read_here(requires, look)
    }

    /// Looks at the state as it is here.
    pub(super) fn read_here<T>(
        &self,
        requires: &[String],
        look: impl FnOnce(&State) -> Result<T, ApiError>,
    ) -> Result<T, Status> {
        let registry = self.member.machine().registry();
        let look = |state: &State| {
            admission::check_features(state, registry, requires)?;
            Ok::<_, Refusal>(look(state)?)
        };
        Ok(self.member.read(look)?)
    }

    /// Looks at the whole state as it is here and now, where that keeps nobody from being served, and nothing from being
    /// applied.
    pub(super) async fn scan<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let member = self.member.clone();
        self.in_turn(move || look(&member.frozen())).await
    }

    /// Does what takes a processor for a while, where few do so at once.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        scan: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        // Nobody closes it. A client that gives up ends no look that has begun.
        let turn = self.scans.clone().acquire_owned().await;
        let scan = move || {
            let _turn = turn;
            scan()
        };
        aside(scan).await.map_err(|error| Status::internal(format!("the scan ended: {error}")))
    }

    /// Proposes `what`, which has so many bytes.
    pub(super) async fn propose(
        &self,
        requires: Vec<String>,
        what: EntryKind,
        bytes: usize,
    ) -> Result<Applied, Status> {
        if bytes > self.options.max_request_bytes {
            return Err(ApiError::RequestTooLarge.into());
        }
        let (count, waiting_bytes) = self.member.machine().proposals().under_way();
        if count >= MOST_PROPOSALS || waiting_bytes >= MOST_BYTES {
            return Err(ApiError::TooManyRequests.into());
        }
        Ok(self.member.propose(Entry { requires, what }).await?)
    }

    /// As [`ServiceContext::propose`], for a request that is an entry as it is.
    pub(super) async fn propose_request<R: Message>(
        &self,
        requires: Vec<String>,
        request: R,
        what: impl FnOnce(R) -> EntryKind,
    ) -> Result<Applied, Status> {
        let bytes = request.encoded_len();
        self.propose(requires, what(request), bytes).await
    }

    /// Whether this member's release knows of gates; what a cluster of older ones has decided is another question.
    pub(super) fn has_gates(&self) -> bool {
        self.member.identity().release.cluster_version() >= FIRST_WITH_GATES
    }

    /// Says in a header who answers; a revision that is there stays.
    pub(super) fn sign(&self, header: &mut Option<ResponseHeader>) {
        let identity = self.member.identity();
        let header = header.get_or_insert_default();
        header.cluster_id = identity.cluster.0;
        header.member_id = identity.member.0;
        header.raft_term = self.member.raft_status().term.0;
    }

    /// A header with this revision.
    pub(super) fn header(&self, revision: i64) -> Option<ResponseHeader> {
        let mut header = Some(ResponseHeader { revision, ..ResponseHeader::default() });
        self.sign(&mut header);
        header
    }

    /// A header with the newest revision.
    pub(super) fn newest_header(&self) -> Option<ResponseHeader> {
        self.header(self.member.read(|state| state.keys.revision().0))
    }
}
