//! Waits for a member of this host to become ready, and judges each look at it.
//!
//! What *ready* means is said by the view; the deadline is the playbook's (I-11).

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use proto::{MemberId, Release};

use super::{Abort, Execution, error::ActError, probe::Probed, send::Saying};
use crate::{
    event::RunEvent,
    host::runtime::{Status, discovery::undeleted},
    journal::restart::Binary,
    machine::act::Event,
    observe::view::ClusterView,
    store::stored,
    words::with_causes,
};

/// Between two looks at a member that is becoming ready.
const READY_PROBE_GAP: Duration = Duration::from_millis(20);
/// How often a member is looked at in its soak: each look costs all members some milliseconds of a processor.
const LOOKS_IN_A_SOAK: u32 = 30;
/// Between two of them at most: one that is not ready for so long is seen.
const SOAKING_PROBE_GAP: Duration = Duration::from_secs(5);
/// The shortest soak of which it is said how far it is.
const SHOWN_SOAK: Duration = Duration::from_secs(2);

/// One judgement of a member that is to become ready.
enum Judged {
    Ready,
    NotYet {
        why: Arc<str>,
        has_quorum: bool,
    },
    Ended,
    Wrong(Arc<str>),
    /// It is no member any more, as these say.
    Removed(Vec<Arc<str>>),
    /// It is the only member.
    Alone(Abort),
}

