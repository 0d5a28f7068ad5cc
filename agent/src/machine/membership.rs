//! A change of members: the planner's moves, one after the other, with a look after each.
//!
//! Nothing is remembered but what only this process can know: that it has begun its newcomer, and why it gives one up.
//! Source: agent/MEMBERS.md.

use std::sync::Arc;

use super::{
    act::{Act, Ending, Event, Looked},
    agent::{Agent, Phase},
    txn_outcome::Then,
};
use crate::{
    keys::{
        At, AttemptId, Keys, Run, StepLock, TakeId,
        host_id::HostId,
        host_record::HostRecord,
        membership::{Membership, RoleChange, Stage},
        txn::Txn,
    },
    plan::{
        membership::{Move, RoleStep, survey::Data},
        protection,
        refusal::Wait,
    },
    unknown::Unknown,
};

/// How often the looks between two writes of the same record double.
const MOST_DOUBLINGS: u32 = 10;

/// What this process has written of a host last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HostWritten {
    host: HostId,
    record: HostRecord,
    /// How often in a row.
    times: u32,
    /// How many looks wanted it again since.
    looks: u32,
}

/// How often the cluster may refuse a call in a row before its newcomer is given up.
const REFUSALS: u8 = 20;

impl Agent {
    pub(super) fn change_members(&mut self, next: Move, keys: &Keys, looked: (bool, u128)) -> Act {
        let Some(run) = &keys.run else { return self.look() };
        let (is_fresh, fresh) = looked;
        match next {
            Move::Note(membership) => self.note_members(run, keys, membership),
            Move::Host(host, Some(record)) => self.note_host(keys, host, record),
            Move::Host(host, None) => match keys.hosts.get(&host) {
                Some(seen) => self.send(Txn::forget_host(host, seen), Then::Look),
                None => self.look(),
            },
            Move::Archive(seat) => self.moving(Move::Archive(seat), Act::Archive(seat)),
            Move::Add(seat) => self.moving(Move::Add(seat), Act::AddMember(seat)),
            Move::Start(seat, member) => self.moving(Move::Start(seat, member), Act::StartNew(seat, member)),
            Move::TakeBack(member) => {
                let step = RoleStep { member, change: RoleChange::Leave };
                self.moving(Move::TakeBack(member), Act::ChangeRole(step))
            }
            Move::Retire(seat) => self.moving(Move::Retire(seat), Act::Retire(seat)),
            Move::HandOver { from, to } => self.moving(Move::HandOver { from, to }, Act::HandOver { from, to }),
            Move::End(membership) => match &keys.step {
                Some(step) => {
                    let after = run.value.with_membership(membership);
                    self.send(Txn::end_step(step.created, run, after), Then::Look)
                }
                None => self.look(),
            },
            Move::Lock(_) | Move::Call(_) | Move::Turn(_) if self.baton().is_none() => self.take_baton(TakeId(fresh)),
            // Who stood still for longer than the lease does not act on what it saw before.
            Move::Lock(_) | Move::Call(_) | Move::Turn(_) if !is_fresh => self.rest(Wait::Answer),
            Move::Lock(step) => self.put_role(run, step, AttemptId(fresh)),
            Move::Turn(member) => self.turn_role(run, keys, member),
            Move::Call(step) => {
                if let Some(lock) = keys.step.as_ref().filter(|_| !self.rules.step_outlives_its_call) {
                    self.record = Some(lock.created);
                }
                self.moving(Move::Call(step), Act::ChangeRole(step))
            }
        }
    }

    fn moving(&mut self, next: Move, act: Act) -> Act {
        self.ask(Phase::Moving(next), act)
    }

    /// What somebody else takes back is written ever more rarely: once in 2, 4, 8 looks.
    fn note_host(&mut self, keys: &Keys, host: HostId, record: HostRecord) -> Act {
        match &mut self.host_written {
            Some(written) if (written.host, &written.record) == (host, &record) => {
                written.looks += 1;
                if written.looks < 1 << written.times.min(MOST_DOUBLINGS) {
                    return self.rest(Wait::Rewritten { host_name: record.host_name });
                }
                written.times += 1;
                written.looks = 0;
            }
            _ => self.host_written = Some(HostWritten { host, record: record.clone(), times: 1, looks: 0 }),
        }
        self.send(Txn::note_host(host, keys.hosts.get(&host), record), Then::Look)
    }

    fn note_members(&mut self, run: &At<Run>, keys: &Keys, membership: Membership) -> Act {
        let before = run.value.membership.as_deref();
        let own = |membership: &Membership| membership.joins.iter().find(|join| join.host == self.me.host).cloned();
        match (before.and_then(own), own(&membership)) {
            // Only who says that it begins may begin with nothing, and not who says something else of the run later.
            (Some(was), Some(join)) if join.stage == Stage::Starting && was.stage != Stage::Starting => {
                self.begins = Some(join.attempt);
            }
            (Some(gone), None) => {
                if let Stage::GivenUp { why } = gone.stage {
                    self.join_failure.get_or_insert(why);
                }
            }
            _ => {}
        }
        let says_called = membership.called.is_some() && membership.called != before.and_then(|before| before.called);
        let mut txn = Txn::note_members(run, membership, &self.rules);
        let called = keys.step.as_ref().filter(|_| says_called && self.rules.call_compares_the_host);
        if let Some((host, record)) = called.and_then(|step| protection::host_of(keys, step.value.member)) {
            txn = txn.beside_host(host, Some(record));
        }
        self.send(txn, Then::Look)
    }

