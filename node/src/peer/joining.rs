//! How a new member learns who it is: it asks those that `--initial-cluster` names, and finds itself by its peer URLs (etcd,
//! `GetClusterFromRemotePeers`).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proto::{ClusterId, MemberId};
use tokio::time::{Instant, sleep};
use tonic::{Request, Status, transport::Endpoint};

use super::{
    dial::{Dial, authority},
    sending::within,
    wire::{self, Frame, peer_client::PeerClient},
};
use crate::{host::Host, transport::tls::ClientTls};

/// Between two rounds.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// After so many without an answer that a majority has confirmed, one without it counts.
const UNCONFIRMED_ROUNDS: u32 = 2;
/// For one member to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// Who a new member is, and who the others are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    pub cluster: ClusterId,
    pub member: MemberId,
    /// Everybody, with peer URLs and commas between.
    pub members: BTreeMap<u64, String>,
}

/// Why a member does not join.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// Nobody answers.
    #[error("--initial-cluster-state=existing: no member of --initial-cluster answers: {0}")]
    Nobody(String),
    /// One was moved to where another is added.
    #[error(
        "--initial-cluster-state=existing: cluster {cluster} has several members at {urls}: `etcdctl member update` or `remove` one"
    )]
    Several { cluster: ClusterId, urls: String },
    /// It was not added.
    #[error(
        "--initial-cluster-state=existing: cluster {cluster} has no member at {urls}: add this one first \
         (`etcdctl member add NAME --peer-urls={urls}`), or give --initial-advertise-peer-urls as it was added"
    )]
    NotAdded {
        cluster: ClusterId,
        /// Its own, with commas between.
        urls: String,
    },
}

/// Asks these members, each by its peer URLs with commas between, for the one at these `own` URLs; again and again within the limit,
/// as the one that knows may be busy or behind.
///
/// # Errors
/// [`JoinError`]
pub async fn join(
    host: &Arc<dyn Host>,
    tls: Option<&Arc<ClientTls>>,
    members: &[String],
    own: &[String],
    limit: Duration,
) -> Result<Joined, JoinError> {
    let deadline = Instant::now() + limit;
    let mut failed = JoinError::Nobody("there is no other one".into());
    let mut rounds = 0;
    loop {
        rounds += 1;
        let mut unconfirmed = None;
        for urls in members {
            match ask(host, tls, urls).await.map(|joined| (joined.is_unconfirmed, found(joined, own))) {
                Ok((false, Ok(joined))) => return Ok(joined),
                Ok((true, Ok(joined))) => unconfirmed = Some(joined),
                Ok((_, Err(not_added))) => failed = not_added,
                Err(status) if matches!(failed, JoinError::Nobody(_)) => {
                    failed = JoinError::Nobody(format!("{urls}: {}", status.message()));
                }
                Err(_) => {}
            }
        }
        // A cluster may wait for this member to have a majority.
        if let Some(joined) = unconfirmed.filter(|_| rounds >= UNCONFIRMED_ROUNDS) {
            return Ok(joined);
        }
        if Instant::now() >= deadline {
            return Err(failed);
        }
        sleep(RETRY_INTERVAL).await;
    }
}

async fn ask(host: &Arc<dyn Host>, tls: Option<&Arc<ClientTls>>, urls: &str) -> Result<wire::Joined, Status> {
    let unreachable = |error: tonic::transport::Error| Status::unavailable(consensus::with_causes(&error));
    let endpoint = Endpoint::from_shared(format!("http://{}", authority(urls))).map_err(unreachable)?;
    let urls = urls.to_owned();
    let dial = Dial::new(host.clone(), tls.cloned(), Arc::new(move || urls.clone()), Arc::default());
    within(ANSWER, async {
        let channel = endpoint.connect_with_connector(dial).await.map_err(unreachable)?;
        let answer = PeerClient::new(channel).join(Request::new(wire::Nothing {})).await?;
        Frame::carried::<wire::Joined>(answer.into_inner())
    })
    .await
}

fn found(wire::Joined { cluster, members, .. }: wire::Joined, own: &[String]) -> Result<Joined, JoinError> {
    let cluster = ClusterId(cluster);
    let mut own = own.to_vec();
    own.sort();
    let is_own = |member: &&wire::Listed| {
        let mut urls = member.peer_urls.clone();
        urls.sort();
        urls == own
    };
    let found: Vec<_> = members.iter().filter(is_own).map(|member| MemberId(member.id)).collect();
    let member = match found[..] {
        [member] => member,
        [] => return Err(JoinError::NotAdded { cluster, urls: own.join(",") }),
        _ => return Err(JoinError::Several { cluster, urls: own.join(",") }),
    };
    let members = members.into_iter().map(|member| (member.id, member.peer_urls.join(","))).collect();
    Ok(Joined { cluster, member, members })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_member_finds_itself_by_all_of_its_urls_in_any_order() {
        let listed = |id, urls: &[&str]| wire::Listed { id, peer_urls: urls.iter().map(ToString::to_string).collect() };
        let answer = wire::Joined {
            cluster: 7,
            members: vec![listed(1, &["http://a:1"]), listed(2, &["http://b:1", "http://b:2"])],
            is_unconfirmed: false,
        };
        let asked = |own: &[&str]| found(answer.clone(), &own.iter().map(ToString::to_string).collect::<Vec<_>>());
        let joined = asked(&["http://b:2", "http://b:1"]).unwrap();
        assert_eq!((joined.cluster, joined.member), (ClusterId(7), MemberId(2)));
        assert_eq!(joined.members[&2], "http://b:1,http://b:2");
        let mut twice = answer.clone();
        twice.members.push(listed(3, &["http://a:1"]));
        assert!(matches!(found(twice, &["http://a:1".to_owned()]), Err(JoinError::Several { .. })));
        let refusal = asked(&["http://b:1"]).unwrap_err().to_string();
        assert!(refusal.contains("cluster 7 has no member at http://b:1: add this one first"), "{refusal}");
    }
}
