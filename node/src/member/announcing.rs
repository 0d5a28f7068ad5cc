//! Tells the other members that this one is there, and hears what they are.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use proto::MemberId;
use tokio::time::timeout;
use tonic::Status;

use super::{Shared, wire};
use crate::peer::Remote;

/// Of one member that was told.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) remote: Remote,
    /// Why this member may take no part beside it, as either sees it.
    pub(super) mismatch: Option<String>,
}

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
                Ok(answer) if answer.remote.is_new => heard.new += 1,
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

    /// The first question that a member asks.
    pub(super) async fn tell_of_start(&self, id: u64, address: &str) -> Result<Answer, Status> {
        let peer = consensus::Peer { id, address: address.to_owned() };
        let told = async { self.links.other(&peer)?.started(self.links.call(id, wire::Nothing {})).await };
        let answer = timeout(self.limits.round, told).await.map_err(|_| Status::unavailable("it does not answer"))?;
        let answer = self.links.heed(id, answer)?;
        let remote = self.links.answerer(id, &answer)?;
        // One that waits itself, or is new, does not know how its cluster stands, and is no reason to stay out.
        let counts = !remote.waits && !remote.is_new;
        let own = self.handshake.judge_own(&remote).err().filter(|_| counts).map(|mismatch| mismatch.to_string());
        let theirs = Some(answer.into_inner().refused).filter(|refused| !refused.is_empty() && counts);
        Ok(Answer { remote, mismatch: theirs.or(own) })
    }
}