    fn put_role(&mut self, run: &At<Run>, step: RoleStep, attempt: AttemptId) -> Act {
        let Some(baton) = self.baton() else { return self.look() };
        let record = self.role_record(step, attempt);
        self.send(Txn::put_role(baton, run, record, &self.rules), Then::Look)
    }

    fn turn_role(&mut self, run: &At<Run>, keys: &Keys, member: proto::MemberId) -> Act {
        let (Some(baton), Some(standing)) = (self.baton(), &keys.step) else { return self.look() };
        let step = RoleStep { member, change: RoleChange::Leave };
        let record = self.role_record(step, standing.value.attempt);
        self.send(Txn::turn_role(baton, run, standing, record, &self.rules), Then::Look)
    }

    fn role_record(&self, step: RoleStep, attempt: AttemptId) -> StepLock {
        StepLock {
            member: step.member,
            host: self.me.host,
            host_name: self.me.host_name.clone(),
            attempt,
            process: self.process,
            back: false,
            guarded: None,
            role: Some(step.change),
            unknown: Unknown::default(),
        }
    }

    /// What came of a move. A refusal of the cluster is a wait, for as long as waits last.
    pub(super) fn moved(&mut self, next: Move, event: &Event) -> Act {
        let has_begun = matches!(next, Move::Start(..)) && !matches!(event, Event::Failed(_));
        if has_begun && self.rules.newcomer_begins_once {
            // It has begun, for all that is known. Where its data is gone before anybody has seen it, it is not begun again.
            self.begins = None;
        }
        let Event::Failed(why) = event else {
            self.refusals = 0;
            return match (next, self.record.take()) {
                (Move::Call(_), Some(lock)) => self.send(Txn::delete_down(lock), Then::Look),
                _ => self.look(),
            };
        };
        match next {
            Move::HandOver { from, .. } => self.hand_over_failed(from, why.clone()),
            Move::Call(RoleStep { member, .. }) | Move::TakeBack(member) => {
                self.rest(Wait::Allowed { member, why: why.clone() })
            }
            Move::Add(_) => {
                self.refusals += 1;
                if self.refusals >= REFUSALS {
                    self.join_failure = Some(why.clone());
                }
                self.rest(Wait::Allowed { member: proto::MemberId::default(), why: why.clone() })
            }
            Move::Start(..) => {
                self.join_failure = Some(why.clone());
                self.look()
            }
            Move::Archive(seat) | Move::Retire(seat) => {
                let seat = self.me.seats.0.get(seat).map_or_else(|| Arc::from(""), |seat| seat.name.clone());
                self.leave(Ending::Seat { seat, why: why.clone() })
            }
            Move::Note(_) | Move::Host(..) | Move::End(_) | Move::Lock(_) | Move::Turn(_) => self.look(),
        }
    }

    /// Its newcomer did not catch up in time: it is taken back before this process ends.
    pub(super) fn catch_up_expired(&mut self) -> Act {
        self.join_failure = Some("it did not take in in time what the others have".into());
        self.look()
    }

    /// Once its newcomer has data it may never begin with none again.
    pub(super) fn sees_own_data(&mut self, looked: &Looked) {
        let places = looked.survey.iter().flat_map(|survey| self.me.seats.0.iter().zip(&survey.places));
        let run = looked.keys.as_ref().and_then(|keys| keys.run.as_ref()).map(|run| &run.value);
        let joins = run.and_then(|run| run.membership.as_ref()).map_or(&[][..], |membership| &membership.joins);
        let mut of_own = joins.iter().filter(|join| Some(join.attempt) == self.begins);
        let has_data = of_own.any(|join| {
            places.clone().any(|(seat, place)| seat.name == join.seat && matches!(place.data, Data::Of { .. }))
        });
        self.begins = self.begins.filter(|_| !has_data);
    }

    /// The newcomer that this process gave up is taken back: no run knows of it any more.
    pub(super) fn taken_back(&self, looked: &Looked) -> Option<Ending> {
        let why = self.join_failure.clone()?;
        let run = looked.keys.as_ref()?.run.as_ref().map(|run| &run.value);
        let joins = run.and_then(|run| run.membership.as_ref()).map_or(&[][..], |membership| &membership.joins);
        let is_standing = joins.iter().any(|join| join.host == self.me.host);
        let seat = self.me.seats.0.iter().find(|seat| seat.member.is_none()).or(self.me.seats.0.first());
        let seat = seat.map_or_else(|| Arc::from(""), |seat| seat.name.clone());
        (!is_standing).then_some(Ending::NotJoined { seat, why })
    }
}
