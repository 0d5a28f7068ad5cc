//! A rollout played ahead: [`next`] is asked again and again on a view that is changed as each step would change it.
//!
//! Pure. No rule lives here.

use std::sync::Arc;

use proto::{ClusterVersion, MemberId, Release, Revision, Term};

use super::{Action, End, Step};
use crate::{
    journal::restart::Direction,
    keys::{
        At, Backup, Keys, RunId, RunResult, RunState, StepLock,
        rules::Rules,
        seat::Seats,
        txn::{Op, Txn},
    },
    observe::{
        evidence::Evidence,
        view::{Answer, ClusterView, Gates, Health, Leader, Member, Report},
    },
    plan::{
        Case, Finish, Me, Next,
        action::{self, Restart},
        next, no_return,
        order::rank,
        refusal::Wait,
        target,
    },
};

/// More asking than any rollout needs; past it the forecast says that it does not come to an end.
const MOST_STEPS: usize = 1000;

/// The steps of the rollout, asked as if one agent had every member, and its end.
pub(super) fn play(
    me: &Me,
    keys: &Keys,
    (view, evidence): (&ClusterView, &Evidence),
    down: &[MemberId],
) -> (Vec<Step>, End) {
    let everybody = view.members.iter().map(|member| (member.name.clone(), member.id));
    let is_mine = view.members.iter().any(|member| me.seats.has(member.id));
    let asked_as = Me { seats: if is_mine { Seats::on(me.host, everybody) } else { Seats::default() }, ..me.clone() };
    let mut world = World {
        me: asked_as,
        home: me,
        names: keys,
        keys: foreseen(me, keys),
        view: view.clone(),
        evidence,
        joined: None,
        steps: Vec::new(),
        number: 0,
    };
    world.start(down);
    world.begin_hop();
    let end = world.run();
    (world.steps, end)
}

/// Whose database it will be, and where it will lie, is not known.
pub(in crate::plan) fn foreseen_backup() -> Arc<Backup> {
    let unknown: Arc<str> = Arc::from("");
    Arc::new(Backup {
        host_name: unknown.clone(),
        path: unknown,
        member: MemberId(0),
        revision: None,
        sha256: None,
        bytes: 0,
    })
}

/// What this host's earlier agent left, and what is nobody's, is out of the way by then.
fn foreseen(me: &Me, keys: &Keys) -> Keys {
    let mut keys = keys.clone();
    keys.stale.clear();
    keys.agents.remove(&me.host);
    keys.baton = keys.baton.filter(|baton| baton.value.host != me.host);
    keys
}

struct World<'a> {
    me: Me,
    home: &'a Me,
    /// The keys as they were read, for the hosts' names.
    names: &'a Keys,
    keys: Keys,
    view: ClusterView,
    evidence: &'a Evidence,
    joined: Option<RunId>,
    steps: Vec<Step>,
    number: usize,
}

