//! What has happened so far, as data: the state behind display, lines and result. No I/O.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use proto::MemberId;

use crate::{
    calendar::rfc3339,
    event::RunEvent,
    keys::{Backup, RunId, change::Change, seat::Seats},
    observe::{canary::Availability, view::ClusterView},
    plan::{refusal::Wait, settled::Missing},
    report::{
        change::words,
        file::json::{Facts, MemberLine, members, versions},
        names::{Names, printable},
        settling,
        shown::{
            forecast::StepLine,
            gates::{GatesLine, gates},
        },
        wait,
    },
};

const STARTING: &str = "starting";
/// What ends the wait for a member that was started.
const READY: &str = "it has been healthy for `strategy.soak`, or `strategy.health` is over";

#[derive(Debug, Default)]
pub struct Progress {
    names: Names,
    mine: Seats,
    view: Option<ClusterView>,
    seen_at: Option<SystemTime>,
    /// Members of this host that do not run.
    down: Vec<MemberId>,
    run: Option<RunId>,
    change: Option<Change>,
    /// When this was told of first.
    began: Option<Instant>,
    /// What is waited for, and since when.
    waiting: Option<(Wait, Instant)>,
    /// Since when the cluster settles.
    settling: Option<Instant>,
    unsettled: Option<Missing>,
    /// Of a way over several releases: which hop it is about, of how many, and what the first one it was about begins with.
    hop: Option<(usize, usize)>,
    from: Option<Option<String>>,
    preparing: Option<String>,
    steps: Vec<Begun>,
    /// What was saved before anything was changed; of a way over several releases before this hop of it.
    backup: Option<Arc<Backup>>,
    /// That of the last run, whosever it is.
    last_backup: Option<Arc<Backup>>,
    warnings: Vec<String>,
    changed: bool,
    canary: Option<Availability>,
    /// What is done to a member at the moment, by this process.
    doing: Option<(MemberId, &'static str)>,
    /// Since when it is.
    doing_since: Option<Instant>,
}

/// A step that this process began, or goes on with.
#[derive(Debug)]
struct Begun {
    member: MemberId,
    back: bool,
    /// A guarded command has begun in it.
    is_guarded: bool,
    state: &'static str,
    since: Instant,
    took: Option<Duration>,
}

impl Begun {
    fn new(member: MemberId, back: bool, since: Instant) -> Self {
        Self { member, back, is_guarded: false, state: "running", since, took: None }
    }
}

impl Progress {
    /// Says who is called what, before the members themselves were asked.
    pub fn learn(&mut self, members: &BTreeMap<String, MemberId>) {
        self.names.learn(members);
    }

    /// Says which members run on this host.
    pub fn own(&mut self, seats: &Seats) {
        self.mine = seats.clone();
    }

    /// Says which of them do not run, at the end.
    pub fn down(&mut self, members: &[MemberId]) {
        self.down = members.to_vec();
    }

    /// Says when the members were seen.
    pub fn seen(&mut self, at: SystemTime) {
        self.seen_at = Some(at);
    }

    pub fn take(&mut self, event: &RunEvent, now: Instant) {
        self.began.get_or_insert(now);
        self.waiting = match event {
            RunEvent::Waiting(wait) => {
                let goes_on = self.waiting.take().filter(|(earlier, _)| earlier.goes_on_as(wait));
                Some((wait.clone(), goes_on.map_or(now, |(_, since)| since)))
            }
            // A look or a word in the middle of a wait does not end it.
            RunEvent::Looked(_)
            | RunEvent::Read(_)
            | RunEvent::Warning(_)
            | RunEvent::Warned { .. }
            | RunEvent::Ended { .. } => self.waiting.take(),
            RunEvent::BatonGivenBack => self.waiting.take(),
            _ => None,
        };
        self.unsettled = match event {
            RunEvent::Unsettled(missing) => Some((*missing).clone()),
            RunEvent::Looked(_)
            | RunEvent::Read(_)
            | RunEvent::Warning(_)
            | RunEvent::Warned { .. }
            | RunEvent::Ended { .. } => self.unsettled.take(),
            _ => None,
        };
        self.preparing = match event {
            RunEvent::Preparing { what } => Some(printable(what).to_string()),
            RunEvent::BackingUp { percent } => Some(format!("saving a member's database, {percent} %")),
            RunEvent::Warning(_) | RunEvent::Warned { .. } => self.preparing.take(),
            _ => None,
        };
        match event {
            RunEvent::Settling => self.settling = Some(now),
            RunEvent::Begun { change: Some(change), .. } => self.change = Some((*change).clone()),
            RunEvent::Hop { number, of, change } => {
                self.from.get_or_insert_with(|| versions(change).0);
                (self.change, self.hop) = (Some((*change).clone()), Some((*number, *of)));
            }
            RunEvent::Canary(found) => self.canary = Some((*found).clone()),
            RunEvent::Joined { run } => self.run = Some(*run),
            RunEvent::Looked(view) => {
                self.names.learn_members(view);
                self.view = Some((*view).clone());
            }
            RunEvent::Read(keys) => {
                self.names.learn_hosts(keys);
                self.last_backup = keys.run.as_ref().and_then(|run| run.value.backup.clone());
                let run = keys.run.as_ref().map(|run| &run.value).filter(|run| Some(run.id) == self.run);
                self.backup = run.and_then(|run| run.backup.clone()).or(self.backup.take());
            }
            RunEvent::Warning(text) | RunEvent::Warned { why: text, .. } => {
                self.warnings.push(printable(text).to_string());
            }
            RunEvent::HookFailed { hook, why, .. } => {
                self.warnings.push(format!("hook {} failed: {}", printable(hook), printable(why)));
            }
            RunEvent::Decided(_)
            | RunEvent::CommandBegun { .. }
            | RunEvent::DataPutAside { .. }
            | RunEvent::NewcomerAdded { .. }
            | RunEvent::Promoted { .. }
            | RunEvent::Removed { .. }
            | RunEvent::Mended { .. }
            | RunEvent::NodeStarted { .. }
            | RunEvent::StepTakenOver { .. }
            | RunEvent::Switched { .. }
            | RunEvent::Started { .. } => self.changed = true,
            _ => {}
        }
        self.follow_the_step(event, now);
    }

