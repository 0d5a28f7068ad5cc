//! etcd's `KV`.

use proto::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
    RangeRequest, RangeResponse, RangeStreamResponse, TxnRequest, TxnResponse, kv_server::Kv,
};
use tonic::{Request, Response, Status, async_trait};

use super::{
    context::ServiceContext,
    quota::{self, Cost},
};
use crate::{
    entry::EntryKind,
    mvcc::{check, is_read_only, is_serializable},
};

#[async_trait]
impl Kv for ServiceContext {
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let look = |state: &crate::state::State| state.keys.range(&request);
        let found = if request.serializable {
            let requires = self.admit_to_any(&metadata)?;
            check::range(&request)?;
            self.read_here(&requires, look)?
        } else {
            let requires = self.admit(&metadata)?;
            check::range(&request)?;
            self.read(&requires, look).await?
        };
        self.answer(found)
    }

    type RangeStreamStream = tokio_stream::Empty<Result<RangeStreamResponse, Status>>;

    async fn range_stream(&self, _: Request<RangeRequest>) -> Result<Response<Self::RangeStreamStream>, Status> {
        Err(Status::unimplemented("unknown method RangeStream for service etcdserverpb.KV"))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata)?;
        self.check_room(quota::put(&request)).await?;
        check::put(&request)?;
        self.outcome(self.propose_request(requires, request, EntryKind::Put).await?)
    }

    async fn delete_range(
        &self,
        request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata)?;
        check::delete_range(&request)?;
        self.check_room(Cost::NONE).await?;
        self.outcome(self.propose_request(requires, request, EntryKind::DeleteRange).await?)
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata)?;
        if is_read_only(&request) {
            check::txn(&request, check::MAX_TXN_OPERATIONS)?;
            let look = |state: &crate::state::State| state.keys.read_txn(&request);
            return self.answer(match is_serializable(&request) {
                true => self.read_here(&requires, look)?,
                false => self.read(&requires, look).await?,
            });
        }
        self.check_room(quota::txn(&request)).await?;
        check::txn(&request, check::MAX_TXN_OPERATIONS)?;
        self.outcome(self.propose_request(requires, request, EntryKind::Txn).await?)
    }

    /// `physical` changes nothing: what was compacted is gone when the answer is given.
    async fn compact(&self, request: Request<CompactionRequest>) -> Result<Response<CompactionResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata)?;
        self.check_room(Cost::NONE).await?;
        self.outcome(self.propose_request(requires, request, EntryKind::Compact).await?)
    }
}