impl World<'_> {
    fn run(&mut self) -> End {
        for _ in 0..MOST_STEPS {
            self.let_others_end();
            let rules = Rules::default();
            let (me, keys, view, joined) = (&self.me, &self.keys, &self.view, self.joined);
            let case = Case {
                me,
                rules: &rules,
                keys,
                view,
                evidence: Some(self.evidence),
                is_window_over: true,
                closed_until: None,
                joined,
                in_hand: None,
                gone: &[],
                process: Default::default(),
                survey: None,
                join_failure: None,
                may_begin: None,
                may_resume: true,
                fresh: 0,
            };
            if let Some(end) = self.take(next(&case)) {
                return end;
            }
        }
        End::Unforeseen
    }

    /// What is down is started before anything else (I-10); the member of a step in hand with its step.
    fn start(&mut self, down: &[MemberId]) {
        let in_hand = self.keys.step.as_ref().map(|record| record.value.member);
        for member in down.iter().copied().filter(|member| Some(*member) != in_hand) {
            self.add(Some(member), Action::Start, false);
            self.becomes_ready(member);
        }
    }

    /// Somebody else's step ends well, and an abandoned one is cleared: both are waited for first.
    fn let_others_end(&mut self) {
        if let Some(record) = self.keys.step.take().map(|at| at.value) {
            let is_at_work = record.guarded.is_some() && self.keys.agents.contains_key(&record.host);
            let mine = record.host == self.home.host && !is_at_work;
            let wait = Wait::Record { member: record.member, host: record.host };
            self.add(Some(record.member), if mine { Action::Repair } else { Action::Await(wait) }, false);
            self.came_back(&record);
        }
        for (member, _) in std::mem::take(&mut self.keys.abandoned) {
            if self.view.member(member).is_some() {
                self.add(Some(member), Action::Await(Wait::AbandonedStep { member }), false);
                self.becomes_ready(member);
            }
        }
    }

    fn came_back(&mut self, record: &StepLock) {
        if record.guarded.is_some() {
            // It brings nobody to any target.
            record.members().for_each(|member| self.becomes_ready(member));
            return;
        }
        let direction = if record.back { Direction::Back } else { Direction::Forward };
        if self.keys.run.as_ref().is_some_and(|run| *run.value.intent == *self.me.intent) {
            self.reach(record.member, direction);
        }
        self.becomes_ready(record.member);
    }

    fn take(&mut self, next: Next) -> Option<End> {
        match next {
            Next::Refuse(refusal) => return Some(End::Refused(refusal)),
            Next::Wait(Wait::Ready { member }) => {
                self.add(Some(member), Action::Await(Wait::Ready { member }), false);
                self.becomes_ready(member);
            }
            Next::Wait(wait @ Wait::Activity { member, .. }) => {
                self.add(Some(member), Action::Await(wait), false);
                self.view.members.iter_mut().filter(|one| one.id == member).for_each(|one| one.activities.clear());
            }
            Next::Wait(wait @ Wait::Paused { .. }) => {
                self.add(None, Action::Await(wait), false);
                self.keys.run.iter_mut().for_each(|run| run.value.pause = None);
            }
            Next::Wait(wait @ (Wait::Lowering { target, .. } | Wait::Storage { target, .. })) => {
                self.add(None, Action::Await(wait), false);
                self.lowered(Some(target));
            }
            Next::Members(_) | Next::Wait(_) | Next::Examine | Next::Step(action::Action::Guard(_)) => {
                return Some(End::Unforeseen);
            }
            Next::Begin => self.begin(),
            Next::Hop(change) => {
                let intent = Arc::new(self.me.intent.at(&change));
                (self.me.intent, self.joined) = (intent, None);
                self.begin_hop();
            }
            Next::Move { to, .. } => self.set_state(to),
            Next::CleanUp(txn) => self.clean_up(&txn),
            Next::Adopt(member) => {
                self.add(Some(member), Action::Repair, false);
                self.keys.step = None;
                self.becomes_ready(member);
            }
            Next::BackUp => self.back_up(),
            Next::Downgrade(to) => self.downgrade(to),
            Next::Step(action::Action::Restart(go)) => self.go(go),
            Next::Settle => self.settle(),
            Next::Finish(Finish::Done(result)) => return Some(End::Done(result)),
            Next::Finish(Finish::NothingToDo) if self.steps.is_empty() => return Some(End::NothingToDo),
            Next::Finish(Finish::NothingToDo) => return Some(End::Done(RunResult::Reached)),
            Next::Finish(Finish::Held { member }) => {
                self.add(Some(member), Action::Hold, false);
                self.set_state(RunState::Approved);
            }
            Next::Finish(
                Finish::Partial { .. } | Finish::Closed { .. } | Finish::Unseated { .. } | Finish::Approved { .. },
            ) => {
                return Some(End::Unforeseen);
            }
        }
        None
    }

    fn begin(&mut self) {
        let value = target::new_run(RunId(0), &self.me.intent, &self.view);
        self.joined = Some(value.id);
        self.keys.run = Some(At { created: Revision(0), modified: Revision(0), value });
    }

    /// Where the way has several hops.
    fn begin_hop(&mut self) {
        let intent = self.me.intent.clone();
        let Some(hops) = &intent.hops else { return };
        let (number, of) = (hops.number(&intent.change).unwrap_or_default(), hops.changes.len());
        self.add(None, Action::Hop { number, of, change: intent.change.clone() }, false);
    }

    fn back_up(&mut self) {
        self.add(None, Action::BackUp, false);
        if let Some(run) = &mut self.keys.run {
            run.value.backup = Some(foreseen_backup());
        }
    }

    fn set_state(&mut self, state: RunState) {
        if let Some(run) = &mut self.keys.run {
            run.value.state = state;
        }
    }

    /// Txns that clean up delete what stands for nobody.
    fn clean_up(&mut self, txn: &Txn) {
        use crate::keys::KeyName;
        for op in &txn.ops {
            match op {
                Op::Delete(KeyName::Step) => self.keys.step = None,
                Op::Delete(KeyName::Abandoned(member)) => drop(self.keys.abandoned.remove(member)),
                _ => {}
            }
        }
    }

    /// What follows of it the cluster does by itself.
    fn downgrade(&mut self, to: Option<ClusterVersion>) {
        self.add(None, Action::Downgrade(to), false);
        self.lowered(to);
    }

    fn lowered(&mut self, to: Option<ClusterVersion>) {
        for member in self.view.members.iter().map(|member| member.id).collect::<Vec<_>>() {
            self.set(member, |report| {
                report.downgrade = to;
                if to.is_some() {
                    (report.cluster_version, report.storage_version) = (to, to);
                }
            });
        }
    }

    fn settle(&mut self) {
        self.add(None, Action::Settle, false);
        let back = self.keys.run.as_ref().is_some_and(|run| run.value.is_going_back());
        self.joined = self.keys.run.as_ref().map(|run| run.value.id);
        let result = if back { RunResult::RolledBack } else { RunResult::Reached };
        self.set_state(RunState::Done { result });
        let version = self.me.intent.change.kind().settled_version(&self.view, back);
        for member in self.view.members.iter().map(|member| member.id).collect::<Vec<_>>() {
            self.set(member, |report| {
                (report.cluster_version, report.downgrade) = (version.or(report.cluster_version), None);
            });
        }
    }

    fn go(&mut self, go: Restart) {
        let Some(member) = self.view.member(go.member) else { return };
        let (from, to) = (member.release().cloned(), self.release_after(go.direction));
        let rank = rank(&self.view, member);
        let to = to.filter(|to| Some(to) != from.as_ref());
        self.add(Some(go.member), Action::Restart { from, to, direction: go.direction, rank }, false);
        self.part(go.member, go.hand_over.map(Action::HandOver), false);
        self.part(go.member, Some(Action::Stop), false);
        let switches = self.me.intent.change.to().is_some();
        self.part(go.member, switches.then_some(Action::Switch), false);
        self.lead_by(go.hand_over);
        let was_open = !self.is_last_old();
        self.reach(go.member, go.direction);
        let closes = was_open && go.direction == Direction::Forward && self.changes_minor() && self.is_last_old();
        self.part(go.member, Some(Action::Start), closes);
        self.part(go.member, Some(Action::AwaitReady), false);
        self.becomes_ready(go.member);
        self.lift_the_mark();
    }

    fn changes_minor(&self) -> bool {
        self.keys.run.as_ref().is_some_and(|run| run.value.changes_minor)
    }

    /// Whether no voter is on the old release any more.
    fn is_last_old(&self) -> bool {
        !no_return::another_is_old(&self.me.intent, &self.view, None)
    }

    fn lift_the_mark(&mut self) {
        if let Some(RunState::Failed { was, .. }) = self.keys.run.as_ref().map(|run| run.value.state.clone()) {
            self.set_state(was.into());
        }
    }

    fn lead_by(&mut self, member: Option<MemberId>) {
        if let Some(member) = member {
            self.view.leader = Leader::Agreed { member, term: Term(0) };
        }
    }

    /// The release that a direction leads to: the one wanted, or what another member that is still old runs.
    fn release_after(&self, direction: Direction) -> Option<Release> {
        let to = self.me.intent.change.to()?;
        match direction {
            Direction::Forward => Some(to.clone()),
            Direction::Back => {
                self.view.members.iter().filter_map(Member::release).find(|release| *release != to).cloned()
            }
        }
    }

    fn reach(&mut self, member: MemberId, direction: Direction) {
        if let Some(release) = self.release_after(direction) {
            self.set(member, |report| {
                // What another release will say of its gates is not to be foreseen.
                if report.release != release {
                    report.gates = Some(Gates::Unknown { reason: "it runs another release now".to_owned() });
                }
                report.release = release;
            });
        }
        if let Some(run) = &mut self.keys.run {
            run.value.done.retain(|done| *done != member);
            if direction == Direction::Forward {
                run.value.done.push(member);
            }
        }
    }

    fn becomes_ready(&mut self, member: MemberId) {
        self.set(member, |report| report.health = Health::Ready);
    }

    /// Changes what a member reports; one that is silent reports what another one does, first.
    fn set(&mut self, member: MemberId, change: impl FnOnce(&mut Report)) {
        let another = self.view.members.iter().find_map(|other| other.report().cloned());
        let Some(member) = self.view.members.iter_mut().find(|other| other.id == member) else { return };
        if let (Answer::Silent { .. }, Some(report)) = (&member.answer, another) {
            member.answer = Answer::Reported(Box::new(report));
        }
        if let Answer::Reported(report) = &mut member.answer {
            change(report);
        }
    }

    fn add(&mut self, member: Option<MemberId>, action: Action, is_no_return: bool) {
        self.number += 1;
        let (id, host) = (self.number.to_string(), member.and_then(|member| self.host(member)));
        self.steps.push(Step { id, member, seat: None, host, action, voters: None, is_no_return });
    }

    fn part(&mut self, member: MemberId, action: Option<Action>, is_no_return: bool) {
        let Some(action) = action else { return };
        let whole = self.number.to_string();
        let parts = self.steps.iter().filter(|step| step.id.split_once('.').is_some_and(|(head, _)| head == whole));
        let id = format!("{whole}.{}", parts.count() + 1);
        let (seat, host, voters) = (None, self.host(member), None);
        self.steps.push(Step { id, member: Some(member), seat, host, action, voters, is_no_return });
    }

    fn host(&self, member: MemberId) -> Option<Arc<str>> {
        if self.home.seats.has(member) {
            return Some(self.home.host_name.clone());
        }
        self.names.owner_of(member).map(|(_, agent)| agent.host_name.clone())
    }
}
