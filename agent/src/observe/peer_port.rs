//! What answers at a peer URL: a member's peer port, or something over which no member would be reached.
//!
//! A newcomer calls the others itself and is sent its entries over that, whatever its own address is; as a voter it must be reached. So
//! it is asked for `/members`, which etcd serves to peers alone, with the cluster's id in the head (etcd,
//! `server/etcdserver/api/etcdhttp/peer.go`). Which member answers that does not say: so none of the others may be reached there. The bundled
//! node's peer port speaks HTTP/2 alone. Where peers have an authority of their own, all that can be seen is that they speak TLS.

use std::{
    collections::BTreeSet,
    io,
    net::{SocketAddr, ToSocketAddrs as _},
};

use super::{
    Observer,
    diagnosis::{Plain, handshake, page},
    fault,
    tls::TlsFiles,
};

const MEMBERS: &str = "/members";
/// In the head of each answer to a peer.
const CLUSTER: &str = "x-etcd-cluster-id:";

/// What is wrong with an address, for behind it.
#[derive(Debug, thiserror::Error)]
pub enum Amiss {
    #[error("nobody answers there: {0}")]
    Nobody(io::Error),
    #[error("TLS is spoken there, and the URL says `http`")]
    Tls,
    #[error("plain HTTP is spoken there, and the URL says `https`")]
    Plain,
    #[error("what answers there is no peer port: it may be where clients are served")]
    NoPeerPort,
    #[error("what answers there is of cluster {0}, another one")]
    Foreign(String),
    #[error("it leads where another member is reached, at {0}")]
    Other(String),
    #[error("a connection is taken there, and nothing that a member would say comes over it")]
    Mute,
}

impl Observer {
    /// Asks from this host. `others` are where the other members are reached.
    ///
    /// # Errors
    /// [`Amiss`]
    pub async fn peer_port(&self, url: &str, others: &[String]) -> Result<(), Amiss> {
        let access = self.access();
        let (tls, _) = access.tls();
        let (tls, url, others) = (tls.clone(), url.to_owned(), others.to_owned());
        let cluster = access.directory().cluster().map(|cluster| cluster.to_string());
        let asked = tokio::task::spawn_blocking(move || {
            // Such as a socket's path.
            let Some((is_tls, host, port)) = place(&url) else { return Ok(()) };
            let leads = addresses(&host, port);
            let is_there = |other: &&String| {
                place(other).is_some_and(|(_, host, port)| !addresses(&host, port).is_disjoint(&leads))
            };
            if let Some(other) = others.iter().find(is_there) {
                return Err(Amiss::Other(other.clone()));
            }
            match is_tls {
                true => by_tls(&host, port, cluster.as_deref(), tls.as_ref()),
                false => plainly(&host, port, cluster.as_deref()),
            }
        });
        asked.await.unwrap_or(Ok(()))
    }
}

/// Whether it is by TLS, the host and the port.
fn place(url: &str) -> Option<(bool, String, u16)> {
    let url = reqwest::Url::parse(url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    Some((url.scheme() == "https", host, url.port_or_known_default()?))
}

fn addresses(host: &str, port: u16) -> BTreeSet<SocketAddr> {
    (host, port).to_socket_addrs().into_iter().flatten().collect()
}

fn plainly(host: &str, port: u16, cluster: Option<&str>) -> Result<(), Amiss> {
    match page(host, port, MEMBERS, None) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Err(Amiss::Nobody(error)),
        Ok(Some(Plain::Http(text))) => is_peers(&text, cluster),
        Ok(Some(Plain::Http2)) => Ok(()),
        // etcd hangs up on whoever comes without TLS.
        _ if speaks_tls(host, port) => Err(Amiss::Tls),
        Ok(_) => Err(Amiss::Mute),
        Err(error) => Err(Amiss::Nobody(error)),
    }
}

/// An agent that peers do not trust is told nothing.
fn by_tls(host: &str, port: u16, cluster: Option<&str>, tls: Option<&TlsFiles>) -> Result<(), Amiss> {
    if speaks_tls(host, port) {
        return match tls.map(|tls| page(host, port, MEMBERS, Some(tls))) {
            Some(Ok(Some(Plain::Http(text)))) => is_peers(&text, cluster),
            _ => Ok(()),
        };
    }
    match page(host, port, MEMBERS, None) {
        Ok(Some(Plain::Http(_) | Plain::Http2)) => Err(Amiss::Plain),
        Ok(_) => Err(Amiss::Mute),
        Err(error) => Err(Amiss::Nobody(error)),
    }
}

fn speaks_tls(host: &str, port: u16) -> bool {
    // With no authority in hand every certificate is a wrong one.
    matches!(handshake(host, port, None), Err(error) if fault::is_tls(&error))
}

fn is_peers(text: &str, cluster: Option<&str>) -> Result<(), Amiss> {
    let mut lines = text.lines().take_while(|line| !line.is_empty()).map(str::to_ascii_lowercase);
    let is_found = lines.next().is_some_and(|first| first.split(' ').nth(1) == Some("200"));
    let said = lines.find_map(|line| line.strip_prefix(CLUSTER).map(|id| id.trim().to_owned()));
    match (said.filter(|_| is_found), cluster) {
        (None, _) => Err(Amiss::NoPeerPort),
        (Some(said), Some(cluster)) if said != cluster => Err(Amiss::Foreign(said)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_peer_port_of_the_cluster_is_one() {
        for (said, cluster, expected) in [
            ("HTTP/1.0 200 OK\r\nX-Etcd-Cluster-Id: e4d1\r\n\r\n[]", Some("e4d1"), None),
            ("HTTP/1.0 200 OK\r\nX-Etcd-Cluster-Id: e4d1\r\n\r\n[]", None, None),
            (
                "HTTP/1.0 200 OK\r\nX-Etcd-Cluster-Id: e4d2\r\n\r\n[]",
                Some("e4d1"),
                Some("of cluster e4d2, another one"),
            ),
            ("HTTP/1.0 404 Not Found\r\n\r\n404 page not found", Some("e4d1"), Some("no peer port")),
            ("HTTP/1.0 200 OK\r\n\r\nX-Etcd-Cluster-Id: e4d1", Some("e4d1"), Some("no peer port")),
        ] {
            let amiss = is_peers(said, cluster).err().map(|amiss| amiss.to_string());
            match (amiss, expected) {
                (None, None) => {}
                (Some(amiss), Some(words)) => assert!(amiss.contains(words), "{amiss}"),
                (amiss, _) => panic!("{said}: {amiss:?}"),
            }
        }
    }
}
