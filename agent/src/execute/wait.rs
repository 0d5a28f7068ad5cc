//! Waits for others to go, until something changes.
//!
//! Each wait shows what it waits for, and has a deadline (I-11).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proto::MemberId;

use super::{
    Execution,
    send::{Saying, Waited},
};
use crate::{
    event::RunEvent,
    machine::act::Event,
    plan::refusal::Wait,
    report::wait::{until, words},
    store::Watch,
};

/// Between two looks while others work, unless something changes.
pub(super) const NOTHING_NEW: Duration = Duration::from_secs(2);
/// The same where nothing has come about for long: members have better to do than to be asked.
const STILL_NOTHING_NEW: Duration = Duration::from_secs(10);
/// A look is due after this part of the time that nothing has come about: so late it may see the next thing.
const PART: u32 = 10;
/// Between two looks at a newcomer that catches up.
const CATCH_UP_GAP: Duration = Duration::from_millis(200);
/// Between two looks at a member that is in the middle of something.
const BUSY_GAP: Duration = Duration::from_secs(1);
/// The least time between two looks.
pub(super) const LOOK_GAP: Duration = Duration::from_millis(50);
/// Word of a change that comes as soon as it is listened for: it may come without end.
const AT_ONCE: Duration = Duration::from_millis(10);

impl Execution<'_> {
    pub(super) async fn wait(&mut self, wait: Wait) -> Event {
        self.tell(RunEvent::Waiting(wait.clone()));
        let done = self.done_members();
        let reporter = &self.console.reporter;
        let names = reporter.progress().names();
        let waited = Waited { what: words(&wait, names), since: reporter.waiting_since(), until: until(&wait) };
        let saying = match &wait {
            Wait::Window { .. } => Saying::WaitsForItsWindow(waited),
            _ => Saying::WaitsFor(waited),
        };
        self.say_in_key(done, saying).await;
        tokio::time::sleep(self.progress.breath).await;
        // No key says that it has ended. Who only says so now and then has nobody take the baton for each time.
        if matches!(wait, Wait::Activity { .. }) {
            self.pause(BUSY_GAP).await;
        }
        let changes = self.cluster.watch.get_or_insert_with(|| Arc::new(Watch::of(&self.cluster.store))).clone();
        let window_ends = self.began + self.playbook.strategy.join_window;
        // That a newcomer has caught up changes no key.
        let is_of_a_newcomer = matches!(wait, Wait::CatchUp { .. });
        let gap = if is_of_a_newcomer { CATCH_UP_GAP } else { gap(self.progress.at.elapsed()) };
        // A look is due when the join window ends, too: that decides who takes part. And when it is time to give up.
        let stalls = self.progress.stalls_since() + self.playbook.strategy.stall_timeout;
        let due = [window_ends, stalls].into_iter().filter(|due| *due > Instant::now());
        let next = due.fold(Instant::now() + gap, Instant::min);
        let since = Instant::now();
        let is_told = tokio::select! {
            () = changes.changed() => true,
            () = tokio::time::sleep_until(next.into()) => false,
            () = self.console.interrupt.asked(1) => false,
        };
        self.progress.was_at_once = is_told && since.elapsed() < AT_ONCE;
        // It opens, whoever makes progress meanwhile.
        if matches!(wait, Wait::Window { .. }) {
            self.progress.excuse();
        }
        Event::Woke { expired: self.progress.stalls_since().elapsed() > self.playbook.strategy.stall_timeout }
    }

    pub(super) async fn pause(&self, time: Duration) {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = self.console.interrupt.asked(1) => {}
        }
    }

    /// Members of this host that were last seen ready on the run's target, for people.
    pub(super) fn done_members(&self) -> Vec<MemberId> {
        let target = self.playbook.target();
        let is_done = |member: &crate::observe::view::Member| {
            member.is_ready() && self.me.seats.has(member.id) && member.release() == target
        };
        self.seen.last_view.iter().flat_map(|view| &view.members).filter(|m| is_done(m)).map(|m| m.id).collect()
    }
}

/// Between two looks, where nothing has come about for so long.
fn gap(idle: Duration) -> Duration {
    (idle / PART).clamp(NOTHING_NEW, STILL_NOTHING_NEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_long_looks_less_often() {
        for (idle, expected) in [(0, 2), (20, 2), (50, 5), (100, 10), (36_000, 10)] {
            assert_eq!(gap(Duration::from_secs(idle)), Duration::from_secs(expected), "{idle}");
        }
    }
}