impl Execution<'_> {
    pub(super) async fn await_ready(&mut self, member: MemberId, on: Option<Binary>) -> Result<Event, Abort> {
        let deadline = Instant::now() + self.playbook.strategy.health;
        let soak = if on.is_some() { self.playbook.strategy.soak } else { Duration::ZERO };
        let (mut ready_since, mut probed) = (None, Probed::default());
        let mut was_started_again = false;
        loop {
            let began = Instant::now();
            let judged = self.judge(member, on).await;
            if !matches!(judged, Judged::NotYet { has_quorum: false, .. } | Judged::Ended) {
                self.register_while_repairing().await;
            }
            match judged {
                Judged::Ready => {
                    if let Some(why) = self.probe(member, on, &mut probed).await {
                        ready_since = None;
                        if Instant::now() >= deadline + soak {
                            return Ok(self.not_ready(member, why));
                        }
                        tokio::time::sleep(READY_PROBE_GAP).await;
                        continue;
                    }
                    // It serves again. A cluster of one has nobody else to keep the leases, and what is said meanwhile.
                    self.cluster.excluded.set(None);
                    let since = *ready_since.get_or_insert_with(Instant::now);
                    if since.elapsed() < soak {
                        self.say_how_far_the_soak_is(since.elapsed(), soak).await;
                        tokio::time::sleep((soak / LOOKS_IN_A_SOAK).clamp(READY_PROBE_GAP, SOAKING_PROBE_GAP)).await;
                        continue;
                    }
                    let Some(why) = self.unfinished(member).await else {
                        self.say_what_was_not_compared(member, on).await;
                        self.tell(RunEvent::Ready { member });
                        return Ok(Event::Done);
                    };
                    if Instant::now() >= deadline + soak {
                        let why = self.with_last_words(member, why).await;
                        return Ok(self.not_ready(member, why));
                    }
                    tokio::time::sleep(READY_PROBE_GAP).await;
                }
                // Whatever is started in its place joins nothing.
                Judged::Removed(by) if self.has_stopped(member) => return Err(self.let_go(member, by).await),
                Judged::Removed(_) => {
                    return Ok(self.not_ready(member, "the cluster has no such member any more".into()));
                }
                Judged::Alone(abort) => return Err(abort),
                Judged::Wrong(why) => return Ok(self.not_ready(member, why)),
                Judged::Ended if self.is_emptied_in_step(member).await => {
                    return Err(self.let_go_of_the_emptied(member).await);
                }
                // A process that was still ending when it was looked for is started once more.
                Judged::Ended if !was_started_again => {
                    was_started_again = true;
                    ready_since = None;
                    if let Err(why) = self.is_switched_to(member, on) {
                        return Ok(self.not_ready(member, why.into()));
                    }
                    if let Err(why) = self.start(member).await {
                        let why = self.with_last_words(member, why.into()).await;
                        return Ok(self.not_ready(member, why));
                    }
                }
                Judged::Ended => {
                    let why = self.how_it_ended(member).await;
                    let why = self.with_last_words(member, why).await;
                    return Ok(self.not_ready(member, why));
                }
                Judged::NotYet { why, has_quorum } => {
                    ready_since = None;
                    // A look that somebody else drew out says how it was when that began.
                    if began < deadline {
                        tokio::time::sleep(READY_PROBE_GAP).await;
                    } else if has_quorum {
                        let why = self.with_last_words(member, why).await;
                        return Ok(self.not_ready(member, why));
                    } else {
                        let why = self.with_last_words(member, why).await;
                        self.warn(&format!("{} is not ready: {why}", self.name_of(member)));
                        return Ok(Event::NoQuorum);
                    }
                }
            }
        }
    }

    /// Each second, for whoever looks.
    async fn say_how_far_the_soak_is(&mut self, soaked: Duration, soak: Duration) {
        let done = self.participant().map(|said| said.done);
        if let Some(done) = done.filter(|_| soak >= SHOWN_SOAK) {
            self.say_in_key(done, Saying::Does(format!("soaking {} of {} s", soaked.as_secs(), soak.as_secs()))).await;
        }
    }

    /// Whether a step is in hand of one that cannot be started any more, as its data is gone.
    async fn is_emptied_in_step(&self, member: MemberId) -> bool {
        let Some(node) = self.node(member).filter(|_| self.host.past.in_hand.is_some()) else { return false };
        node.has_nothing_to_start().await
    }

    /// A member may be ready while its supervisor still waits for its word, and would end it for want of that.
    async fn unfinished(&self, member: MemberId) -> Option<Arc<str>> {
        self.node(member)?.runtime.as_ref()?.unfinished().await.map(Arc::from)
    }

    /// A supervisor whose `status` prints no pid, or one that is gone, leaves open which executable runs.
    async fn say_what_was_not_compared(&mut self, member: MemberId, on: Option<Binary>) {
        let Some(node) = self.node(member).filter(|node| on.is_some() && node.sides.is_some()) else { return };
        if matches!(node.status().await, Ok(status) if status.is_running() && status.process().is_none()) {
            let name = self.name_of(member);
            self.warn(&format!(
                "{name}: which executable runs was not compared, as its `status` prints no pid, or one that is gone"
            ));
        }
    }

    /// A switch may have failed: then what would be started is not what the journal allows.
    fn is_switched_to(&self, member: MemberId, on: Option<Binary>) -> Result<(), ActError> {
        let Some(node) = self.node(member) else { return Ok(()) };
        let Some(expected) = on.and_then(|on| node.sides.as_ref()?.side(on).executable.clone()) else { return Ok(()) };
        if !expected.exists() {
            return Err(ActError::from(format!(
                "{} is not there; put that release back, from its artifact or another host, and give the same command",
                expected.display()
            )));
        }
        match node.executable()? {
            Some(current) if other_executable(&expected, &current).is_some() => {
                Err(ActError::from(format!("`binary` leads to {}, not to {}", current.display(), expected.display())))
            }
            _ => Ok(()),
        }
    }

    fn not_ready(&mut self, member: MemberId, why: Arc<str>) -> Event {
        self.cluster.excluded.set(None);
        self.tell(RunEvent::Failed { member, why: &why });
        Event::Failed(why)
    }

    async fn judge(&mut self, member: MemberId, on: Option<Binary>) -> Judged {
        let Some(node) = self.node(member) else { return Judged::Wrong(Arc::from("this host has no such member")) };
        let status = match node.status().await {
            Ok(status) => status,
            Err(why) => return Judged::NotYet { why: why.into(), has_quorum: true },
        };
        let runs = status.is_running() || on.is_none() && self.was_hidden(member).await;
        if !runs {
            let by = if self.has_stopped(member) { self.removed_by(member).await } else { None };
            return by.map_or(Judged::Ended, Judged::Removed);
        }
        let side = on.and_then(|on| Some(node.sides.as_ref()?.side(on).clone()));
        let expected = side.as_ref().and_then(|side| side.executable.as_ref());
        let exe = status.process().and_then(|process| process.exe.as_ref());
        if let Some(why) = expected.zip(exe).and_then(|(expected, exe)| other_executable(expected, exe)) {
            // What a supervisor starts may be a shell or the like that becomes the member in a moment.
            let may_become_it = matches!(node.node.runtime, crate::playbook::Runtime::Command(_));
            return if may_become_it { Judged::NotYet { why, has_quorum: true } } else { Judged::Wrong(why) };
        }
        let looked = tokio::select! {
            looked = self.cluster.observer.probe() => looked,
            () = ended(&status) => {
                return Judged::NotYet { why: Arc::from("its process ended"), has_quorum: true };
            }
        };
        match looked {
            Ok(view) => {
                self.seen.blind = None;
                let judged = match (self.alone(&view), self.removed_by_view(member, &view).await) {
                    (Some(abort), _) => Judged::Alone(abort),
                    (None, Some(by)) => Judged::Removed(by),
                    (None, None) => match judge_view(&view, member, side.as_ref().map(|side| &side.release)) {
                        Judged::Ready => self.judge_data(&view).await,
                        judged => judged,
                    },
                };
                self.tell(RunEvent::Looked(&view));
                self.seen.last_view = Some(view);
                judged
            }
            Err(error) => {
                let why = with_causes(&error).into();
                self.seen.blind = Some(error.into());
                Judged::NotYet { why, has_quorum: false }
            }
        }
    }
}

