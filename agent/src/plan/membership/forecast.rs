//! A change of members as it would go from here: the planner's own moves, played ahead on a world that changes as each move
//! would change it.
//!
//! Pure, and a forecast only: every host that is there takes part, and all goes well. Each has its own agent, as who may remove a
//! member depends on whose it is. No rule lives here.

mod hosts;
mod moves;

use std::{collections::BTreeMap, sync::Arc};

use proto::{MemberId, Revision};

use super::{
    Move, initial,
    survey::{Data, Place, Survey},
};
use crate::{
    keys::{
        At, AttemptId, KeyName, Keys, RunId, RunResult, RunState,
        rules::Rules,
        txn::{Op, Txn},
    },
    observe::{
        peers::PeerUrls,
        view::{Answer, ClusterView, Health},
    },
    plan::{
        Case, Finish, Me, Next,
        forecast::{Action, End, Forecast, Step, foreseen_backup},
        next,
        refusal::Wait,
        target,
        warning::Warning,
    },
};

/// More moves than any change of members needs; past it the forecast says that it does not come to an end.
const MOST_ROUNDS: usize = 1000;

/// What is done for one member that comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberAction {
    /// Put what an earlier member left in its directory aside.
    PutAside,
    /// Have it added as a learner.
    Join,
    /// Start it, and wait until it has what the others have.
    CatchUp,
    /// Have it vote.
    Promote,
    Remove {
        /// Whether it is not ready, so that nobody asks its own host.
        is_dead: bool,
    },
    /// Remove a newcomer that was given up.
    TakeBack,
    /// Stop its process for good, and put its data aside.
    Retire,
}

/// The voters after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voters {
    pub count: usize,
    /// How many of those that are ready may end before the quorum is lost.
    pub to_lose: usize,
}

/// How a change of members would go, with this host's members that are `down` started first; `begins` as in [`Case`], of the
/// agent that is at work here.
pub fn forecast(
    me: &Me,
    keys: &Keys,
    (view, survey): (&ClusterView, &Survey),
    begins: Option<AttemptId>,
    down: &[MemberId],
) -> Forecast {
    let mut world = World::new(me, keys, view, survey);
    world.people(begins);
    world.start(down);
    let end = world.run();
    Forecast { steps: world.steps, end, newcomers: world.newcomers }
}

/// What a person should know before such a change begins.
pub fn warnings(forecast: &Forecast) -> Vec<Warning> {
    let of = |step: &Step| match step.action {
        Action::Member(action) => Some((action, step.voters)),
        _ => None,
    };
    let steps: Vec<_> = forecast.steps.iter().filter_map(|step| Some((step, of(step)?))).collect();
    let mut found = Vec::new();
    for (at, (step, (action, voters))) in steps.iter().enumerate() {
        let joins_later = steps[at..].iter().any(|(_, (later, _))| *later == MemberAction::Join);
        match (action, voters, step.member) {
            (MemberAction::Promote, Some(Voters { count: 2, .. }), _) => found.push(Warning::TwoVoters),
            (MemberAction::Remove { is_dead: true }, Some(voters), Some(member)) if joins_later => {
                found.push(Warning::RemovedFirst { member, left: voters.count, to_lose: voters.to_lose });
            }
            _ => {}
        }
    }
    found
}

/// One host's agent, as far as it remembers anything.
struct Agent {
    me: Me,
    begins: Option<AttemptId>,
}

struct World<'a> {
    home: &'a Me,
    agents: Vec<Agent>,
    keys: Keys,
    view: ClusterView,
    listed: PeerUrls,
    places: BTreeMap<Arc<str>, Place>,
    /// Hosts' names, by seat, where they are known.
    hosts: BTreeMap<Arc<str>, Arc<str>>,
    /// Who is not listed yet, and so goes by a name alone.
    newcomers: BTreeMap<MemberId, Arc<str>>,
    joined: Option<RunId>,
    steps: Vec<Step>,
    fresh: u128,
}

impl<'a> World<'a> {
    fn new(me: &'a Me, keys: &Keys, view: &ClusterView, survey: &Survey) -> Self {
        let mut world = Self {
            home: me,
            agents: Vec::new(),
            keys: keys.clone(),
            view: view.clone(),
            listed: survey.listed.clone(),
            places: BTreeMap::new(),
            hosts: BTreeMap::new(),
            newcomers: BTreeMap::new(),
            joined: None,
            steps: Vec::new(),
            fresh: 0,
        };
        world.keys.stale.clear();
        world.keys.baton = None;
        let own = me.seats.0.iter().zip(&survey.places);
        world.places = own.map(|(seat, place)| (seat.name.clone(), place.clone())).collect();
        world
    }

