//! The members with their peer URLs, by the word of a voter that has asked a quorum: by a stale list one that was removed would seem
//! to be a member still.
//!
//! `MemberList` asks the quorum from 3.5 on, and passes over the field before. So a read through the quorum goes first, through the same
//! member.

use std::collections::{BTreeMap, BTreeSet};

use proto::{
    MemberId,
    etcdserverpb::{MemberListRequest, cluster_client::ClusterClient},
};
use tonic::Code;

use super::{
    Observer,
    cluster::Connections,
    error::{CallError, ObserveError},
    member::MAX_MESSAGE,
};

/// Where each member is reached by the others, as it is listed.
pub type PeerUrls = BTreeMap<MemberId, BTreeSet<String>>;

/// Nothing is looked for there: the read shows that a quorum is.
const KEY: &str = "/baton/";

impl Observer {
    /// Everybody that the cluster has, learners too.
    ///
    /// # Errors
    /// [`ObserveError`]: nobody is reached, the user is refused, or no member has a quorum.
    pub async fn peer_urls(&self) -> Result<PeerUrls, ObserveError> {
        self.connections.peer_urls().await
    }
}

impl Connections {
    pub(super) async fn peer_urls(&self) -> Result<PeerUrls, ObserveError> {
        drop(self.access.log_in().await?);
        let mut reasons = Vec::new();
        for address in self.access.directory().routes(None) {
            match self.peer_urls_at(&address).await {
                Ok(members) => return Ok(members),
                Err(error) => reasons.push(format!("{address}: {error}")),
            }
        }
        Err(ObserveError::NoMembership { reasons })
    }

    async fn peer_urls_at(&self, address: &str) -> Result<PeerUrls, CallError> {
        match self.access.linearizable(address, KEY).await {
            // Who may not read the key learns so after the quorum was asked.
            Err(error) if error.code() != Some(Code::PermissionDenied) => return Err(error),
            _ => {}
        }
        let list = self.access.ask(address, MemberListRequest { linearizable: true }, |channel, request| async move {
            ClusterClient::new(channel).max_decoding_message_size(MAX_MESSAGE).member_list(request).await
        });
        let members = list.await?.members.into_iter();
        Ok(members.map(|member| (MemberId(member.id), member.peer_urls.into_iter().collect())).collect())
    }
}
