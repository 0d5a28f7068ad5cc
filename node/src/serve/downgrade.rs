//! etcd's `Maintenance.Downgrade`.

use proto::{
    ClusterVersion,
    etcdserverpb::{DowngradeRequest, DowngradeResponse, downgrade_request::DowngradeAction},
};
use tonic::Status;

use super::context::ServiceContext;
use crate::{api_error::ApiError, cluster::entry::Entry, entry::EntryKind, state::Applied};

impl ServiceContext {
    /// Asks whether one can begin, begins it, or ends it. What follows the cluster does by itself.
    pub(super) async fn downgrade_step(&self, request: &DowngradeRequest) -> Result<DowngradeResponse, Status> {
        let target = || request.version.parse::<ClusterVersion>().map_err(|_| ApiError::WrongDowngradeTarget);
        let (to, otherwise) = match DowngradeAction::try_from(request.action) {
            Ok(DowngradeAction::Validate) => {
                self.check_target(target()?).await?;
                return Ok(self.downgraded());
            }
            Ok(DowngradeAction::Enable) => {
                let target = target()?;
                self.check_target(target).await?;
                (Some(target), ApiError::DowngradeInProcess)
            }
            Ok(DowngradeAction::Cancel) => (None, ApiError::NoInflightDowngrade),
            Err(_) => return Err(Status::invalid_argument("etcdserver: unknown action of a downgrade")),
        };
        match self.propose(Vec::new(), EntryKind::Cluster(Entry::Downgrade { to }), 0).await? {
            Applied::Cluster { changed: true } => Ok(self.downgraded()),
            _ => Err(otherwise.into()),
        }
    }

    async fn check_target(&self, target: ClusterVersion) -> Result<(), Status> {
        self.read(&[], |state| state.cluster.may_go_down_to(target)).await
    }

    fn downgraded(&self) -> DowngradeResponse {
        let (version, revision) = self.member.read(|state| (state.cluster.version, state.keys.revision().0));
        let version = version.map(|version| version.to_string()).unwrap_or_default();
        DowngradeResponse { header: self.header(revision), version }
    }
}
