//! One look: this agent's own key, all shared keys in one Range, then every member, then this host.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use super::{Abort, Execution, gone::gone, send::Recorded};
use crate::{
    event::RunEvent,
    journal::restart::Stage,
    keys::{At, Keys, PREFIX, Run, RunState, StepLock},
    machine::act::{Event, Looked},
    observe::{
        error::DENIED,
        evidence::Evidence,
        view::{ClusterView, Role},
    },
    plan::{Verb, warning::Warning},
    playbook::Playbook,
    report::stop::warned::warned,
    store::{NotRead, stored},
};

/// How long the last look may take.
const LAST_LOOK: Duration = Duration::from_secs(5);
/// For how long an agent in a run looks for a leader before it ends.
const UNLED: Duration = Duration::from_secs(30);
/// For so long the shared keys may be refused to this user before the agent ends.
const DENIED_FOR: Duration = Duration::from_secs(15);
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How many different warnings of looks are told: a member may make up a new one each time.
const MAX_WARNINGS: usize = 64;

impl Execution<'_> {
    /// A member may be slow for a moment while another one is away for its step. Who waits in a run does not leave for that.
    pub(super) async fn look(&mut self) -> Result<Event, Abort> {
        let looked = self.look_once().await?;
        match self.is_unled_for_now(&looked) && self.await_leader().await {
            true => self.look_once().await,
            false => Ok(looked),
        }
    }

    /// Whether nobody leads, and this host has nothing to repair. Two voters have no leader as long as one of them is away.
    fn is_unled_for_now(&self, looked: &Event) -> bool {
        let Event::Looked(looked) = looked else { return false };
        let is_led = looked.view.as_ref().is_some_and(|view| view.leader().is_some());
        let is_at_rest = looked.down.is_empty() && self.host.past.in_hand.is_none();
        let takes_part = self.progress.joined.is_some() && !matches!(self.me.verb, Verb::Guard(_));
        let before = self.seen.whole_view.as_ref();
        !is_led && is_at_rest && takes_part && before.is_some_and(|view| view.voters().count() > 2)
    }

    /// Whether somebody does before [`UNLED`] is over.
    async fn await_leader(&self) -> bool {
        let until = Instant::now() + UNLED;
        while Instant::now() < until && !self.console.interrupt.is_asked() {
            self.pause(LOOK_AGAIN_AFTER).await;
            if self.cluster.observer.probe().await.is_ok_and(|view| view.leader().is_some()) {
                return true;
            }
        }
        false
    }

    async fn look_once(&mut self) -> Result<Event, Abort> {
        self.stay_registered().await;
        // A look may take seconds: who came while it was made is not among the keys that it read.
        let was_window_over = self.began.elapsed() >= self.playbook.strategy.join_window;
        let keys = self.read_keys().await?;
        if let Some(keys) = &keys {
            self.stay_clear(keys);
            self.miss_record(keys);
        }
        let view = match self.cluster.observer.look().await {
            Ok(mut view) => {
                if self.may_stop_next() || !view.is_whole() {
                    self.cluster.observer.ask_activities(&mut view).await;
                }
                self.seen.blind = None;
                Some(view)
            }
            Err(error) => {
                tracing::info!(error = %crate::words::with_causes(&error), "the members were not seen");
                self.seen.blind = Some(error.into());
                None
            }
        };
        if let Some(view) = &view {
            if let Some(alone) = self.alone(view) {
                return Err(alone);
            }
            self.saw(view);
            self.warn_once(&view.warnings);
        }
        if let Some(keys) = &keys {
            self.tell(RunEvent::Read(keys));
            self.note(keys);
            self.progress.read(keys);
        }
        let down = self.down().await;
        let (mut keys, gone) = match keys {
            Some(keys) => match gone(&self.cluster.store, &keys, &self.me, self.process).await {
                Ok(gone) => (Some(keys), gone),
                Err(error) => {
                    tracing::info!(%error, "what is left of a lease was not learnt");
                    (None, Vec::new())
                }
            },
            None => (None, Vec::new()),
        };
        let removed = self.removed(view.as_ref()).await;
        let survey = self.survey(&mut keys).await;
        Ok(Event::Looked(Box::new(Looked {
            keys,
            view,
            removed,
            down,
            is_window_over: was_window_over && !self.owner_may_come(),
            closed_until: closed_until(&self.playbook),
            lease_is_fresh: self.cluster.leases.baton_is_fresh(),
            gone,
            fresh: random(),
            survey,
        })))
    }

    /// Whether a stop may follow from this look, or a member was in the middle of something that keeps from it.
    fn may_stop_next(&self) -> bool {
        let was_busy = |view: &ClusterView| view.members.iter().any(|member| !member.activities.is_empty());
        self.cluster.leases.has_baton()
            || self.host.past.in_hand.is_some()
            || matches!(self.me.verb, Verb::Guard(_))
            || self.seen.last_view.as_ref().is_some_and(was_busy)
    }

    /// Asks the members of the look that was just made.
    pub(super) async fn examine(&self) -> Event {
        let evidence = match &self.seen.last_view {
            Some(view) => self.cluster.observer.examine_and_compare(view, self.playbook.verify.max_db).await,
            None => Evidence::default(),
        };
        Event::Examined(Arc::new(evidence))
    }

    /// All shared keys. Between the record and the stop they are read through another member than the one that said that
    /// the record was put: one that says so to two hosts at once would have both stop their members.
    async fn read_keys(&mut self) -> Result<Option<Keys>, Abort> {
        let read = match &self.cluster.leases.recorded {
            Some(recorded) => self.cluster.store.read_beside(&recorded.by).await,
            None => self.cluster.store.read().await,
        };
        let keys = match read {
            Ok(snapshot) => stored::keys(&snapshot).map_err(Abort::Keys)?,
            Err(NotRead::Oversize(error)) => return Err(Abort::Keys(error.into())),
            Err(NotRead::Unknown(error)) if error.0.contains(DENIED) => {
                // Whoever changes roles does it in several commands.
                let since = *self.seen.denied_since.get_or_insert_with(Instant::now);
                if since.elapsed() > DENIED_FOR {
                    return Err(Abort::Refused(error.0));
                }
                return Ok(None);
            }
            Err(NotRead::Unknown(error)) => {
                tracing::info!(%error, "the shared keys were not read");
                return Ok(None);
            }
        };
        self.seen.denied_since = None;
        let Some(Recorded { record, created, by }) = &self.cluster.leases.recorded else { return Ok(Some(keys)) };
        let stands =
            keys.step.as_ref().is_some_and(|down| down.value.attempt == record.attempt && down.created == *created);
        if stands || is_given_up(&keys, record) {
            return Ok(Some(keys));
        }
        self.cluster.store.endpoints().disbelieve(by);
        let text = format!(
            "{by} said that the step lock of {} was put, and another member does not show it: nothing is stopped, \
             and others are asked before {by} from now on",
            self.name_of(record.member),
        );
        self.warn(&text);
        Ok(None)
    }

    /// The record is the lock: where somebody else deletes it, another member may go beside this host's. That is said.
    fn miss_record(&mut self, keys: &Keys) {
        let Some(in_hand) = self.host.past.in_hand else { return };
        let attempt = in_hand.attempt();
        let stands = keys.step.as_ref().is_some_and(|down| down.value.attempt == attempt);
        let is_given_up = keys.abandoned.values().any(|lost| lost.value.attempt == attempt);
        if stands {
            self.cluster.leases.seen = Some(attempt);
        } else if self.cluster.leases.seen.take_if(|seen| *seen == attempt).is_some() && !is_given_up {
            let name = self.name_of(in_hand.member());
            self.warn(&format!(
                "the step lock of {name} was deleted while its step was under way, and not by this agent: another \
                 member may have been down beside it; look at who else may write below {PREFIX}"
            ));
        }
    }

    /// Takes a view over, and tells it.
    pub(super) fn saw(&mut self, view: &ClusterView) {
        self.tell(RunEvent::Looked(view));
        if view.is_whole() && self.me.seats.members().all(|member| view.member(member).is_some()) {
            self.seen.whole_view = Some(view.clone());
        }
        (self.seen.last_view, self.seen.last_seen) = (Some(view.clone()), Some(SystemTime::now()));
    }

    /// What is told at the end is how things stand then: after a step that went wrong, or a look that saw nothing, the
    /// last good look may be long over. Gives whether the view is one of now.
    pub(super) async fn look_at_the_end(&mut self, is_doubtful: bool) -> bool {
        if !is_doubtful {
            return true;
        }
        match tokio::time::timeout(LAST_LOOK, self.cluster.observer.look()).await {
            Ok(Ok(view)) => {
                self.saw(&view);
                true
            }
            Ok(Err(error)) => {
                self.seen.blind = Some(error.into());
                false
            }
            Err(_) => false,
        }
    }

    /// What the planner has to say of a look, and refuses nothing for.
    pub(super) fn warn_of(&mut self, warnings: &[Warning]) {
        for warning in warnings {
            let why = warned(warning, self.console.reporter.progress().names());
            if self.is_news(&why) {
                self.tell(RunEvent::Warned { warning, why: &why });
            }
        }
    }

    /// What every look finds again is said once.
    pub(super) fn warn_once(&mut self, warnings: &[String]) {
        for text in warnings {
            if self.is_news(text) {
                self.warn(text);
            }
        }
    }

    /// Whether this was not said before, and so much was not said yet.
    fn is_news(&mut self, text: &str) -> bool {
        self.console.warned.len() < MAX_WARNINGS && self.console.warned.insert(text.to_owned())
    }

    /// Progress is what anyone in the cluster has brought about; it starts the stall timeout anew.
    fn note(&mut self, keys: &Keys) {
        let standing = keys.run.as_ref().map(|run| &run.value).filter(|run| !run.is_over());
        if let Some(run) = standing.filter(|run| *run.intent == *self.me.intent && self.progress.joined != Some(run.id))
        {
            self.progress.joined = Some(run.id);
            if self.playbook.strategy.canary && self.canary.is_none() {
                self.canary = Some(self.cluster.observer.canary());
            }
            let run = run.id;
            if !matches!(self.me.verb, Verb::Guard(_)) {
                self.tell(RunEvent::Joined { run });
            }
        }
        let is_failed = |run: &At<Run>| matches!(run.value.state, RunState::Failed { .. });
        match keys.run.as_ref().is_some_and(is_failed) || !keys.abandoned.is_empty() {
            true => drop(self.progress.stands_still_since.get_or_insert_with(Instant::now)),
            false => self.progress.stands_still_since = None,
        }
        let target = self.playbook.target();
        let members = self.seen.last_view.iter().flat_map(|view| &view.members);
        let members = members.map(|member| {
            // What it takes in is progress, too.
            let applied = member.report().filter(|_| member.role == Role::Learner).map(|report| report.applied);
            (member.id, member.release() == target, member.is_ready(), applied)
        });
        self.progress.note(keys, members);
    }

    /// After a step failed or was given up, its host has as long to come back as others had to come at all.
    fn owner_may_come(&self) -> bool {
        let join_window = self.playbook.strategy.join_window;
        self.progress.stands_still_since.is_some_and(|since| since.elapsed() < join_window)
    }

    /// Leaves a member that another host takes down in peace: etcd from 3.5 on waits 7 s for open watches when it is
    /// asked to end. A step of this host has its own member to avoid, and only while that is down: a sole voter is the
    /// only way to the record that is to be deleted.
    fn stay_clear(&self, keys: &Keys) {
        let stage = self.host.past.restart().map(|in_hand| in_hand.stage);
        if matches!(stage, None | Some(Stage::Planned | Stage::Done(_))) {
            let down = keys.step.as_ref().map(|down| down.value.member);
            self.cluster.excluded.set(down.filter(|member| !self.me.seats.has(*member)));
        }
    }
}

/// When this host's window opens, for people; none while it is open.
pub(super) fn closed_until(playbook: &Playbook) -> Option<Arc<str>> {
    let window = playbook.strategy.window.as_ref()?;
    let opens = window.closed_until(SystemTime::now())?;
    Some(format!("{opens} (`strategy.window: \"{window}\"`)").into())
}

/// Whether somebody gave the step up since: then nobody lied of its record.
fn is_given_up(keys: &Keys, record: &StepLock) -> bool {
    keys.abandoned.get(&record.member).is_some_and(|lost| lost.value.attempt == record.attempt)
}

/// An id that was never used. The kernel's own; should it have none, time and chance of this process.
pub(super) fn random() -> u128 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    let digits: Arc<str> = text.trim().replace('-', "").into();
    u128::from_str_radix(&digits, 16).unwrap_or_else(|_| {
        use std::hash::{BuildHasher, Hasher, RandomState};
        let half = || u128::from(RandomState::new().build_hasher().finish());
        (half() << 64) | half()
    })
}