    /// What is down is started before anything else (I-10).
    fn start(&mut self, down: &[MemberId]) {
        for member in down {
            self.add(Some(*member), Action::Start);
            self.becomes_ready(*member);
            if let Some(place) = self.name_of(*member).and_then(|name| self.places.get_mut(&name)) {
                place.runs = true;
            }
        }
    }

    fn run(&mut self) -> End {
        for _ in 0..MOST_ROUNDS {
            self.let_others_end();
            let found: Vec<_> = (0..self.agents.len()).map(|at| (at, self.ask(at))).collect();
            let is_home = |at: usize| self.agents[at].me.host == self.home.host;
            let own_refusal = found.iter().find_map(|(at, next)| match next {
                Next::Refuse(refusal) if is_home(*at) => Some(refusal.clone()),
                _ => None,
            });
            if let Some(refusal) = own_refusal {
                return End::Refused(refusal);
            }
            let acts = |next: &Next| !matches!(next, Next::Wait(_) | Next::Refuse(_) | Next::Finish(_));
            // Hosts act side by side. Told in a line, a member that left is stopped before others settle.
            let retires = |next: &Next| matches!(next, Next::Members(Move::Retire(_)));
            let first = found.iter().find(|(_, next)| retires(next));
            if let Some((at, next)) = first.or_else(|| found.iter().find(|(_, next)| acts(next))) {
                match self.take(*at, next) {
                    Some(end) => return end,
                    None => continue,
                }
            }
            if let Some(end) = self.nobody_acts(found.into_iter().map(|(_, next)| next).collect()) {
                return end;
            }
        }
        End::Unforeseen
    }

    fn ask(&self, at: usize) -> Next {
        let Agent { me, begins } = &self.agents[at];
        let places = me.seats.0.iter().map(|seat| self.places[&seat.name].clone()).collect();
        let survey = Survey { listed: self.listed.clone(), places };
        let rules = Rules::default();
        next(&Case {
            me,
            rules: &rules,
            keys: &self.keys,
            view: &self.view,
            evidence: None,
            is_window_over: true,
            closed_until: None,
            joined: self.joined,
            in_hand: None,
            gone: &[],
            process: Default::default(),
            survey: Some(&survey),
            join_failure: None,
            may_begin: *begins,
            may_resume: true,
            fresh: self.fresh,
        })
    }

    /// All wait: what is waited for comes to pass, where it can be told how.
    fn nobody_acts(&mut self, found: Vec<Next>) -> Option<End> {
        let pause = found.iter().find_map(|next| match next {
            Next::Wait(wait @ Wait::Paused { .. }) => Some(wait.clone()),
            _ => None,
        });
        if let Some(wait) = pause {
            self.add(None, Action::Await(wait));
            self.keys.run.iter_mut().for_each(|run| run.value.pause = None);
            return None;
        }
        let is_done = |next: &Next| matches!(next, Next::Finish(Finish::Done(_) | Finish::NothingToDo));
        let waits = found.iter().find_map(|next| match next {
            Next::Wait(wait @ Wait::CatchUp { member, .. }) => Some((wait.clone(), *member)),
            Next::Wait(wait @ Wait::Ready { member }) => Some((wait.clone(), *member)),
            _ => None,
        });
        if let Some((wait, member)) = waits.filter(|(_, member)| self.view.member(*member).is_some()) {
            let action = match wait {
                Wait::CatchUp { .. } => Action::Member(MemberAction::CatchUp),
                other => Action::Await(other),
            };
            self.add(Some(member), action);
            self.becomes_ready(member);
            return None;
        }
        let refusal = found.iter().find_map(|next| match next {
            Next::Refuse(refusal) => Some(refusal.clone()),
            _ => None,
        });
        Some(match refusal {
            Some(refusal) => End::Refused(refusal),
            None if !found.iter().all(is_done) => End::Unforeseen,
            None if self.steps.is_empty() => End::NothingToDo,
            None => End::Done(RunResult::Reached),
        })
    }

