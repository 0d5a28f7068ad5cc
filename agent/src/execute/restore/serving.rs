//! Whether the cluster that is to be replaced serves, as far as the playbook's endpoints show it.

use std::collections::BTreeSet;

use proto::ClusterId;

use super::{
    NotRestored, Ready,
    judge::{Serving, Voter, judge},
    member::Member as Own,
};
use crate::{
    observe::{
        ObserveError, Observer,
        database::origin::Origin,
        permission::Permission,
        view::{ClusterView, Member},
    },
    playbook::Playbook,
    words::with_causes,
};

impl Ready {
    /// Of every cluster that members of this host are still to leave; and where they have no data, of the one that is met. Asked again
    /// where a restore is in hand: who serves may have changed since it was begun.
    pub(super) async fn judge_left(&self, playbook: &Playbook) -> Result<(), NotRestored> {
        let left: BTreeSet<_> = self.members.iter().filter_map(Own::leaves).collect();
        for old in &left {
            self.judge_old(playbook, *old).await?;
        }
        match &self.record {
            Some(record) if left.is_empty() && !self.is_placed() => self.judge_other(playbook, record.cluster).await,
            _ => Ok(()),
        }
    }

    /// Its members are asked wherever its own data says that they are: the endpoints may lead to this host alone.
    async fn judge_old(&self, playbook: &Playbook, old: ClusterId) -> Result<(), NotRestored> {
        let observer = Observer::connect(&playbook.cluster)?;
        let leaving = self.members.iter().filter(|member| member.leaves() == Some(old));
        let mut own = None;
        for member in leaving.clone() {
            own = own.or(member.place.database().await);
        }
        observer.settle_with(old, own.as_ref().map(|own| own.members.clone()).unwrap_or_default());
        let mut runs = false;
        for member in leaving {
            // One that cannot be asked is not taken for stopped.
            runs |= member.own.peek().await.map_or(true, |status| status.is_running());
        }
        let known = own.as_ref().or(self.saved.origin.as_ref()).map(voters_of).unwrap_or_default();
        Ok(judge(&serving(&observer, runs).await, &known, self.founders(), self.discard)?)
    }

    /// Of whichever cluster is found beside the new one, by a host that has no data: it takes nothing from that, and adds to the new one.
    pub(super) async fn judge_other(&self, playbook: &Playbook, made: ClusterId) -> Result<(), NotRestored> {
        let observer = Observer::connect(&playbook.cluster)?;
        let other = match observer.meet().await {
            Ok(()) => observer.access().directory().cluster(),
            Err(ObserveError::AnotherCluster { found, expected, .. }) => {
                [found, expected].into_iter().find(|cluster| *cluster != made)
            }
            Err(_) => None,
        };
        let Some(other) = other.filter(|other| *other != made) else { return Ok(()) };
        observer.access().directory().settle(other);
        let known = self.saved.origin.as_ref().map(voters_of).unwrap_or_default();
        Ok(judge(&serving(&observer, false).await, &known, self.founders(), self.discard)?)
    }
}

fn voters_of(origin: &Origin) -> Vec<Voter> {
    let voter = |of: &proto::etcdserverpb::Member| Voter {
        name: of.name.clone(),
        urls: of.peer_urls.iter().cloned().collect(),
    };
    origin.voters().map(voter).collect()
}

/// `runs` is whether a member of it runs on this host: it would answer where the endpoints were right.
async fn serving(observer: &Observer, runs: bool) -> Serving {
    let found = observer.look().await;
    match &found {
        Ok(view) if view.leader().is_some() => return voters(observer, view).await,
        Ok(_) | Err(ObserveError::NoMembership { .. }) => {}
        Err(ObserveError::NobodyAnswered { .. }) if !runs => {}
        Err(why @ ObserveError::NobodyAnswered { .. }) => {
            return Serving::Unknown(format!("a member of this host runs, and {}", with_causes(why)));
        }
        Err(why) => return Serving::Unknown(with_causes(why)),
    }
    // A member with authentication on tells some of it to nobody, and refuses the rest before it asks for a majority.
    match observer.reads_keys().await {
        Some(Permission::UserWanted | Permission::Denied) => Serving::Unknown(
            "authentication is on, and the playbook's user, if it has one, may not look: `cluster.auth`".into(),
        ),
        Some(Permission::Given) => {
            Serving::Unknown("its members do not agree who leads, and reads are answered".into())
        }
        None => Serving::No,
    }
}

async fn voters(observer: &Observer, view: &ClusterView) -> Serving {
    let urls = match observer.peer_urls().await {
        Ok(urls) => urls,
        Err(why) => return Serving::Unknown(with_causes(&why)),
    };
    let voter = |member: &Member| {
        let urls = urls.get(&member.id).cloned().unwrap_or_default();
        Voter { name: member.name.to_string(), urls }
    };
    let mut voters: Vec<_> = view.voters().map(voter).collect();
    voters.sort();
    Serving::Yes(voters)
}
