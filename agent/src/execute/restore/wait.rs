//! Until the new cluster is whole: a majority of it serves once so many hosts have restored it.

use std::time::Duration;

use proto::ClusterId;
use tokio::time::{Instant, sleep};

use super::{NotRestored, Ready};
use crate::{
    observe::{Observer, view::ClusterView},
    playbook::Playbook,
    words::with_causes,
};

/// Between two looks.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a member is looked at that was just started: what is wrong with its start ends it at once.
const ENDS_AT_ONCE: Duration = Duration::from_secs(3);
/// How long members may refuse the playbook's user: so long a member may take that loads its users.
const DENIED: Duration = Duration::from_secs(10);

/// Who has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// Every member is ready.
    All,
    /// A majority serves, and these are not ready.
    Most(Vec<String>),
    /// This host's members run, and no majority serves yet. These are missed, and what is known of them.
    Few { missing: Vec<String>, known: Vec<String> },
    /// A signal came first.
    Interrupted,
}

impl Came {
    pub fn has_quorum(&self) -> bool {
        matches!(self, Self::All | Self::Most(_))
    }
}

impl Ready {
    /// Looks again and again, for as long as other hosts may take to come: `strategy.join_window`, and until a majority serves with the
    /// members of this host no less than `strategy.health`.
    pub(super) async fn await_all(
        &self,
        playbook: &Playbook,
        cluster: ClusterId,
        say: &mut impl FnMut(&str),
    ) -> Result<Came, NotRestored> {
        let observer = Observer::connect(&playbook.cluster)?;
        observer.access().directory().settle(cluster);
        let began = Instant::now();
        let window = playbook.strategy.join_window.max(ENDS_AT_ONCE);
        // Other hosts make as much data as this one did, each on a disk of its own.
        let patience = window.max(playbook.strategy.health);
        say("waiting for the other members of the new cluster");
        let mut denied = None;
        loop {
            self.must_run().await?;
            let seen = observer.probe().await;
            match seen {
                // Its members answer, and so nothing more is seen of them however long is waited.
                Err(why) if why.is_denial() && denied.get_or_insert_with(Instant::now).elapsed() > DENIED => {
                    return Err(why.into());
                }
                Err(ref why) if why.is_denial() => {}
                _ => denied = None,
            }
            let came = match &seen {
                Ok(view) => self.came(view),
                Err(why) => Came::Few { missing: self.others(), known: vec![with_causes(why)] },
            };
            let own_are_ready = seen.as_ref().is_ok_and(|view| self.own_are_ready(view));
            let enough = if came.has_quorum() && own_are_ready { window } else { patience };
            if came == Came::All || began.elapsed() > enough {
                return Ok(came);
            }
            sleep(AGAIN).await;
        }
    }

    fn came(&self, view: &ClusterView) -> Came {
        let is_ready = |name: &str| view.voters().any(|voter| *voter.name == *name && voter.is_ready());
        let missing: Vec<_> = self.origin.founders.keys().filter(|name| !is_ready(name)).cloned().collect();
        match (missing.is_empty(), view.leader().is_some()) {
            (true, true) => Came::All,
            (_, true) => Came::Most(missing),
            (_, false) => Came::Few { missing: self.others(), known: view.warnings.clone() },
        }
    }

    fn own_are_ready(&self, view: &ClusterView) -> bool {
        self.members
            .iter()
            .all(|member| view.voters().any(|voter| *voter.name == *member.own.node.name && voter.is_ready()))
    }

    fn others(&self) -> Vec<String> {
        let is_own = |name: &&String| self.members.iter().any(|member| member.own.node.name == **name);
        self.origin.founders.keys().filter(|name| !is_own(name)).cloned().collect()
    }

    async fn must_run(&self) -> Result<(), NotRestored> {
        for member in &self.members {
            let failed = |why| NotRestored::Member { name: member.own.node.name.clone(), why };
            if !member.own.status().await.map_err(failed)?.is_running() {
                let words = match &member.own.runtime {
                    Some(runtime) => runtime.last_words().await,
                    None => String::new(),
                };
                return Err(failed(format!("its process ended on the new data: {words}").into()));
            }
        }
        Ok(())
    }
}
