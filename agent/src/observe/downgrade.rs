//! A downgrade that is enabled, cancelled, or asked after.
//!
//! The leader is asked, whose answer is about what it has applied. Source: etcd, `Maintenance.Downgrade`.

use proto::{
    ClusterVersion, MemberId,
    etcdserverpb::{DowngradeRequest, downgrade_request::DowngradeAction, maintenance_client::MaintenanceClient},
};
use tonic::Code;

use super::{access::CALL, cluster::Observer, handover::is_definite};

/// etcd's words for what needs not be done any more (etcd, `api/v3rpc/rpctypes/error.go`).
const IN_PROGRESS: &str = "etcdserver: cluster has a downgrade job in progress";
const NONE_IN_PROGRESS: &str = "etcdserver: no inflight downgrade job";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Downgraded {
    Done,
    /// It was refused, and nothing has changed.
    Refused(String),
    /// No telling; it may still be done (etcd issue 15878).
    Unknown(String),
}

impl Observer {
    /// Enables a downgrade to this version, or cancels the one that is enabled. The member, the leader, must have answered
    /// in an earlier look.
    pub async fn downgrade(&self, leader: MemberId, to: Option<ClusterVersion>) -> Downgraded {
        let action = if to.is_some() { DowngradeAction::Enable } else { DowngradeAction::Cancel };
        let Some(address) = self.connections.address_of(leader) else {
            return Downgraded::Unknown(format!("member {leader} has not answered yet"));
        };
        let sent = self.connections.access.tell(&address, CALL, request(action, to), |channel, request| async move {
            MaintenanceClient::new(channel).downgrade(request).await
        });
        let needless = if to.is_some() { IN_PROGRESS } else { NONE_IN_PROGRESS };
        match sent.await {
            Ok(_) => Downgraded::Done,
            Err(error) if error.says(needless) => Downgraded::Done,
            Err(error) if is_definite(&error) => Downgraded::Refused(error.to_string()),
            Err(error) => Downgraded::Unknown(error.to_string()),
        }
    }

    /// Whether a downgrade is under way in a cluster of this version; `None` where nobody says. Releases before etcd 3.6
    /// tell it only to whoever asks for one more.
    pub async fn is_going_down(&self, leader: MemberId, version: ClusterVersion) -> Option<bool> {
        let below = ClusterVersion { minor: version.minor.checked_sub(1)?, ..version };
        let address = self.connections.address_of(leader)?;
        let question = request(DowngradeAction::Validate, Some(below));
        let asked = self.connections.access.ask(&address, question, |channel, request| async move {
            MaintenanceClient::new(channel).downgrade(request).await
        });
        match asked.await {
            Ok(_) => Some(false),
            Err(error) if error.says(IN_PROGRESS) => Some(true),
            // Of a release that answers to the role root alone.
            Err(error) if error.code() == Some(Code::PermissionDenied) => None,
            Err(error) if is_definite(&error) => Some(false),
            Err(_) => None,
        }
    }
}

fn request(action: DowngradeAction, to: Option<ClusterVersion>) -> DowngradeRequest {
    DowngradeRequest { action: action.into(), version: to.map(|to| format!("{to}.0")).unwrap_or_default() }
}
