//! A member that is removed from the cluster while its step is under way, or loses its data: nothing brings it back, so the step ends.
//!
//! A majority of the voters must say so, in two looks: one that lies would have the record deleted of a member that is down.
//! Then its record is deleted and the step forgotten, as the next process would do (PROTOCOL.md, R-6). Its process is left
//! as it is: what is started on the data of a removed member joins nothing. Data that is gone only this host sees, and it takes
//! nobody's word for it.

use std::{sync::Arc, time::Duration};

use proto::MemberId;

use super::{Abort, Execution};
use crate::{
    event::{RunEvent, trouble::LockLeft},
    keys::{At, StepLock, txn::Txn},
    observe::view::ClusterView,
    store::{TxnAnswer, stored},
};

const BETWEEN: Duration = Duration::from_millis(500);
/// How long the cluster has to say so: without a quorum a member that has ended is started without asking (I-10).
const SAID_WITHIN: Duration = Duration::from_secs(2);

impl Execution<'_> {
    /// Whether this process has stopped the member, in the step in hand.
    pub(super) fn has_stopped(&self, member: MemberId) -> bool {
        self.host.touched && self.host.past.in_hand.is_some_and(|in_hand| in_hand.member() == member)
    }

    /// The names of the members that say that it was removed, where they are enough to be believed.
    pub(super) async fn removed_by(&self, member: MemberId) -> Option<Vec<Arc<str>>> {
        let view = self.probe_at_once().await?;
        self.removed_by_view(member, &view).await
    }

    /// Goes by this view first, and then by one more.
    pub(super) async fn removed_by_view(&self, member: MemberId, view: &ClusterView) -> Option<Vec<Arc<str>>> {
        view.removed_by(member, self.seen.whole_view.as_ref())?;
        tokio::time::sleep(BETWEEN).await;
        self.probe_at_once().await?.removed_by(member, self.seen.whole_view.as_ref())
    }

    async fn probe_at_once(&self) -> Option<ClusterView> {
        tokio::time::timeout(SAID_WITHIN, self.cluster.observer.probe()).await.ok()?.ok()
    }

    /// Members of this host that were removed. What two looks have said once, each later one is believed on its own; and so is the
    /// first one of a removal that this process has called for.
    pub(super) async fn removed(&mut self, view: Option<&ClusterView>) -> Vec<MemberId> {
        let mut removed = Vec::new();
        let Some(view) = view else { return removed };
        let unlisted: Vec<_> = self.me.seats.members().filter(|member| view.member(*member).is_none()).collect();
        for member in unlisted {
            let is_expected = self.seen.removed.contains(&member) || self.host.removed.contains(&member);
            let by = match is_expected {
                true => view.removed_by(member, self.seen.whole_view.as_ref()),
                false => self.removed_by_view(member, view).await,
            };
            if by.is_some() {
                self.seen.removed.insert(member);
                removed.push(member);
            }
        }
        removed
    }

    /// Whether a member of this host lists itself alone, and was one of several a look ago: so it is where it was started by
    /// `--force-new-cluster`, which nothing makes good. A run that changes members may leave one, by its own removals.
    pub(super) fn alone(&self, view: &ClusterView) -> Option<Abort> {
        if self.me.intent.change.changes_members() {
            return None;
        }
        let [one] = &view.members[..] else { return None };
        let before = self.seen.whole_view.as_ref()?;
        let others: Vec<_> = before.voters().map(|voter| voter.id).filter(|id| *id != one.id).collect();
        let is_own = self.me.seats.members().any(|member| member == one.id);
        (is_own && !others.is_empty()).then_some(Abort::Alone { member: one.id, others })
    }

    /// Ends its step. What could not be deleted is left to the next process.
    pub(super) async fn let_go(&mut self, member: MemberId, by: Vec<Arc<str>>) -> Abort {
        match self.end_step_for_good(member, "it was removed from the cluster").await {
            Ok(lock) => Abort::Removed { member, by, lock },
            Err(abort) => abort,
        }
    }

    /// The same, of one that nobody starts again, as its data is gone: from now on it counts as any other that is not ready.
    pub(super) async fn let_go_of_the_emptied(&mut self, member: MemberId) -> Abort {
        match self.end_step_for_good(member, "its data is gone, and a member does not begin anew").await {
            Ok(lock) => Abort::DataGone { member, lock },
            Err(abort) => abort,
        }
    }

    async fn end_step_for_good(&mut self, member: MemberId, why: &str) -> Result<LockLeft, Abort> {
        self.cluster.excluded.set(None);
        self.tell(RunEvent::Failed { member, why });
        let attempt = self.host.past.in_hand.map(|in_hand| in_hand.attempt());
        let Some(keys) = self.keys().await else { return Ok(LockLeft::Perhaps) };
        let is_its = |record: &&At<StepLock>| Some(record.value.attempt) == attempt;
        let lock = keys.step.as_ref().filter(is_its).map(|lock| Txn::delete_down(lock.created));
        // Or the sign that it was given up.
        let sign = || keys.abandoned.iter().find(|(_, sign)| is_its(sign));
        let txn = lock.or_else(|| sign().map(|(member, sign)| Txn::clear_abandoned(*member, sign.created)));
        if let Some(txn) = txn {
            let (compares, ops) = stored::txn(&txn, None);
            let answer = self.cluster.store.txn(&compares, &ops).await;
            if !matches!(answer, TxnAnswer::Yes { .. } | TxnAnswer::No(_)) {
                return Ok(LockLeft::Perhaps);
            }
        }
        if let Some(in_hand) = self.host.past.in_hand {
            self.write(in_hand.forgotten())?;
        }
        Ok(LockLeft::Gone)
    }
}
