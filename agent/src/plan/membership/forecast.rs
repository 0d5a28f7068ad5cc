//! A change of members as it would go from here: the planner's own moves, played ahead on a world that changes as each move
//! would change it.
//!
//! Pure, and a forecast only: every host that is there takes part, and all goes well. Each has its own agent, as who may remove a
//! member depends on whose it is. No rule lives here.

use std::{collections::BTreeMap, sync::Arc};

use proto::{MemberId, Revision, Term};

use super::{
    Move, RoleStep, initial, is_learner,
    survey::{Data, Place, Survey},
    wanted,
};
use crate::{
    keys::{
        At, AttemptId, KeyName, Keys, Participant, RunId, RunResult, RunState, StepLock,
        host_id::HostId,
        membership::{Membership, RoleChange, Stage},
        rules::Rules,
        seat::{Seat, Seats},
        txn::{Op, Txn},
    },
    observe::view::{Answer, ClusterView, Health, Leader, Member, Role},
    plan::{
        Case, Finish, Me, Next,
        forecast::{Action, End, Forecast, Step},
        next,
        refusal::Wait,
        target,
        warning::Warning,
    },
    unknown::Unknown,
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

/// How a change of members would go, with this host's members that are `down` started first.
pub fn forecast(me: &Me, keys: &Keys, view: &ClusterView, survey: &Survey, down: &[MemberId]) -> Forecast {
    let mut world = World::new(me, keys, view, survey);
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
    listed: crate::observe::peers::PeerUrls,
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
        world.people();
        world
    }

    /// An agent on each host that is there or is to come; where nobody knows a member's host, it has one of its own.
    fn people(&mut self) {
        let (view, keys, home) = (&self.view, &self.keys, self.home);
        let joins = keys.run.as_ref().and_then(|run| run.value.membership.as_ref()).map_or(&[][..], |m| &m.joins);
        let wanted = wanted(&home.intent.change);
        let started = view.started().filter(|member| !member.name.is_empty());
        let mut names: Vec<_> = started.map(|member| member.name.clone()).chain(wanted.iter().cloned()).collect();
        names.extend(joins.iter().map(|join| join.seat.clone()));
        names.sort();
        names.dedup();
        let mut hosts: BTreeMap<HostId, (Arc<str>, Vec<Seat>)> = BTreeMap::new();
        hosts.insert(home.host, (home.host_name.clone(), home.seats.0.clone()));
        let is_own = |name: &Arc<str>| home.seats.0.iter().any(|seat| seat.name == *name);
        for (at, name) in names.iter().enumerate().filter(|(_, name)| !is_own(name)) {
            let member = view.members.iter().find(|member| member.name == *name);
            let join = joins.iter().find(|join| join.seat == *name);
            let has = |agent: &Participant| {
                agent.seats.0.iter().any(|seat| seat.name == *name || member.is_some_and(|m| seat.member == Some(m.id)))
            };
            let known = keys.agents.iter().find(|(host, at)| **host != home.host && has(&at.value));
            let known = known.map(|(host, at)| (*host, at.value.host_name.clone()));
            let of_join = || join.map(|join| (join.host, join.host_name.clone()));
            let comes = wanted.contains(name) && !member.is_some_and(|m| m.role == Role::Voter && m.is_ready());
            let is_there = comes || member.is_some_and(Member::is_ready);
            let alone =
                || is_there.then(|| (HostId { machine: None, instance: u128::MAX - at as u128 }, Arc::from("")));
            let Some((host, host_name)) = known.or_else(of_join).or_else(alone) else { continue };
            let seat = Seat { name: name.clone(), host: Some(host), member: member.map(|member| member.id) };
            hosts.entry(host).or_insert_with(|| (host_name, Vec::new())).1.push(seat);
            let place = assumed(view, &self.listed, name, member, join.map(|join| (&join.peer_urls, join.member)));
            self.places.insert(name.clone(), place);
        }
        self.keys.agents.clear();
        for (host, (host_name, seats)) in hosts {
            let named = seats.iter().filter(|_| !host_name.is_empty());
            self.hosts.extend(named.map(|seat| (seat.name.clone(), host_name.clone())));
            let me = Me { host, host_name, seats: Seats(seats), ..self.home.clone() };
            self.keys.agents.insert(host, at(me.participant(Default::default())));
            self.agents.push(Agent { me, begins: None });
        }
        // Whoever makes the plan, its order is the same.
        self.agents.sort_by_key(|agent| agent.me.seats.0.iter().map(|seat| seat.name.clone()).min());
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
            if let Some((at, next)) = found.iter().find(|(_, next)| acts(next)) {
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
            joined: self.joined,
            in_hand: None,
            gone: &[],
            process: Default::default(),
            survey: Some(&survey),
            join_failure: None,
            may_begin: *begins,
            fresh: self.fresh,
        })
    }

    /// All wait: what is waited for comes to pass, where it can be told how.
    fn nobody_acts(&mut self, found: Vec<Next>) -> Option<End> {
        let is_done = |next: &Next| matches!(next, Next::Finish(Finish::Done(_) | Finish::NothingToDo));
        let waits = found.iter().find_map(|next| match next {
            Next::Wait(wait @ Wait::CatchUp { member }) => Some((wait.clone(), *member)),
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
            Next::Members(next) => self.play(at, next),
            Next::Move { to, .. } => self.set_state(to.clone()),
            Next::CleanUp(txn) => self.clean_up(txn),
            Next::Settle => {
                self.add(None, Action::Settle);
                self.joined = self.keys.run.as_ref().map(|run| run.value.id);
                self.set_state(RunState::Done { result: RunResult::Reached });
            }
            Next::Refuse(refusal) => return Some(End::Refused(refusal.clone())),
            Next::Adopt(_) | Next::Downgrade(_) | Next::Examine | Next::Finish(_) | Next::Step(_) | Next::Wait(_) => {
                return Some(End::Unforeseen);
            }
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

    fn play(&mut self, by: usize, next: &Move) {
        let name = |seat: usize| self.agents[by].me.seats.0.get(seat).map(|seat| seat.name.clone());
        match next {
            Move::Note(membership) => self.note(by, membership),
            Move::End(membership) => {
                self.keys.step = None;
                self.note(by, membership);
            }
            Move::Archive(seat) => {
                if let Some(name) = name(*seat) {
                    self.add_of(&name, MemberAction::PutAside);
                    self.set_place(&name, Data::None, false);
                }
            }
            Move::Retire(seat) => {
                if let Some(name) = name(*seat) {
                    self.add_of(&name, MemberAction::Retire);
                    self.set_place(&name, Data::None, false);
                }
            }
            Move::Add(seat) => {
                if let Some(name) = name(*seat) {
                    self.is_added(&name);
                }
            }
            Move::Start(seat, member) => {
                if let Some(name) = name(*seat) {
                    self.comes_up(&name, *member);
                }
            }
            Move::TakeBack(member) => {
                self.add(Some(*member), Action::Member(MemberAction::TakeBack));
                self.is_removed(*member);
            }
            Move::HandOver { from, to } => {
                self.add(Some(*from), Action::HandOver(*to));
                self.view.leader = Leader::Agreed { member: *to, term: Term(0) };
            }
            Move::Lock(step) => self.lock(by, *step),
            Move::Turn(member) => self.lock(by, RoleStep { member: *member, change: RoleChange::Leave }),
            Move::Call(step) => self.changes_role(*step),
        }
    }

    fn note(&mut self, by: usize, membership: &Membership) {
        let host = self.agents[by].me.host;
        let own = membership.joins.iter().find(|join| join.host == host && join.stage == Stage::Starting);
        if let Some(join) = own {
            self.agents[by].begins = Some(join.attempt);
        }
        self.fresh += 1;
        if let Some(run) = &mut self.keys.run {
            run.value.membership = Some(Arc::new(membership.clone()));
        }
    }

    /// Learners that nobody has started have no name yet.
    fn is_added(&mut self, name: &Arc<str>) {
        self.add_of(name, MemberAction::Join);
        let id = MemberId(u64::MAX - self.newcomers.len() as u64);
        let urls = self.places[name].peer_urls.iter().cloned().collect();
        self.listed.insert(id, urls);
        self.newcomers.insert(id, name.clone());
        self.view.members.push(Member {
            id,
            name: Arc::from(""),
            role: Role::Learner,
            client_urls: Vec::new(),
            reached: None,
            is_disputed: false,
            answer: Answer::NeverStarted,
        });
    }

    fn comes_up(&mut self, name: &Arc<str>, member: MemberId) {
        self.add_of(name, MemberAction::CatchUp);
        self.set_place(name, Data::Of { cluster: self.view.cluster, member }, true);
        if let Some(found) = self.view.members.iter_mut().find(|one| one.id == member) {
            found.name = name.clone();
        }
        self.becomes_ready(member);
    }

    fn lock(&mut self, by: usize, step: RoleStep) {
        let Me { host, host_name, .. } = &self.agents[by].me;
        self.keys.step = Some(at(StepLock {
            member: step.member,
            host: *host,
            host_name: host_name.clone(),
            attempt: AttemptId(self.fresh),
            process: Default::default(),
            back: false,
            guarded: None,
            role: Some(step.change),
            unknown: Unknown::default(),
        }));
    }

    fn changes_role(&mut self, step: RoleStep) {
        let Some(member) = self.view.member(step.member) else { return };
        let (is_dead, is_voter) = (!member.is_ready(), !is_learner(member));
        match step.change {
            RoleChange::Promote => {
                self.add(Some(step.member), Action::Member(MemberAction::Promote));
                if let Some(found) = self.view.members.iter_mut().find(|one| one.id == step.member) {
                    found.role = Role::Voter;
                }
            }
            RoleChange::Leave => {
                self.add(Some(step.member), Action::Member(MemberAction::Remove { is_dead }));
                self.is_removed(step.member);
            }
        }
        let voters = self.voters();
        if let Some(last) = self.steps.last_mut() {
            last.voters = Some(voters);
            last.is_no_return = step.change == RoleChange::Leave && is_voter;
        }
    }

    fn is_removed(&mut self, member: MemberId) {
        self.view.members.retain(|one| one.id != member);
        self.listed.remove(&member);
        if self.view.is_leader(member) {
            self.view.leader = Leader::Unknown;
        }
    }

    fn voters(&self) -> Voters {
        let (count, ready) = (self.view.voters().count(), self.view.voters().filter(|voter| voter.is_ready()).count());
        Voters { count, to_lose: ready.saturating_sub(count / 2 + 1) }
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

/// What another host's place is taken to be: that of a member is as it should be, and a newcomer's is empty.
fn assumed(
    view: &ClusterView,
    listed: &crate::observe::peers::PeerUrls,
    name: &Arc<str>,
    member: Option<&Member>,
    join: Option<(&Vec<String>, Option<MemberId>)>,
) -> Place {
    let of = |member| Data::Of { cluster: view.cluster, member };
    match (join, member) {
        (Some((urls, id)), member) => {
            let has_begun = id.filter(|id| member.is_some_and(|member| member.id == *id));
            Place { peer_urls: urls.clone(), data: has_begun.map_or(Data::None, of), runs: has_begun.is_some() }
        }
        (None, Some(member)) => {
            let urls = listed.get(&member.id).into_iter().flatten().cloned().collect();
            let is_there = member.is_ready();
            Place { peer_urls: urls, data: if is_there { of(member.id) } else { Data::None }, runs: is_there }
        }
        (None, None) => Place { peer_urls: vec![format!("http://{name}")], data: Data::None, runs: false },
    }
}

fn at<T>(value: T) -> At<T> {
    At { created: Revision(0), modified: Revision(0), value }
}
