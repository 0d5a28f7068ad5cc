//! etcd's `KV`.

use proto::{
    Revision,
    etcdserverpb::{
        CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
        RangeRequest, RangeResponse, RangeStreamResponse, TxnRequest, TxnResponse, kv_server::Kv,
    },
};
use tokio::time::Instant;
use tonic::{Request, Response, Status, async_trait};

use super::{
    admission::check_features,
    context::ServiceContext,
    quota::{self, Cost},
};
use crate::{
    api_error::ApiError,
    entry::EntryKind,
    mvcc::{Extent, Listing, Operations, Store, check, is_read_only, is_serializable, ranges},
    state::{Applied, Refusal, State},
};

#[async_trait]
impl Kv for ServiceContext {
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        self.timed(request, async |request| self.answer_range(request).await).await
    }

    type RangeStreamStream = tokio_stream::Empty<Result<RangeStreamResponse, Status>>;

    async fn range_stream(&self, _: Request<RangeRequest>) -> Result<Response<Self::RangeStreamStream>, Status> {
        Err(Status::unimplemented("unknown method RangeStream for service etcdserverpb.KV"))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        self.timed(request, async |request| self.answer_put(request).await).await
    }

    async fn delete_range(
        &self,
        request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        self.timed(request, async |request| self.answer_delete_range(request).await).await
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        self.timed(request, async |request| self.answer_txn(request).await).await
    }

    /// With `physical` the answer comes once what was compacted is forgotten here, as etcd's does.
    async fn compact(&self, request: Request<CompactionRequest>) -> Result<Response<CompactionResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        self.check_room(Cost::NONE).await?;
        let (revision, physical) = (Revision(request.revision), request.physical);
        let outcome = self.outcome(self.propose_request(requires, request, EntryKind::Compact).await?)?;
        if physical {
            let mut forgotten = self.member.machine().forgotten();
            // It ends with the member alone.
            let _ = forgotten.wait_for(|forgotten| *forgotten >= revision).await;
        }
        Ok(outcome)
    }
}

impl ServiceContext {
    async fn answer_range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = match request.serializable {
            true => self.admit_to_any(&metadata)?,
            false => self.admit(&metadata).await?,
        };
        check::range(&request)?;
        let began = Instant::now();
        if !request.serializable {
            self.member.linearize().await?;
        }
        let extent = self.read_here(&requires, |state| Ok(state.keys.extent(&request)))?;
        let read = Instant::now();
        let (found, answer) = match extent {
            Extent::OneKey => {
                let found = self.look_up(&requires, extent, request, Store::range).await;
                (found.as_ref().map(|found| found.kvs.len()).ok(), found.and_then(|found| self.answer(found)))
            }
            _ => {
                let found = self.look_up(&requires, extent, request, Store::list).await;
                (found.as_ref().map(Listing::key_count).ok(), found.and_then(|found| self.listed(found)))
            }
        };
        self.ranges[usize::from(found.is_none())].observe(read.elapsed());
        let counts = self.member.machine().counts();
        counts.note(Operations { ranges: 1, ..Operations::default() });
        if counts.limit.is_slow(began.elapsed()) {
            let found = found.unwrap_or_default();
            counts.note_slow(began.elapsed(), "read-only range ", "Range", &format!("range_response_count:{found}"));
        }
        answer
    }

    async fn answer_put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        self.check_room(quota::put(&request)).await?;
        check::put(&request)?;
        self.outcome(self.propose_request(requires, request, EntryKind::Put).await?)
    }

    async fn answer_delete_range(
        &self,
        request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        check::delete_range(&request)?;
        self.check_room(Cost::NONE).await?;
        self.outcome(self.propose_request(requires, request, EntryKind::DeleteRange).await?)
    }

    async fn answer_txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        if is_read_only(&request) {
            check::txn(&request, self.options.max_txn_operations)?;
            let (began, conditions) = (Instant::now(), request.compare.len());
            if !is_serializable(&request) {
                self.member.linearize().await?;
            }
            let extents = |keys: &Store| ranges(&request).flatten().map(|range| keys.extent(range)).max();
            let extent = self.read_here(&requires, |state| Ok(extents(&state.keys)))?;
            let extent = extent.unwrap_or(Extent::OneKey);
            let found = self.look_up(&requires, extent, request, Store::read_txn).await;
            let (counts, ranges) =
                (self.member.machine().counts(), found.as_ref().map_or(0, |found| found.responses.len()));
            counts.note(Operations { ranges: (conditions + ranges) as u64, ..Operations::default() });
            if counts.limit.is_slow(began.elapsed()) {
                counts.note_slow(began.elapsed(), "read-only txn ", "Txn", &format!("responses:{ranges}"));
            }
            return self.answer(found?);
        }
        self.check_room(quota::txn(&request)).await?;
        check::txn(&request, self.options.max_txn_operations)?;
        let Applied::Txn(performed) = self.propose_request(requires, request, EntryKind::Txn).await? else {
            return Err(Status::internal("the answer to another kind of entry"));
        };
        self.answer(match performed.extent() {
            Extent::ManyKeys => self.in_turn(move || performed.answer()).await??,
            _ => performed.answer()?,
        })
    }

    /// Reads keys as they are here: many of them from a copy, beside what is served, so that nothing waits for it.
    async fn look_up<R: Send + 'static, T: Send + 'static>(
        &self,
        requires: &[String],
        extent: Extent,
        request: R,
        look: impl FnOnce(&Store, &R) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, Status> {
        if extent != Extent::ManyKeys {
            return self.read_here(requires, |state| look(&state.keys, &request));
        }
        let (requires, registry) = (requires.to_vec(), *self.member.machine().registry());
        let look = move |state: &State| {
            check_features(state, &registry, &requires)?;
            Ok::<_, Refusal>(look(&state.keys, &request)?)
        };
        Ok(self.scan(look).await??)
    }
}
