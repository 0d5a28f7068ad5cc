//! Leadership handed from one voter to another, on request.
//!
//! Whether it worked is read off the *target's* own status: an answer of the old leader, or none, proves nothing.

use std::time::Duration;

use proto::{
    MemberId,
    etcdserverpb::{MoveLeaderRequest, maintenance_client::MaintenanceClient},
};
use tokio::time::sleep;
use tonic::Code;

use super::{
    access::CALL,
    cluster::{Connections, Observer},
    error::CallError,
};

/// How often the target is asked whether it leads.
const LEADER_PROBE_GAP: Duration = Duration::from_millis(10);

/// What became of a hand-over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// The target says that it leads.
    Moved,
    /// It was refused, and nothing has changed.
    Refused(String),
    /// No telling; it may still happen.
    Unknown(String),
}

impl Observer {
    /// Asks `from`, the leader, to hand over to `to`. Both must have answered in an earlier look.
    pub async fn move_leader(&self, from: MemberId, to: MemberId) -> HandOver {
        let connections = &self.connections;
        let (Some(leader), Some(target)) = (connections.address_of(from), connections.address_of(to)) else {
            return HandOver::Refused(format!("member {from} or {to} has not answered yet"));
        };
        if let Err(error) = connections.access.status_of(from, &leader).await {
            return HandOver::Refused(format!("member {from} does not answer: {error}"));
        }
        // The old leader answers at its next heartbeat only; the target knows earlier.
        tokio::select! {
            () = connections.leads(to, &target) => HandOver::Moved,
            refusal = connections.refused(&leader, to) => refusal,
        }
    }
}

impl Connections {
    /// Ends when this member says that it leads.
    async fn leads(&self, member: MemberId, address: &str) {
        loop {
            if let Ok(seen) = self.access.status_of(member, address).await
                && seen.statement().leader == Some(member)
            {
                return;
            }
            sleep(LEADER_PROBE_GAP).await;
        }
    }

    /// Asks the leader to hand over, and ends when that can be given up: the target has had its time to say that it
    /// leads.
    async fn refused(&self, leader: &str, to: MemberId) -> HandOver {
        let request = MoveLeaderRequest { target_id: to.0 };
        let answer = self
            .access
            .tell(leader, CALL, request, |channel, request| async move {
                MaintenanceClient::new(channel).move_leader(request).await
            })
            .await;
        sleep(if answer.is_ok() { CALL } else { LEADER_PROBE_GAP * 10 }).await;
        match answer {
            Ok(_) => HandOver::Unknown(format!("member {to} does not say that it leads")),
            Err(error) if is_definite(&error) => HandOver::Refused(error.to_string()),
            Err(error) => HandOver::Unknown(error.to_string()),
        }
    }
}

/// Whether the server refused before it did anything.
pub(super) fn is_definite(error: &CallError) -> bool {
    matches!(
        error.code(),
        Some(
            Code::FailedPrecondition
                | Code::InvalidArgument
                | Code::NotFound
                | Code::PermissionDenied
                | Code::Unauthenticated
                | Code::Unimplemented
        )
    )
}
