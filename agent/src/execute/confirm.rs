//! The last question before a healthy member is stopped.
//!
//! The look that let it go took as long as the slowest member's answers: what was read first in it may be many seconds old,
//! and a member that answers late chooses how many. So each voter that was ready is asked once more, all at once and for a
//! short time only, to show by itself that the step's record stands as of now. It serves, then, and nobody has taken the lock
//! away (I-1, I-2, R-2).

use std::{sync::Arc, time::Duration};

use proto::MemberId;
use tokio::{task::JoinSet, time::timeout};

use super::{Execution, error::ActError};
use crate::{
    boot_clock,
    host::runtime::Found,
    keys::{AttemptId, StepLock},
    machine::act::Event,
    observe::{
        access::Access,
        view::{ClusterView, Member},
    },
    store::shown::record_by,
};

/// How long they may take to answer.
const AT_ONCE: Duration = Duration::from_secs(2);
/// How old their answers may be when the member is stopped, on the clock that counts suspend.
const MOST_AGE: Duration = Duration::from_secs(3);

/// What was found of a member that may be stopped now.
#[derive(Debug)]
pub(super) struct Confirmed {
    member: MemberId,
    found: Found,
    /// Since when, on the boot clock.
    since: Duration,
}

impl Execution<'_> {
    /// What takes long is found out first, so that nothing but the stop itself comes after the answers.
    pub(super) async fn confirm(&mut self, member: MemberId) -> Event {
        let found = match self.found(member).await {
            Ok(found) => found,
            Err(why) => return Event::Failed(why.into()),
        };
        let since = boot_clock::now();
        match self.record_is_shown(member).await {
            Ok(()) => {
                self.host.confirmed = Some(Confirmed { member, found, since });
                Event::Done
            }
            Err(why) => {
                self.warn_once(&[format!("{} is not stopped yet: {why}", self.name_of(member))]);
                Event::Unconfirmed(why.into())
            }
        }
    }

    /// What was found of this member, where it was confirmed just now. An agent that stood still since then asks again, and
    /// so does one whose member turns back while it runs: that one may serve.
    pub(super) async fn confirmed(&mut self, member: MemberId) -> Result<Found, ActError> {
        let is_now = |confirmed: &Confirmed| boot_clock::now().saturating_sub(confirmed.since) < MOST_AGE;
        if let Some(confirmed) =
            self.host.confirmed.take().filter(|confirmed| confirmed.member == member && is_now(confirmed))
        {
            return Ok(confirmed.found);
        }
        let found = self.found(member).await?;
        let runs = match self.node(member) {
            Some(node) => node.peek().await?.is_running(),
            None => false,
        };
        if runs {
            self.record_is_shown(member).await?;
        }
        Ok(found)
    }

    /// Whether the others have just shown that the step's record stands; said once.
    pub(super) fn is_confirmed_now(&mut self, member: MemberId) -> bool {
        let confirmed = self.host.confirmed.take().filter(|confirmed| confirmed.member == member);
        confirmed.is_some_and(|confirmed| boot_clock::now().saturating_sub(confirmed.since) < MOST_AGE)
    }

    /// Whether every other voter that was ready shows the record of the step in hand.
    async fn record_is_shown(&self, member: MemberId) -> Result<(), ActError> {
        let (Some(view), Some(in_hand)) = (&self.seen.last_view, self.host.past.in_hand) else {
            return Err("nobody was seen who could show the record".into());
        };
        let asked: JoinSet<_> = witnesses(view, member)
            .map(|other| shows(Arc::clone(self.cluster.observer.access()), other.clone(), in_hand.attempt()))
            .collect();
        match asked.join_all().await.into_iter().flatten().next() {
            None => Ok(()),
            Some(doubt) => Err(format!("right before the stop {doubt}").into()),
        }
    }
}

/// Who can do without this member, and must: the voters that were ready beside it.
fn witnesses(view: &ClusterView, member: MemberId) -> impl Iterator<Item = &Member> {
    view.voters().filter(move |other| other.id != member && other.is_ready())
}

/// Asks one; what keeps from the stop, if anything does.
async fn shows(access: Arc<Access>, member: Member, attempt: AttemptId) -> Option<String> {
    let name = &member.name;
    let Some(address) = &member.reached else { return Some(format!("{name} was not reached")) };
    match timeout(AT_ONCE, record_by(&access, member.id, address)).await {
        Err(_) => Some(format!("{name} did not answer within {} s", AT_ONCE.as_secs())),
        Ok(Err(error)) => Some(format!("{name} did not answer: {error}")),
        Ok(Ok(record)) => Some(format!("{name} {}", doubt(record.as_ref(), attempt)?)),
    }
}

/// What is wrong with the record that a member shows.
fn doubt(record: Option<&StepLock>, attempt: AttemptId) -> Option<String> {
    match record {
        Some(record) if record.attempt == attempt => None,
        Some(record) => Some(format!("showed a step of the agent on {} instead", record.host_name)),
        None => Some("did not show the record of this step".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{record, view};

    #[test]
    fn every_other_voter_that_was_ready_is_asked() {
        for (members, down, asked) in [
            ("1+ 2+ 3*", 1, vec![2, 3]),
            ("1- 2+ 3*", 1, vec![2, 3]), // it is repaired
            ("1+ 2+ 3-", 1, vec![2]),    // allowed to be degraded: it was no loss before
            ("1+ 2+ 3. 4~ 5+", 5, vec![1, 2]),
            ("1+ 2+ 3l", 1, vec![2]), // a learner has no vote
            ("1+", 1, vec![]),
        ] {
            let view = view(members);
            let found: Vec<_> = witnesses(&view, MemberId(down)).map(|member| member.id.0).collect();
            assert_eq!(found, asked, "{members} without {down}");
        }
    }

    #[test]
    fn another_record_or_none_is_doubted() {
        let (shown, other) = (record(), AttemptId(10));
        assert_eq!(doubt(Some(&shown), shown.attempt), None);
        assert!(doubt(Some(&shown), other).unwrap().contains("on h2 instead"));
        assert!(doubt(None, other).unwrap().contains("did not show the record"));
    }
}
