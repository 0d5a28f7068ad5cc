//! The requests about leases that change the state, and those that read it.
//!
//! Source: etcd, server/lease/lessor.go.

use proto::{
    LeaseId,
    etcdserverpb::{
        LeaseCheckpointRequest, LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest, LeaseRevokeResponse,
        LeaseTimeToLiveRequest, LeaseTimeToLiveResponse,
    },
};

use super::{KeyRange, Store, header};
use crate::api_error::ApiError;

impl Store {
    /// Grants a lease of the id and the seconds that the proposer has settled on.
    ///
    /// # Errors
    /// No id; too long; there is one of this id.
    pub fn lease_grant(&mut self, request: &LeaseGrantRequest) -> Result<LeaseGrantResponse, ApiError> {
        self.leases.grant(LeaseId(request.id), request.ttl)?;
        let header = header(self.revision);
        Ok(LeaseGrantResponse { header, id: request.id, ttl: request.ttl, ..LeaseGrantResponse::default() })
    }

    /// Ends a lease and deletes its keys, in order, all at one revision; without keys the revision stays.
    ///
    /// # Errors
    /// There is no such lease.
    pub fn lease_revoke(&mut self, request: &LeaseRevokeRequest) -> Result<LeaseRevokeResponse, ApiError> {
        let lease = self.leases.remove(LeaseId(request.id)).ok_or(ApiError::LeaseNotFound)?;
        let mut write = self.write();
        for key in lease.keys() {
            write.delete(KeyRange::One(key));
        }
        Ok(LeaseRevokeResponse { header: header(write.end()) })
    }

    /// Writes down what leases had left; a lease that ended meanwhile is passed over.
    pub fn lease_checkpoint(&mut self, request: &LeaseCheckpointRequest) {
        for checkpoint in &request.checkpoints {
            self.leases.checkpoint(LeaseId(checkpoint.id), checkpoint.remaining_ttl);
        }
    }

    /// Forgets what was written down of all leases.
    pub fn forget_lease_checkpoints(&mut self) {
        self.leases.forget_checkpoints();
    }

    /// Says what a lease was granted for and, if asked, what it holds; `left` is the seconds its leader gives it now. A lease
    /// that is not there has -1 left, and that is no error (etcd, `LeaseTimeToLive` in api/v3rpc/lease.go).
    pub fn lease_time_to_live(&self, request: &LeaseTimeToLiveRequest, left: i64) -> LeaseTimeToLiveResponse {
        let header = header(self.revision);
        let Some(lease) = self.leases.get(LeaseId(request.id)) else {
            return LeaseTimeToLiveResponse { header, id: request.id, ttl: -1, ..LeaseTimeToLiveResponse::default() };
        };
        let keys = lease.keys().filter(|_| request.keys).map(|key| key.to_vec()).collect();
        LeaseTimeToLiveResponse { header, id: request.id, ttl: left, granted_ttl: lease.granted_s(), keys }
    }
}