    fn follow_the_step(&mut self, event: &RunEvent, now: Instant) {
        let Some(member) = event.member() else { return };
        let doing = match event {
            RunEvent::StepLocked { back, .. } => {
                self.steps.push(Begun::new(member, *back, now));
                "next"
            }
            RunEvent::StepTakenOver { back, .. } => {
                self.steps.push(Begun::new(member, *back, now));
                "in its step"
            }
            RunEvent::CommandBegun { .. } => {
                if let Some(step) = self.steps.last_mut() {
                    step.is_guarded = true;
                }
                "running its command"
            }
            RunEvent::CommandEnded { .. } => "after its command",
            RunEvent::Stopping { .. } => {
                self.changed = true;
                "stopping"
            }
            RunEvent::Stopped { .. } => "stopped",
            RunEvent::Switched { .. } => "switched",
            RunEvent::Started { .. } => STARTING,
            RunEvent::Ready { .. } => {
                self.end_step(member, "done", now);
                "ready"
            }
            RunEvent::Failed { .. } => {
                self.end_step(member, "failed", now);
                "failed"
            }
            RunEvent::PuttingBack { .. } => {
                self.end_step(member, "put_back", now);
                "putting back"
            }
            RunEvent::LettingPollsEnd { .. } => "waiting for version polls to end",
            RunEvent::KeptNew { .. } => {
                self.end_step(member, "kept_new", now);
                "kept on the new binary"
            }
            RunEvent::StepUnlocked { .. } => {
                self.forget_step(member);
                self.doing = None;
                return;
            }
            _ => return,
        };
        (self.doing, self.doing_since) = (Some((member, doing)), Some(now));
    }

    /// The last word on a step stands: a member that was put back and is ready again was put back.
    fn end_step(&mut self, member: MemberId, state: &'static str, now: Instant) {
        if let Some(step) = self.steps.last_mut().filter(|step| step.member == member) {
            let keeps = matches!(step.state, "put_back" | "kept_new") && matches!(state, "done" | "failed");
            step.state = if keeps { step.state } else { state };
            step.took = Some(now.saturating_duration_since(step.since));
        }
    }