    /// Somebody's restart or guarded command ends well, and an abandoned step is cleared: both are waited for first.
    fn let_others_end(&mut self) {
        if let Some(lock) = self.keys.step.take_if(|lock| lock.value.role.is_none()).map(|at| at.value) {
            self.add(Some(lock.member), Action::Await(Wait::Record { member: lock.member, host: lock.host }));
            lock.members().for_each(|member| self.becomes_ready(member));
        }
        // Its process is whoever goes on with it.
        if let Some(lock) = &mut self.keys.step {
            lock.value.process = Default::default();
        }
        for (member, _) in std::mem::take(&mut self.keys.abandoned) {
            if self.view.member(member).is_some() {
                self.add(Some(member), Action::Await(Wait::AbandonedStep { member }));
                self.becomes_ready(member);
            }
        }
    }

    fn take(&mut self, at: usize, next: &Next) -> Option<End> {
        match next {
            Next::Begin => self.begin(),
            Next::BackUp => {
                self.add(None, Action::BackUp);
                if let Some(run) = &mut self.keys.run {
                    run.value.backup = Some(foreseen_backup());
                }
            }
            Next::Members(next) => self.play(at, next),
            Next::Move { to, .. } => self.set_state(to.clone()),
            Next::CleanUp(txn) => self.clean_up(txn),
            Next::Settle => {
                self.add(None, Action::Settle);
                self.joined = self.keys.run.as_ref().map(|run| run.value.id);
                self.set_state(RunState::Done { result: RunResult::Reached });
            }
            Next::Refuse(refusal) => return Some(End::Refused(refusal.clone())),
            Next::Adopt(_)
            | Next::Downgrade(_)
            | Next::Examine
            | Next::Hop(_)
            | Next::Finish(_)
            | Next::Step(_)
            | Next::Wait(_) => return Some(End::Unforeseen),
        }
        None
    }

    fn begin(&mut self) {
        let survey = Survey { listed: self.listed.clone(), places: Vec::new() };
        let membership = initial(&self.home.intent, &self.view, &survey);
        let mut run = target::new_run(RunId(0), &self.home.intent, &self.view);
        run.membership = Some(Arc::new(membership));
        self.joined = Some(run.id);
        self.keys.run = Some(self::at(run));
    }

    fn set_state(&mut self, state: RunState) {
        if let Some(run) = &mut self.keys.run {
            run.value.state = state;
        }
    }

    /// Txns that clean up delete what stands for nobody.
    fn clean_up(&mut self, txn: &Txn) {
        for op in &txn.ops {
            match op {
                Op::Delete(KeyName::Step) => self.keys.step = None,
                Op::Delete(KeyName::Abandoned(member)) => drop(self.keys.abandoned.remove(member)),
                _ => {}
            }
        }
    }

    /// One that was silent reports what another one does.
    fn becomes_ready(&mut self, member: MemberId) {
        let another = self.view.members.iter().find_map(|other| other.report().cloned());
        let Some(found) = self.view.members.iter_mut().find(|one| one.id == member) else { return };
        if let (Answer::Silent { .. } | Answer::NeverStarted, Some(report)) = (&found.answer, another) {
            found.answer = Answer::Reported(Box::new(report));
        }
        if let Answer::Reported(report) = &mut found.answer {
            report.health = Health::Ready;
        }
    }

    fn set_place(&mut self, name: &Arc<str>, data: Data, runs: bool) {
        if let Some(place) = self.places.get_mut(name) {
            (place.data, place.runs) = (data, runs);
        }
    }

    fn name_of(&self, member: MemberId) -> Option<Arc<str>> {
        let named = self.view.member(member).map(|one| one.name.clone()).filter(|name| !name.is_empty());
        named.or_else(|| self.newcomers.get(&member).cloned())
    }

    fn add(&mut self, member: Option<MemberId>, action: Action) {
        let seat = member.and_then(|member| self.name_of(member));
        self.push(member, seat, action);
    }

    fn add_of(&mut self, seat: &Arc<str>, action: MemberAction) {
        let listed = self.view.members.iter().find(|member| member.name == *seat).map(|member| member.id);
        self.push(listed, Some(seat.clone()), Action::Member(action));
    }

    fn push(&mut self, member: Option<MemberId>, seat: Option<Arc<str>>, action: Action) {
        let id = (self.steps.len() + 1).to_string();
        let host = seat.as_ref().and_then(|seat| self.hosts.get(seat).cloned());
        let member = member.filter(|member| !self.newcomers.contains_key(member));
        self.steps.push(Step { id, member, seat, host, action, voters: None, is_no_return: false });
    }
}

fn at<T>(value: T) -> At<T> {
    At { created: Revision(0), modified: Revision(0), value }
}
