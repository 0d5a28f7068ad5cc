//! How a member stands in its group, told as etcd tells it: a leader that no majority answers leads nobody, and a follower that
//! hears nothing of its leader has none (raft dissertation, section 6.2). openraft keeps both for as long as no other is elected.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use openraft::{Raft, RaftMetrics, alias::InstantOf, async_runtime::watch::WatchReceiver as _};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

use crate::{machine::Applier, types::Types};

/// So many looks in an election timeout. Looks are counted, and no time is measured: what came while this process stood still is
/// read before the next look but one.
const LOOKS: u32 = 4;

/// How a member stands in the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RaftStatus {
    /// Its term.
    pub term: u64,
    /// Who leads there, as far as it knows.
    pub leader: Option<u64>,
    /// Whether it has no vote.
    pub is_learner: bool,
    /// Whether it can go on; once it cannot, it never will.
    pub is_running: bool,
}

/// Set with each append that comes from the leader of this member's term.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaderHeard(Arc<AtomicBool>);

impl LeaderHeard {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// What openraft says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reported {
    status: RaftStatus,
    evidence: Evidence,
}

/// What shows that there is a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// This member leads, and has the only vote.
    Alone,
    /// This member leads: a majority has answered what was sent then.
    Answered(Option<InstantOf<Types>>),
    /// Another one does.
    Heard,
}

impl Reported {
    fn of(metrics: &RaftMetrics<Types>) -> Self {
        let leads = metrics.current_leader == Some(metrics.id);
        Self {
            status: RaftStatus {
                term: metrics.current_term,
                leader: metrics.current_leader,
                // One that has not read yet who the members are is none: clients would not try again what a learner refuses.
                is_learner: metrics.membership_config.membership().learner_ids().any(|id| id == metrics.id),
                is_running: metrics.running_state.is_ok(),
            },
            evidence: match leads {
                true if metrics.membership_config.voter_ids().eq([metrics.id]) => Evidence::Alone,
                true => Evidence::Answered(metrics.last_quorum_acked.map(|at| *at)),
                false => Evidence::Heard,
            },
        }
    }
}

/// For how many looks nothing has shown that there is a leader.
#[derive(Debug)]
struct Silence {
    last: Reported,
    looks: u32,
}

impl Silence {
    fn new(reported: Reported) -> Self {
        Self { last: reported, looks: 0 }
    }

    /// What was reported may show it; what was heard from another leader does.
    fn hears(&mut self, reported: Reported, was_heard: bool) {
        let is_shown = match reported.evidence {
            Evidence::Alone => true,
            Evidence::Answered(_) => reported.evidence != self.last.evidence,
            Evidence::Heard => was_heard,
        };
        let of = |reported: &Reported| (reported.status.term, reported.status.leader);
        if is_shown || of(&reported) != of(&self.last) {
            self.looks = 0;
        }
        self.last = reported;
    }

    fn look(&mut self) {
        self.looks = self.looks.saturating_add(1);
    }

    fn status(&self) -> RaftStatus {
        let RaftStatus { leader, .. } = self.last.status;
        RaftStatus { leader: leader.filter(|_| self.looks <= LOOKS), ..self.last.status }
    }
}

/// The status as it changes, on a task of its own.
pub(crate) fn watched(
    raft: &Raft<Types, Applier>,
    heard: LeaderHeard,
    election: Duration,
) -> watch::Receiver<RaftStatus> {
    let mut metrics = raft.metrics();
    let mut silence = Silence::new(Reported::of(&metrics.borrow_watched()));
    let (sender, raft_status) = watch::channel(silence.status());
    tokio::spawn(async move {
        let mut looks = interval((election / LOOKS).max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_look = tokio::select! {
                changed = metrics.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => break,
                },
                _ = looks.tick() => true,
                () = sender.closed() => break,
            };
            // What was heard between two looks counts at the next one: metrics change with each entry.
            if is_look {
                silence.look();
            }
            let was_heard = is_look && heard.take();
            silence.hears(Reported::of(&metrics.borrow_watched()), was_heard);
            let now = silence.status();
            sender.send_if_modified(|raft_status| std::mem::replace(raft_status, now) != now);
        }
        sender.send_modify(|raft_status| raft_status.is_running = false);
        // Whoever waits for a change goes on waiting: without a sender each wait would be over at once, again and again.
        sender.closed().await;
    });
    raft_status
}

#[cfg(test)]
mod status_test;