    /// A record that was taken away again before anything was stopped began no step.
    fn forget_step(&mut self, member: MemberId) {
        let nothing_done = self.doing == Some((member, "next"));
        if nothing_done {
            self.steps.pop();
        }
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The run it takes part in.
    pub fn run(&self) -> Option<RunId> {
        self.run
    }

    /// The number of the step in hand, or of the last one.
    pub fn step(&self) -> Option<usize> {
        Some(self.steps.len()).filter(|count| *count > 0)
    }

    /// The members as last seen, with what is done to them at the moment.
    pub fn rows(&self) -> Vec<(MemberLine, Option<&'static str>)> {
        let Some(view) = &self.view else { return Vec::new() };
        let doing = |line: &MemberLine| self.doing.filter(|(member, _)| *member == line.id).map(|(_, doing)| doing);
        let lines = members(view, &self.names, &self.mine).into_iter();
        lines
            .map(|line| {
                let doing = doing(&line);
                match self.down.contains(&line.id) {
                    true => {
                        let trouble = Some("it is not running".to_owned());
                        (MemberLine { state: "silent", trouble, ..line }, None)
                    }
                    false => (line, doing),
                }
            })
            .collect()
    }

    /// Whether this is what it waits for already.
    pub fn is_waiting(&self, wait: &Wait) -> bool {
        self.waiting.as_ref().is_some_and(|(waited, _)| waited == wait)
    }

    /// Since when it waits for others, or for the cluster to settle.
    pub fn waiting_since(&self) -> Option<Instant> {
        let settling = self.settling.filter(|_| self.unsettled.is_some());
        self.waiting.as_ref().map(|(_, since)| *since).or(settling)
    }

    /// The member that was started and is not ready yet.
    pub fn starting(&self) -> Option<String> {
        self.doing.filter(|(_, doing)| *doing == STARTING).map(|(member, _)| self.names.short(member))
    }

    /// How long what it waits for lasts, so long after it began to tell, and what ends that.
    pub fn wait(&self, elapsed: Duration) -> Option<(Duration, Option<String>)> {
        let (since, until) = match (self.waiting_since(), self.starting()) {
            (Some(since), _) => (since, self.waiting_until()),
            (None, Some(_)) => (self.doing_since?, Some(READY.to_owned())),
            (None, None) => return None,
        };
        Some((elapsed.saturating_sub(since.saturating_duration_since(self.began?)), until))
    }

    /// Whether this process has changed anything.
    pub fn has_changed(&self) -> bool {
        self.changed
    }

    /// Whether this is what keeps the cluster from having settled already.
    pub fn is_unsettled(&self, missing: &Missing) -> bool {
        self.unsettled.as_ref() == Some(missing)
    }

    /// The cluster's gates as last seen; `None` where no member has any.
    pub fn gates(&self) -> Option<GatesLine> {
        gates(self.view.as_ref()?, &self.names)
    }

    /// What takes long before its host is fit.
    pub fn preparing(&self) -> Option<&str> {
        self.preparing.as_deref()
    }

    /// What is waited for, in words.
    pub fn waiting(&self) -> Option<String> {
        self.waiting.as_ref().map(|(waited, _)| wait::words(waited, &self.names))
    }

    /// What ends that, in words.
    pub fn waiting_until(&self) -> Option<String> {
        let settled = || self.unsettled.as_ref().map(|_| settling::UNTIL.to_owned());
        match &self.waiting {
            Some((waited, _)) => wait::until(waited),
            None => settled(),
        }
    }

    /// What keeps the cluster from having settled, in words.
    pub fn unsettled(&self) -> Option<String> {
        self.unsettled.as_ref().map(|missing| settling::words(missing, &self.names))
    }

    pub fn facts(&self) -> Facts {
        let (from, to) = self.change.as_ref().map_or((None, None), versions);
        let backup = self.backup.as_ref().map(|backup| ("backup".to_owned(), self.backup_line(backup)));
        let canary = self.canary.as_ref().map(|found| ("canary".to_owned(), serde_json::json!(found)));
        let hop = self.hop.map(|(number, of)| ("hop".to_owned(), serde_json::json!({ "number": number, "of": of })));
        Facts {
            changed: self.changed,
            run: self.run,
            from: self.from.clone().unwrap_or(from),
            to,
            gates: self.gates(),
            members: self.rows().into_iter().map(|(line, _)| line).collect(),
            seen_at: self.seen_at.map(rfc3339),
            waiting_for: self.waiting().or_else(|| self.unsettled()),
            waiting_since: None,
            waiting_until: self.waiting_until(),
            steps: self.steps.iter().enumerate().map(|(at, step)| self.line(at, step)).collect(),
            warnings: self.warnings.clone(),
            more: hop.into_iter().chain(backup).chain(canary).collect(),
        }
    }

    /// The backup of the last run, though that is over.
    pub fn last_backup(&self) -> Option<&Backup> {
        self.last_backup.as_deref()
    }

    fn backup_line(&self, backup: &Backup) -> serde_json::Value {
        let Backup { host_name, path, member, revision, sha256, bytes } = backup;
        let member = self.names.short(*member);
        serde_json::json!({ "host": host_name, "file": path, "bytes": bytes, "member": member, "revision": revision, "sha256": sha256 })
    }

    fn line(&self, at: usize, step: &Begun) -> StepLine {
        let action = match (step.is_guarded, step.back) {
            (true, _) => "guard",
            (false, true) => "put_back",
            (false, false) => words(self.change.as_ref()).action,
        };
        StepLine {
            id: (at + 1).to_string(),
            member: Some(self.names.short(step.member)),
            action,
            state: step.state,
            ms: step.took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            no_return: false,
            voters: None,
            voters_to_lose: None,
            host: None,
        }
    }
}
