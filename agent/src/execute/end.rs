//! The end of a run: how it is reached past the machine, and what is left when it is.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use proto::MemberId;

use super::{Execution, node::OwnNode};
use crate::{
    event::{
        RunEvent,
        trouble::{LockLeft, Trouble},
    },
    machine::act::{Ending, Left},
    observe::view::ClusterView,
    plan::{Me, refusal::Refusal},
    store::stored::StoredError,
};

/// How long it is looked at the end which members of this host run.
pub const LAST_STATUS: Duration = Duration::from_secs(5);

/// How a run ended that the machine could not end.
#[derive(Debug, thiserror::Error)]
pub enum Abort {
    /// The journal cannot be written; this host's member was left running.
    #[error("the journal cannot be written")]
    Journal(#[source] crate::journal::file::JournalError),
    /// The shared keys cannot be understood.
    #[error("the shared keys cannot be understood")]
    Keys(#[source] StoredError),
    /// The cluster refuses to let this agent write.
    #[error("the cluster refuses to write the shared keys: {0}")]
    Refused(String),
    /// The member of the step in hand was removed from the cluster.
    #[error("member {member} was removed from the cluster")]
    Removed {
        member: MemberId,
        /// The names of those who say so.
        by: Vec<Arc<str>>,
        lock: LockLeft,
    },
    /// The member of the step in hand has lost its data.
    #[error("the data of member {member} is gone")]
    DataGone { member: MemberId, lock: LockLeft },
    /// The member that this host has just started has forgotten all others, and they it.
    #[error("member {member} is a cluster of its own")]
    Alone {
        member: MemberId,
        /// Who was a member beside it.
        others: Vec<MemberId>,
    },
    /// The operator asked twice, or once, and the host shuts down.
    #[error("stopped at once by a second signal, or the host's shutdown")]
    AtOnce,
    /// A guarded command has ended, and the host goes down, as it was to.
    #[error("the host goes down after a guarded command")]
    HostGoesDown,
}

/// What is left when a run has ended.
#[derive(Debug)]
pub struct Ended {
    pub ending: Result<Ending, Abort>,
    /// Who it was in the end, and at which hop of its way.
    pub me: Arc<Me>,
    /// Whether this process has stopped a member.
    pub touched: bool,
    pub view: Option<ClusterView>,
    /// When that was, where it is not how things stand at the end.
    pub stale: Option<SystemTime>,
    /// Members of this host that do not run.
    pub down: Vec<MemberId>,
    /// Why this host is not fit, where that has a reason of its own.
    pub trouble: Option<Trouble>,
    /// Why the last look saw nothing, if it did not.
    pub blind: Option<Trouble>,
    /// The step in hand, if one was left.
    pub in_hand: Option<MemberId>,
}

impl Execution<'_> {
    /// Ends before anything was begun.
    pub async fn refused(self, refusal: Refusal) -> Ended {
        self.ends(Ok(Ending::Refused(refusal))).await
    }

    pub(super) async fn ends(mut self, ending: Result<Ending, Abort>) -> Ended {
        if let Some(canary) = self.canary.take() {
            self.tell(RunEvent::Canary(&canary.end()));
        }
        self.cluster.leases.end(&self.cluster.store).await;
        let is_at_once = matches!(ending, Err(Abort::AtOnce | Abort::HostGoesDown));
        let is_doubtful = match &ending {
            // Who is there by now is what is told of such a run.
            Ok(Ending::Finished(_)) => self.me.intent.change.changes_members(),
            Err(Abort::AtOnce | Abort::HostGoesDown) => false,
            Ok(Ending::Refused(_) | Ending::Unprepared(_)) => self.seen.blind.is_some(),
            Ok(_) | Err(_) => true,
        };
        let is_now = self.look_at_the_end(is_doubtful).await && !is_at_once;
        let down = match is_at_once {
            true => Vec::new(),
            // A status command may hang, and this is only for the report.
            false => {
                tokio::time::timeout(LAST_STATUS, self.processes()).await.map_or_else(|_| Vec::new(), |(down, _)| down)
            }
        };
        self.console.reporter.down(&down);
        Ended {
            ending,
            me: self.me,
            touched: self.host.touched,
            stale: self.seen.last_seen.filter(|_| !is_now),
            down,
            view: self.seen.last_view,
            trouble: self.trouble,
            blind: self.seen.blind,
            in_hand: self.host.past.in_hand.map(|in_hand| in_hand.member()),
        }
    }

    /// A download that a signal ended did not fail.
    pub(super) fn ended(&mut self, ending: Ending) -> Ending {
        match ending {
            Ending::Unprepared(_) if self.console.interrupt.is_asked() => Ending::Interrupted,
            Ending::Step { member, why, left } => {
                let why = if left == Left::AsItIs { self.with_its_release(member, why) } else { why };
                Ending::Step { member, why, left }
            }
            ending => ending,
        }
    }

    /// A member that is left as it is may be on either side of its step.
    fn with_its_release(&self, member: MemberId, why: Arc<str>) -> Arc<str> {
        match self.node(member).and_then(OwnNode::known) {
            Some(side) => format!("{why}; it is set to run {}", side.release).into(),
            None => why,
        }
    }
}
