//! What each move of the planner changes in the world of a forecast.

use std::sync::Arc;

use proto::{MemberId, Term};

use super::{MemberAction, Voters, World, at};
use crate::{
    keys::{
        AttemptId, StepLock,
        membership::{Membership, RoleChange},
    },
    observe::view::{Answer, Leader, Member, Role},
    plan::{
        Me,
        forecast::Action,
        membership::{Move, RoleStep, is_learner, survey::Data},
    },
    unknown::Unknown,
};

impl World<'_> {
    pub(super) fn play(&mut self, by: usize, next: &Move) {
        let name = |seat: usize| self.agents[by].me.seats.0.get(seat).map(|seat| seat.name.clone());
        match next {
            Move::Note(membership) => self.note(by, membership),
            Move::End(membership) => {
                self.keys.step = None;
                self.note(by, membership);
            }
            Move::Host(host, Some(record)) => drop(self.keys.hosts.insert(*host, at(record.clone()))),
            Move::Host(host, None) => drop(self.keys.hosts.remove(host)),
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
        if let Some(join) = membership.begun_by(host) {
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
            activities: Default::default(),
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

    pub(super) fn voters(&self) -> Voters {
        let (count, ready) = (self.view.voters().count(), self.view.voters().filter(|voter| voter.is_ready()).count());
        Voters { count, to_lose: ready.saturating_sub(count / 2 + 1) }
    }
}
