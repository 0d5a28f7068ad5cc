//! Who answers at a socket of this host, and whether a member answers at all. No secret is sent to find out.
//!
//! Whose socket it is says the kernel, so its certificate may bear any name that the cluster is reached by.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use proto::{ClusterId, MemberId};
use tokio::time::timeout;
use tonic::transport::Uri;

use super::{
    access::Access,
    directory::Listed,
    error::CallError,
    introduction::{Peer, introduced},
    line::endpoint,
};

/// How long a socket may take to say who is there: between the last look and a stop this is time lost.
const LIMIT: Duration = Duration::from_secs(3);
/// How many names a certificate is tried with.
const MAX_NAMES: usize = 16;

/// A member, and the cluster that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub member: MemberId,
    pub cluster: ClusterId,
}

impl Access {
    /// Who says at this socket that it is a member, if anybody does in time.
    pub async fn identity_at(&self, socket: SocketAddr) -> Option<Identity> {
        timeout(LIMIT, self.asked_at(socket)).await.ok()?
    }

    async fn asked_at(&self, socket: SocketAddr) -> Option<Identity> {
        let (tls, _) = self.tls();
        let (scheme, names) = match tls {
            Some(_) => ("https", self.names(socket)),
            None => ("http", vec![String::new()]),
        };
        let address = format!("{scheme}://{socket}");
        for name in names {
            let tls = tls.as_ref().map(|files| files.for_grpc().domain_name(name));
            let channel = endpoint(&address, tls).ok()?.connect_lazy();
            match introduced(&address, channel).await {
                Ok(Peer::Member(member, cluster)) => return Some(Identity { member, cluster }),
                // Its certificate may be of the next name.
                Err(CallError::Untrusted(_)) => {}
                Ok(Peer::Learner) | Err(_) => return None,
            }
        }
        None
    }

    /// What a certificate of this cluster may be of: the socket's own address, and wherever members are reached.
    fn names(&self, socket: SocketAddr) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let addresses = self.directory().addresses();
        let hosts = addresses.iter().filter_map(|address| Some(address.parse::<Uri>().ok()?.host()?.to_owned()));
        let hosts = hosts.map(|host| host.trim_matches(['[', ']']).to_owned());
        let names = [socket.ip().to_string()].into_iter().chain(hosts);
        names.filter(|name| seen.insert(name.clone())).take(MAX_NAMES).collect()
    }

    /// Whether this member answers where it says that it serves clients.
    pub async fn answers(&self, member: &Listed) -> bool {
        let asked = member.client_urls.iter().map(|address| timeout(LIMIT, self.introduction(address)));
        join_all(asked).await.into_iter().flatten().flatten().any(|peer| match peer {
            Peer::Member(found, cluster) => found == member.id && Some(cluster) == self.directory().cluster(),
            Peer::Learner => true,
        })
    }
}
