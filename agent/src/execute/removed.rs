//! A member that is removed from the cluster while its step is under way: nothing brings it back, so the step ends.
//!
//! Its record is deleted and the step forgotten, as the next process would do (ARCHITECTURE.md, R-6). Its process is left
//! as it is: what is started on the data of a removed member joins nothing.

use std::time::Duration;

use proto::MemberId;

use super::{Abort, Execution};
use crate::{
    journal::progress::Entry,
    report::Happening,
    rollout::{TxnAnswer, stored, txn::Txn},
};

/// How long the cluster has to say so: without a quorum a member that has ended is started without asking (I-10).
const SAID_WITHIN: Duration = Duration::from_secs(2);

impl Execution<'_> {
    /// Whether this process has stopped the member, in the step in hand.
    pub(super) fn has_stopped(&self, member: MemberId) -> bool {
        self.touched && self.past.in_hand.is_some_and(|in_hand| in_hand.step.member == member)
    }

    /// Whether a cluster that has a leader lists it no more.
    pub(super) async fn is_removed(&self, member: MemberId) -> bool {
        match tokio::time::timeout(SAID_WITHIN, self.observer.glance()).await {
            Ok(Ok(view)) => view.leader().is_some() && view.member(member).is_none(),
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Ends its step. What could not be deleted is left to the next process.
    pub(super) async fn let_go(&mut self, member: MemberId) -> Abort {
        self.excluded.set(None);
        self.tell(Happening::Failed { member, why: "it was removed from the cluster" });
        let attempt = self.past.in_hand.map(|in_hand| in_hand.step.attempt);
        let Some(keys) = self.keys().await else { return Abort::Removed { member, is_recorded: true } };
        let record = keys.down.filter(|down| Some(down.value.attempt) == attempt);
        let is_recorded = match record {
            Some(record) => {
                let (compares, ops) = stored::txn(&Txn::delete_down(record.created), None);
                !matches!(self.store.txn(&compares, &ops).await, TxnAnswer::Yes { .. } | TxnAnswer::No(_))
            }
            None => false,
        };
        if !is_recorded && let Err(abort) = self.write(Entry::Forgotten) {
            return abort;
        }
        Abort::Removed { member, is_recorded }
    }
}
