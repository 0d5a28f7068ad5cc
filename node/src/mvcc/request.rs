//! Writes of one operation.
//!
//! Source: etcd, `Put` and `DeleteRange` in server/etcdserver/txn/txn.go.

use bytes::Bytes;
use proto::{
    LeaseId,
    etcdserverpb::{DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse},
};

use super::{KeyRange, Store, header, write::Write};
use crate::api_error::ApiError;

impl Store {
    /// Writes one key.
    ///
    /// # Errors
    /// The lease is not there; or the key is not, whose value or lease is to be kept. etcd looks for the lease first.
    pub fn put(&mut self, request: PutRequest) -> Result<PutResponse, ApiError> {
        self.leases.require(LeaseId(request.lease))?;
        let mut write = self.write();
        let response = write.put_request(request)?;
        write.end();
        Ok(response)
    }

    /// Deletes keys; where there are none the revision stays.
    pub fn delete_range(&mut self, request: &DeleteRangeRequest) -> DeleteRangeResponse {
        let mut write = self.write();
        let response = write.delete_request(request);
        write.end();
        response
    }
}

impl Write<'_> {
    /// Performs a put; where it is refused nothing of it was done.
    pub(super) fn put_request(&mut self, request: PutRequest) -> Result<PutResponse, ApiError> {
        let asks = request.prev_kv || request.ignore_value || request.ignore_lease;
        let before = asks.then(|| self.store().head(&request.key)).flatten();
        let prev_kv = before.filter(|_| request.prev_kv).map(|found| found.live.key_value(found.key, found.at));
        let kept = |keep: bool| if keep { before.ok_or(ApiError::KeyNotFound).map(Some) } else { Ok(None) };
        let value = kept(request.ignore_value)?.map(|found| found.live.value.clone());
        let lease = kept(request.ignore_lease)?.map(|found| found.live.lease);
        self.put(
            Bytes::from(request.key),
            value.unwrap_or_else(|| Bytes::from(request.value)),
            lease.unwrap_or(LeaseId(request.lease)),
        );
        Ok(PutResponse { header: header(self.revision()), prev_kv })
    }

    pub(super) fn delete_request(&mut self, request: &DeleteRangeRequest) -> DeleteRangeResponse {
        let range = KeyRange::new(&request.key, &request.range_end);
        let mut prev_kvs = Vec::new();
        if request.prev_kv {
            let alive = self.store().alive(range, self.revision());
            prev_kvs.extend(alive.map(|found| found.live.key_value(found.key, found.at)));
        }
        let deleted = self.delete(range);
        DeleteRangeResponse { header: header(self.revision()), deleted, prev_kvs }
    }
}
