//! A member added as a learner, promoted, or removed.
//!
//! Each call is made to the leader: a follower turns the leader's refusal of a promotion into a time-out (etcd,
//! `server/etcdserver/server.go`). None of them compares anything, so each takes effect whenever it arrives.

use std::time::Duration;

use proto::{
    MemberId,
    etcdserverpb::{MemberAddRequest, MemberPromoteRequest, MemberRemoveRequest, cluster_client::ClusterClient},
};

use super::{cluster::Observer, error::CallError, handover::is_definite};

/// etcd gives up a change of members after as long (`ReqTimeout` with an election timeout of a second).
const CALL: Duration = Duration::from_secs(8);
/// etcd's words for what was done before (etcd, `api/v3rpc/rpctypes/error.go`).
const NOT_A_LEARNER: &str = "etcdserver: can only promote a learner member";
const NOT_FOUND: &str = "etcdserver: member not found";
/// etcd's words where a member that votes is not connected, and so nobody is added. It looks before it proposes anything (etcd,
/// `server/etcdserver/server.go`, `mayAddMember`), though it answers as a call whose end nobody knows.
const UNHEALTHY: &str = "etcdserver: unhealthy cluster";

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Done,
    /// It was refused, and nothing has changed.
    Refused(String),
    /// No telling; it may still be done.
    Unknown(String),
}

impl Observer {
    /// Adds a learner that is to be reached at these addresses. The leader must have answered in an earlier look.
    pub async fn add_learner(&self, leader: MemberId, peer_urls: Vec<String>) -> Changed {
        let Some(address) = self.connections.address_of(leader) else { return not_reached(leader) };
        let request = MemberAddRequest { peer_urls, is_learner: true };
        let sent = self.connections.access.tell(&address, CALL, request, |channel, request| async move {
            ClusterClient::new(channel).member_add(request).await
        });
        changed(sent.await.map(drop), &[])
    }

    /// Makes a learner a voter. One that votes already is one.
    pub async fn promote(&self, leader: MemberId, member: MemberId) -> Changed {
        let Some(address) = self.connections.address_of(leader) else { return not_reached(leader) };
        let request = MemberPromoteRequest { id: member.0 };
        let sent = self.connections.access.tell(&address, CALL, request, |channel, request| async move {
            ClusterClient::new(channel).member_promote(request).await
        });
        changed(sent.await.map(drop), &[NOT_A_LEARNER])
    }

    /// Takes a member out. One that is not listed is out already.
    pub async fn remove(&self, leader: MemberId, member: MemberId) -> Changed {
        let Some(address) = self.connections.address_of(leader) else { return not_reached(leader) };
        let request = MemberRemoveRequest { id: member.0 };
        let sent = self.connections.access.tell(&address, CALL, request, |channel, request| async move {
            ClusterClient::new(channel).member_remove(request).await
        });
        changed(sent.await.map(drop), &[NOT_FOUND])
    }
}

fn not_reached(leader: MemberId) -> Changed {
    Changed::Refused(format!("the leader, member {leader}, has not answered yet"))
}

fn changed(sent: Result<(), CallError>, needless: &[&str]) -> Changed {
    match sent {
        Ok(()) => Changed::Done,
        Err(error) if needless.iter().any(|words| error.says(words)) => Changed::Done,
        Err(error) if is_definite(&error) || error.says(UNHEALTHY) => Changed::Refused(error.to_string()),
        Err(error) => Changed::Unknown(error.to_string()),
    }
}
