//! A downgrade enabled or cancelled, and whether it is over.

use std::time::{Duration, Instant};

use proto::{ClusterVersion, MemberId};

use super::Execution;
use crate::{
    event::RunEvent,
    machine::act::Event,
    observe::{downgrade::Downgraded, view::Member},
    plan::settled::Missing,
};

/// Between two requests that the cluster did not answer.
const ASKED_EVERY: Duration = Duration::from_millis(500);
/// How long the cancel of a downgrade that does not end by itself is waited for.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

impl Execution<'_> {
    /// Asks until it is known, for as long as the cluster may take to settle. What follows is seen by the next look, which
    /// is made at once where this leader leads no more, or a member of this host is gone.
    pub(super) async fn downgrade(&mut self, to: Option<ClusterVersion>) -> Event {
        let since = match self.cluster.downgrade_asked {
            Some((asked, since)) if asked == to => since,
            _ => Instant::now(),
        };
        self.cluster.downgrade_asked = Some((to, since));
        let deadline = since + self.playbook.strategy.convergence;
        loop {
            let Some(leader) = self.leader() else { return Event::Done };
            match self.cluster.observer.downgrade(leader, to).await {
                Downgraded::Done => {
                    self.cluster.downgrade_asked = None;
                    self.tell(RunEvent::Lowering { to });
                    return Event::Done;
                }
                Downgraded::Refused(_) if self.is_downgrading(to).await => return Event::Done,
                Downgraded::Refused(why) => return Event::Failed(format!("it is refused: {why}").into()),
                Downgraded::Unknown(why) if Instant::now() >= deadline => {
                    return Event::Failed(format!("there is no answer, and it may have been done: {why}").into());
                }
                Downgraded::Unknown(_) if self.console.interrupt.is_asked() => return Event::Done,
                Downgraded::Unknown(_) => {
                    tokio::time::sleep(ASKED_EVERY).await;
                    if self.has_changed_hands(leader).await {
                        return Event::Done;
                    }
                }
            }
        }
    }

    /// Whether this leader leads no more, or a member of this host does not answer.
    async fn has_changed_hands(&self, leader: MemberId) -> bool {
        let Ok(view) = self.cluster.observer.probe().await else { return false };
        let is_gone = |member: &Member| self.me.seats.has(member.id) && member.report().is_none();
        view.leader().is_none_or(|now| now.id != leader) || view.members.iter().any(is_gone)
    }

    /// Whether another agent was first: with the version lowered, the cluster says that the target is none.
    async fn is_downgrading(&self, to: Option<ClusterVersion>) -> bool {
        let Ok(view) = self.cluster.observer.probe().await else { return false };
        let mut reports = view.members.iter().filter_map(Member::report);
        to.is_some() && reports.any(|report| report.downgrade == to || report.cluster_version == to)
    }

    /// Whether the downgrade of this run is still under way, though every member is where it leads to. Its leader ends it
    /// by itself, unless it was told not to look: then it is cancelled when half of the time has passed.
    pub(super) async fn still_going_down(&mut self, since: Instant) -> Option<Missing> {
        let to = self.me.intent.change.kind().lowers_to()?;
        let leader = self.leader()?;
        if !self.cluster.observer.is_going_down(leader, to).await? {
            return None;
        }
        if since.elapsed() > self.playbook.strategy.convergence / 2 {
            // etcd 3.5 does it and does not answer (etcd issue 15878): what came of it is asked for again.
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, self.cluster.observer.downgrade(leader, None)).await;
        }
        Some(Missing::GoingDown { target: to })
    }

    fn leader(&self) -> Option<MemberId> {
        self.seen.last_view.as_ref()?.leader().map(|leader| leader.id)
    }
}