impl Execution<'_> {
    /// Whether the only voter has what it had: the record of this very step, above all. It has the ids that it had on whichever data it is
    /// started, as they are made of its URL and its token; of several, the others would not take it back.
    async fn judge_data(&self, view: &ClusterView) -> Judged {
        let attempt = self.host.past.in_hand.map(|in_hand| in_hand.attempt());
        let is_known = attempt.is_some() && self.cluster.leases.seen == attempt;
        if view.voters().count() > 1 || !is_known {
            return Judged::Ready;
        }
        // There is nobody else to ask, and it serves.
        self.cluster.excluded.set(None);
        let keys = match self.cluster.store.read().await {
            Ok(snapshot) => stored::keys(&snapshot).ok(),
            Err(_) => None,
        };
        match keys.map(|keys| keys.step.map(|step| step.value.attempt) == attempt) {
            Some(true) => Judged::Ready,
            None => Judged::NotYet { why: Arc::from("the shared keys are not read from it"), has_quorum: true },
            Some(false) => Judged::NotYet {
                why: Arc::from(
                    "it serves nothing of this run: it was started on other data than it had; see which data directory its start names",
                ),
                has_quorum: true,
            },
        }
    }
}

/// Waits for the end of the process that a look found, if it is known.
async fn ended(status: &Status) {
    if let Some(Ok(Some(process))) = status.process().map(|process| process.identity.open())
        && process.ended().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

fn judge_view(view: &ClusterView, member: MemberId, release: Option<&Release>) -> Judged {
    let has_quorum = view.leader().is_some();
    let Some(seen) = view.member(member) else {
        return Judged::NotYet { why: Arc::from("no member that answers lists it"), has_quorum };
    };
    match (seen.release(), release) {
        (Some(found), Some(expected)) if found != expected && expected.0.major != 0 => {
            return Judged::Wrong(Arc::from(format!("it runs {found}, not {expected}")));
        }
        _ => {}
    }
    match seen.step_trouble() {
        None => Judged::Ready,
        Some(why) => Judged::NotYet { why: Arc::from(why), has_quorum },
    }
}

/// A symlink says nothing about a process: what runs must be the very file.
fn other_executable(expected: &Path, exe: &Path) -> Option<Arc<str>> {
    let expected = std::fs::canonicalize(expected).unwrap_or_else(|_| expected.into());
    let is_it = std::fs::canonicalize(exe).unwrap_or_else(|_| exe.into()) == expected;
    let runs = undeleted(exe.to_owned());
    let gone = if runs == exe { "" } else { ", which was replaced or removed" };
    (!is_it).then(|| Arc::from(format!("its process runs {}{gone}, not {}", runs.display(), expected.display())))
}
