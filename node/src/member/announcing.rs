//! Tells the other members that this one is there, and hears what they are.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use proto::MemberId;
use tokio::time::timeout;
use tonic::Status;

use super::{Shared, wire};
use crate::peer::Remote;

/// What the others say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// They have no log yet.
    pub(super) new: usize,
    /// They have.
    pub(super) old: usize,
    /// Of those, such as are of a cluster that the same founders have restored from a snapshot, or that another list has founded.
    pub(super) elsewhere: usize,
}

impl Shared {
    /// Tells the others that this member is there, so that they need not wait for their next try; and hears what they are.
    pub(super) async fn announce(&self, members: &BTreeMap<u64, String>) -> Heard {
        let others = members.iter().filter(|(id, _)| **id != self.identity.member.0);
        let answers = others.map(|(id, address)| async { (*id, self.tell_of_start(*id, address).await) });
        let mut heard = Heard::default();
        for (id, answer) in join_all(answers).await {
            match answer {
                Ok(remote) if remote.is_new => heard.new += 1,
                Ok(_) => heard.old += 1,
                Err(status) if self.handshake.other_cluster(MemberId(id), status.metadata()).is_some() => {
                    heard.old += 1;
                    heard.elsewhere += 1;
                }
                // Somebody else is there by now, who has been added since.
                Err(status) if self.handshake.has_data(status.metadata()) => heard.old += 1,
                Err(_) => {}
            }
        }
        heard
    }

    async fn tell_of_start(&self, id: u64, address: &str) -> Result<Remote, Status> {
        let peer = consensus::Peer { id, address: address.to_owned() };
        let told = async { self.links.other(&peer)?.started(self.links.call(id, wire::Nothing {})).await };
        let answer = timeout(self.limits.round, told).await.map_err(|_| Status::unavailable("it does not answer"))?;
        self.links.answerer(id, &self.links.heed(id, answer)?)
    }
}
