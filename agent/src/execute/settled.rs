//! Waits until versions, gates and hashes agree everywhere, at the end of a run.
//!
//! What *settled* means is said by the planner; the deadline is the playbook's (I-11).

use std::time::{Duration, Instant, SystemTime};

use super::{
    Execution,
    send::{Saying, Waited},
};
use crate::{
    calendar::rfc3339,
    event::RunEvent,
    keys::{Participant, seat::Seat},
    machine::act::Event,
    observe::{difference::Difference, hash::Hashes, view::Member},
    plan::settled::{self, Missing},
    report::{differing, settling},
    words::with_causes,
};

impl Execution<'_> {
    /// Waits until versions, gates and hashes agree everywhere.
    pub(super) async fn await_settled(&mut self, back: bool) -> Event {
        self.tell(RunEvent::Settling);
        let waited = Waited {
            what: "the cluster to settle".into(),
            since: Some(rfc3339(SystemTime::now())),
            until: Some(settling::UNTIL.into()),
        };
        self.say_in_key(self.me.seats.members().collect(), Saying::WaitsFor(waited)).await;
        let began = Instant::now();
        let deadline = began + self.playbook.strategy.convergence;
        loop {
            let missing = match self.missing(back).await {
                None if !back => self.still_going_down(began).await,
                missing => missing,
            };
            let is_late = Instant::now() >= deadline;
            match &missing {
                None if is_late || self.compares_hashes().await => return self.compare_hashes().await,
                None => {}
                Some(missing) => {
                    self.tell(RunEvent::Unsettled(missing));
                    if is_late || missing.is_lasting() {
                        return Event::Failed(
                            settling::words(missing, self.console.reporter.progress().names()).into(),
                        );
                    }
                }
            }
            if self.is_run_over().await {
                return Event::Done;
            }
            if self.console.interrupt.is_asked() {
                return Event::Woke { expired: false };
            }
            self.pause(Duration::from_millis(100)).await;
        }
    }

    /// What one look finds missing.
    async fn missing(&mut self, back: bool) -> Option<Missing> {
        match self.cluster.observer.probe().await {
            Ok(view) => {
                let missing = settled::missing(&self.me.intent, &view, back);
                self.tell(RunEvent::Looked(&view));
                self.seen.last_view = Some(view);
                missing
            }
            Err(error) => Some(Missing::Answer { why: with_causes(&error) }),
        }
    }

    /// A hash stalls its member for the whole scan, so one agent asks for them: the first by host id of those that
    /// are at work.
    async fn compares_hashes(&self) -> bool {
        let keys = self.keys().await;
        let view = self.seen.last_view.as_ref();
        // Whoever has no member here may have its key from anywhere, and asks for nothing. A newcomer's has said no id yet.
        let is_there = |seat: &Seat| {
            let is_it = |member: &Member| seat.member == Some(member.id) || member.name == seat.name;
            view.is_none_or(|view| view.members.iter().any(is_it))
        };
        let has_member = |agent: &Participant| agent.seats.0.iter().any(is_there);
        let agents = keys.iter().flat_map(|keys| &keys.agents).filter(|(_, agent)| has_member(&agent.value));
        let first = agents.map(|(host, _)| *host).min();
        first.is_none_or(|first| first == self.me.host)
    }

    /// Another agent may have seen the cluster settle first, and may have begun the next hop of the way since.
    async fn is_run_over(&self) -> bool {
        let keys = self.keys().await;
        let run = keys.as_ref().and_then(|keys| keys.run.as_ref());
        run.is_some_and(|run| run.value.is_over() || *run.value.intent != *self.me.intent)
    }

    async fn compare_hashes(&mut self) -> Event {
        let Some(view) = self.seen.last_view.clone() else { return Event::Done };
        let hashes = match self.cluster.observer.hashes(&view, self.playbook.verify.max_db).await {
            Hashes::Equal { .. } => true,
            Hashes::NotCompared(reason) => {
                self.warn(&format!("the members' hashes were not compared: {reason}"));
                false
            }
            different => {
                let names = self.console.reporter.progress().names();
                let words = Difference::of(different).map(|found| differing::words(&found, names));
                return Event::Failed(words.unwrap_or_default().into());
            }
        };
        if view.has_gates() {
            self.tell(RunEvent::GatesSettled);
        }
        self.tell(RunEvent::Settled { hashes });
        Event::Done
    }
}
