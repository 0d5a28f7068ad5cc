//! Whether the cluster that is to be replaced serves, as far as the playbook's endpoints show it.

use proto::ClusterId;

use super::{
    NotRestored, Ready,
    judge::{Serving, Voter, judge},
};
use crate::{
    observe::{
        ObserveError, Observer,
        permission::Permission,
        view::{ClusterView, Member},
    },
    playbook::Playbook,
    words::with_causes,
};

impl Ready {
    /// Of the cluster whose data this host has.
    pub(super) async fn judge_old(
        &self,
        playbook: &Playbook,
        old: ClusterId,
        discard: bool,
    ) -> Result<(), NotRestored> {
        let observer = Observer::connect(&playbook.cluster)?;
        observer.access().directory().settle(old);
        Ok(judge(&serving(&observer, self.runs().await).await, self.founders(), discard)?)
    }

    /// Of whichever cluster is found beside the new one, by a host that has no data: it takes nothing from that, and adds to the new one.
    pub(super) async fn judge_other(
        &self,
        playbook: &Playbook,
        made: ClusterId,
        discard: bool,
    ) -> Result<(), NotRestored> {
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
        Ok(judge(&serving(&observer, false).await, self.founders(), discard)?)
    }

    async fn runs(&self) -> bool {
        for member in &self.members {
            // One that cannot be asked is not taken for stopped.
            if member.own.peek().await.map_or(true, |status| status.is_running()) {
                return true;
            }
        }
        false
    }
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
        Some(Permission::UserWanted | Permission::Denied) => {
            Serving::Unknown("authentication is on, and the playbook's user, if it has one, may not look".into())
        }
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
