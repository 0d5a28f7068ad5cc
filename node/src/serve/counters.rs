//! Keys that count, which etcd has not: served where the cluster's feature for them is on.

use proto::batonpb::{AddRequest, AddResponse, counters_server::Counters};
use tonic::{Request, Response, Status, async_trait};

use super::{context::ServiceContext, quota};
use crate::{api_error::ApiError, entry::EntryKind, features::COUNTERS};

#[async_trait]
impl Counters for ServiceContext {
    async fn add(&self, request: Request<AddRequest>) -> Result<Response<AddResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        if request.key.is_empty() {
            return Err(ApiError::EmptyKey.into());
        }
        // Before anything is asked of the cluster for it. Where this member lags, it looks again.
        let own = [COUNTERS.to_owned()];
        if self.read_here(&own, |_| Ok(())).is_err() {
            self.read(&own, |_| Ok(())).await?;
        }
        self.check_room(quota::counter(&request)).await?;
        self.outcome(self.propose_request(requires, request, EntryKind::CounterAdd).await?)
    }
}
