//! Compaction by itself: what is older than a time, or more than so many revisions back, is forgotten.
//!
//! Every member looks at the revisions as they come, so that a new leader goes on where the last one was; only the leader
//! compacts. Source: etcd, server/etcdserver/api/v3compactor.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use proto::{Revision, etcdserverpb::CompactionRequest};
use tokio::time::{Instant, sleep};

use super::Shared;
use crate::{api_error::ApiError, config::AutoCompaction, entry::EntryKind, state::Refusal};

/// Looks within the time that is kept, or within an hour of it (etcd, `retryDivisor`).
const LOOKS: u32 = 10;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Where somebody gives a time of no length.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
/// Where revisions are counted (etcd, `revInterval`).
const COUNT_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Until this member ends.
pub(super) async fn run(shared: Arc<Shared>, kept: AutoCompaction) {
    let Some(mut plan) = Plan::new(kept) else { return };
    let began = Instant::now();
    loop {
        let revision = shared.machine.read(|state| state.keys.revision());
        if let Some(due) = plan.look(began.elapsed(), revision)
            && shared.compact_by_itself(due).await
        {
            plan.done(began.elapsed(), due);
        }
        sleep(plan.interval).await;
    }
}

impl Shared {
    /// Whether it was done. What was not is tried again at the next look.
    async fn compact_by_itself(&self, revision: Revision) -> bool {
        let raft_status = *self.group.raft_status().borrow();
        if raft_status.leader != Some(self.identity.member.0) {
            return false;
        }
        let what = EntryKind::Compact(CompactionRequest { revision: revision.0, physical: false });
        match self.propose_as_leader(raft_status.term, what).await {
            Ok(_) => {
                tracing::info!(revision = revision.0, "compacted by itself");
                true
            }
            // A client was quicker.
            Err(Refusal::Request(ApiError::Compacted)) => true,
            Err(error) => {
                tracing::warn!(revision = revision.0, %error, "not compacted by itself");
                false
            }
        }
    }
}

/// What is due when; pure.
#[derive(Debug)]
struct Plan {
    kept: Kept,
    /// Between two looks.
    interval: Duration,
    /// When and up to where it was compacted last.
    done: (Duration, Revision),
}

#[derive(Debug)]
enum Kept {
    /// The revisions of the last looks, oldest first, from the one that is as long ago as the time; how many these are; and how
    /// often it is compacted.
    Time {
        seen: VecDeque<Revision>,
        looks: usize,
        every: Duration,
    },
    Revisions(u64),
}

impl Plan {
    fn new(kept: AutoCompaction) -> Option<Self> {
        let (kept, interval) = match kept {
            AutoCompaction::Off => return None,
            AutoCompaction::Revisions(count) => (Kept::Revisions(count), COUNT_INTERVAL),
            AutoCompaction::Periodic(time) => {
                let interval = (time.min(HOUR) / LOOKS).max(SHORTEST_INTERVAL);
                let looks = time.as_nanos().div_ceil(interval.as_nanos()) + 1;
                let looks = usize::try_from(looks).ok()?;
                (Kept::Time { seen: VecDeque::new(), looks, every: time.min(HOUR) }, interval)
            }
        };
        Some(Self { kept, interval, done: (Duration::ZERO, Revision(0)) })
    }

    /// The revision to compact, if there is one, at this time since the start, where this is the newest.
    fn look(&mut self, now: Duration, newest: Revision) -> Option<Revision> {
        let (when, done) = self.done;
        let due = match &mut self.kept {
            Kept::Revisions(count) => Revision(newest.0.checked_sub(i64::try_from(*count).ok()?)?),
            Kept::Time { seen, looks, every } => {
                seen.push_back(newest);
                if seen.len() > *looks {
                    seen.pop_front();
                }
                if seen.len() < *looks || now.saturating_sub(when) < *every {
                    return None;
                }
                *seen.front()?
            }
        };
        (due > done && due.0 > 0).then_some(due)
    }

    fn done(&mut self, now: Duration, revision: Revision) {
        self.done = (now, revision);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What is compacted, and in which minute, where there is a revision a minute.
    fn compacted(kept: AutoCompaction, minutes: u32) -> Vec<(u32, i64)> {
        let mut plan = Plan::new(kept).unwrap();
        let mut done = Vec::new();
        let mut now = Duration::ZERO;
        loop {
            let minute = u32::try_from(now.as_secs() / 60).unwrap();
            if minute > minutes {
                return done;
            }
            if let Some(revision) = plan.look(now, Revision(minute.into())) {
                plan.done(now, revision);
                done.push((minute, revision.0));
            }
            now += plan.interval;
        }
    }

    #[test]
    fn what_is_older_than_the_time_is_compacted() {
        let hours = |hours: u64| AutoCompaction::Periodic(Duration::from_secs(hours * 3600));
        assert_eq!(compacted(hours(1), 240), [(66, 6), (126, 66), (186, 126)]);
        assert_eq!(compacted(hours(3), 300), [(186, 6), (246, 66)]);
        let minutes = AutoCompaction::Periodic(Duration::from_secs(10 * 60));
        assert_eq!(compacted(minutes, 30), [(11, 1), (21, 11)]);
    }

    #[test]
    fn as_many_revisions_are_kept() {
        assert_eq!(compacted(AutoCompaction::Revisions(20), 40), [(25, 5), (30, 10), (35, 15), (40, 20)]);
        assert_eq!(compacted(AutoCompaction::Revisions(1000), 40), []);
    }

    #[test]
    fn nothing_is_compacted_twice_and_nothing_where_it_is_off() {
        assert!(Plan::new(AutoCompaction::Off).is_none());
        let mut plan = Plan::new(AutoCompaction::Revisions(1)).unwrap();
        assert_eq!(plan.look(COUNT_INTERVAL, Revision(5)), Some(Revision(4)));
        plan.done(COUNT_INTERVAL, Revision(4));
        assert_eq!(plan.look(2 * COUNT_INTERVAL, Revision(5)), None);
        assert_eq!(plan.look(3 * COUNT_INTERVAL, Revision(0)), None);
    }
}
