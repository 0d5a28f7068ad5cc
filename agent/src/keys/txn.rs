//! Every write to the shared keys, as data: what is compared, what is written.
//!
//! Each is made so that sending the identical one again settles an unknown answer: the second is refused,
//! and the keys that come with the refusal show the first one's trace (an attempt id, a process, a
//! create revision). Nothing here sends anything: the room `store` does, and the model checker's store.

use std::sync::Arc;

use proto::{MemberId, Revision};

use super::{
    At, Backup, Baton, KeyName, Participant, Pause, Run, RunState, Stale, StepLock, host_id::HostId,
    host_record::HostRecord, membership::Membership, rules::Rules,
};

/// One etcd Txn: all compares hold and all ops are done, or the answer carries every key as it stood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Txn {
    pub compares: Vec<Compare>,
    pub ops: Vec<Op>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Compare {
    pub key: KeyName,
    pub is: Is,
}

/// What can be asked of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Is {
    Absent,
    /// It was created at this revision and not deleted since.
    Created(Revision),
    /// It was last written at this revision.
    Modified(Revision),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    PutRun(Run),
    /// Put this host's participant key, under the agent's own lease.
    PutAgent(HostId, Participant),
    /// Put the baton, under the baton's lease.
    PutBaton(Baton),
    /// Put the step lock, without a lease.
    PutStepLock(StepLock),
    /// Put the sign of an abandoned step, without a lease.
    PutAbandoned(StepLock),
    /// Put what is known of a host, without a lease.
    PutHost(HostId, HostRecord),
    Delete(KeyName),
}

fn compare(key: KeyName, is: Is) -> Compare {
    Compare { key, is }
}

fn run_is(run: Option<&At<Run>>) -> Compare {
    compare(KeyName::Run, run.map_or(Is::Absent, |run| Is::Modified(run.modified)))
}

fn host_is(host: HostId, seen: Option<&At<HostRecord>>) -> Compare {
    compare(KeyName::Host(host), seen.map_or(Is::Absent, |seen| Is::Modified(seen.modified)))
}

impl Txn {
    /// Begins a run where there is none, or where the one that stands is history.
    pub fn begin(seen: Option<&At<Run>>, run: Run) -> Self {
        Self { compares: vec![run_is(seen)], ops: vec![Op::PutRun(run)] }
    }

    /// Moves the run to another state.
    pub fn move_run(seen: &At<Run>, state: RunState) -> Self {
        Self { compares: vec![run_is(Some(seen))], ops: vec![Op::PutRun(seen.value.in_state(state))] }
    }

    /// Turns a run round, or lifts a mark by hand: never while a record stands.
    pub fn move_run_at_rest(seen: &At<Run>, state: RunState, rules: &Rules) -> Self {
        let compares = if rules.rollback_compares {
            vec![run_is(Some(seen)), compare(KeyName::Step, Is::Absent)]
        } else {
            Vec::new()
        };
        Self { compares, ops: vec![Op::PutRun(seen.value.in_state(state))] }
    }

    /// Puts another run in the place of one that stands, when nobody is at work on it and none of these
    /// members' steps was given up.
    pub fn replace(
        seen: &At<Run>,
        run: Run,
        others: impl Iterator<Item = HostId>,
        members: impl Iterator<Item = MemberId>,
    ) -> Self {
        let mut compares = vec![run_is(Some(seen)), compare(KeyName::Step, Is::Absent)];
        compares.extend(others.map(|host| compare(KeyName::Agent(host), Is::Absent)));
        compares.extend(members.map(|member| compare(KeyName::Abandoned(member), Is::Absent)));
        Self { compares, ops: vec![Op::PutRun(run)] }
    }

    pub fn take_baton(baton: Baton) -> Self {
        Self { compares: vec![compare(KeyName::Baton, Is::Absent)], ops: vec![Op::PutBaton(baton)] }
    }

    /// Clears a baton that an earlier process of this host left.
    pub fn clear_baton(created: Revision) -> Self {
        Self::delete(KeyName::Baton, created)
    }

    /// Puts the step lock: the baton is still mine, no record stands, the run is as I saw it. The
    /// same write lifts this member's own failure mark.
    pub fn put_down(baton: Revision, run: &At<Run>, record: StepLock, rules: &Rules) -> Self {
        let mut compares = vec![compare(KeyName::Baton, Is::Created(baton)), run_is(Some(run))];
        if rules.record_is_the_lock {
            compares.push(compare(KeyName::Step, Is::Absent));
        }
        let mut ops = vec![Op::PutStepLock(record)];
        if let RunState::Failed { was, .. } = run.value.state {
            ops.push(Op::PutRun(run.value.in_state(was.into())));
        }
        Self { compares, ops }
    }

    /// Puts the step lock of a guarded command: as [`Self::put_down`], but it is no part of the run that may stand.
    pub fn put_guard(baton: Revision, run: Option<&At<Run>>, record: StepLock, rules: &Rules) -> Self {
        let mut compares = vec![compare(KeyName::Baton, Is::Created(baton)), run_is(run)];
        if rules.record_is_the_lock {
            compares.push(compare(KeyName::Step, Is::Absent));
        }
        Self { compares, ops: vec![Op::PutStepLock(record)] }
    }

    /// Writes other members into the run.
    pub fn note_members(seen: &At<Run>, membership: Membership, rules: &Rules) -> Self {
        let mut compares = vec![run_is(Some(seen))];
        if !rules.members_compare_the_run {
            compares.clear();
        }
        Self { compares, ops: vec![Op::PutRun(seen.value.with_membership(membership))] }
    }

    /// Writes into the run which backup was made for it: under the baton that it was made under, as whoever has another may have made
    /// another since, and removed this one.
    pub fn note_backup(baton: Revision, seen: &At<Run>, backup: Arc<Backup>) -> Self {
        let run = Run { backup: Some(backup), ..seen.value.clone() };
        Self {
            compares: vec![compare(KeyName::Baton, Is::Created(baton)), run_is(Some(seen))],
            ops: vec![Op::PutRun(run)],
        }
    }

    /// Pauses the run, or lifts its pause. Who is about to put the step lock compares the run, so no step begins after it.
    pub fn pause(seen: &At<Run>, pause: Option<Arc<Pause>>) -> Self {
        Self { compares: vec![run_is(Some(seen))], ops: vec![Op::PutRun(Run { pause, ..seen.value.clone() })] }
    }

    /// Writes what is known of a host, in the place of what was seen.
    pub fn note_host(host: HostId, seen: Option<&At<HostRecord>>, record: HostRecord) -> Self {
        Self { compares: vec![host_is(host, seen)], ops: vec![Op::PutHost(host, record)] }
    }

    /// The same, as long as no other step begins: one that removes a member of this host may not have seen it.
    pub fn note_host_beside(
        host: HostId,
        seen: Option<&At<HostRecord>>,
        record: HostRecord,
        step: Option<&At<StepLock>>,
    ) -> Self {
        let step = compare(KeyName::Step, step.map_or(Is::Absent, |step| Is::Modified(step.modified)));
        Self { compares: vec![host_is(host, seen), step], ops: vec![Op::PutHost(host, record)] }
    }

    /// Takes away what is known of a host.
    pub fn forget_host(host: HostId, seen: &At<HostRecord>) -> Self {
        Self { compares: vec![host_is(host, Some(seen))], ops: vec![Op::Delete(KeyName::Host(host))] }
    }

    /// This, and nothing is known of another host any more, of which this was seen.
    pub fn without_host(mut self, host: HostId, seen: &At<HostRecord>) -> Self {
        self.compares.push(host_is(host, Some(seen)));
        self.ops.push(Op::Delete(KeyName::Host(host)));
        self
    }

    /// This, if what is known of a host is what was seen: neither marked nor held nor let go since.
    pub fn beside_host(mut self, host: HostId, seen: Option<&At<HostRecord>>) -> Self {
        self.compares.push(host_is(host, seen));
        self
    }

    /// Puts the step lock of a change of role: as [`Self::put_down`].
    pub fn put_role(baton: Revision, run: &At<Run>, record: StepLock, rules: &Rules) -> Self {
        let mut compares = vec![compare(KeyName::Baton, Is::Created(baton)), compare(KeyName::Step, Is::Absent)];
        if rules.members_compare_the_run {
            compares.push(run_is(Some(run)));
        }
        Self { compares, ops: vec![Op::PutStepLock(record)] }
    }

    /// The same by a person, who holds no baton.
    pub fn turn_role_by_hand(run: &At<Run>, step: &At<StepLock>, record: StepLock) -> Self {
        let compares = vec![run_is(Some(run)), compare(KeyName::Step, Is::Modified(step.modified))];
        Self { compares, ops: vec![Op::PutStepLock(record), Op::PutRun(run.value.clone())] }
    }

    /// The member of a step that stands is to leave, whatever else the step was for. The run is written with it, unchanged: who
    /// would still end the step as what it was is refused, as an end does not compare the lock's last write.
    pub fn turn_role(baton: Revision, run: &At<Run>, step: &At<StepLock>, record: StepLock, rules: &Rules) -> Self {
        let compares = vec![
            compare(KeyName::Baton, Is::Created(baton)),
            run_is(Some(run)),
            compare(KeyName::Step, Is::Modified(step.modified)),
        ];
        let mut ops = vec![Op::PutStepLock(record)];
        if rules.turn_writes_the_run {
            ops.push(Op::PutRun(run.value.clone()));
        }
        Self { compares, ops }
    }

    /// Takes the record away with nothing said of the run: the member was not, or is no longer, down.
    /// Does not compare the baton: whoever holds that now, the record must be removable.
    pub fn delete_down(created: Revision) -> Self {
        Self::delete(KeyName::Step, created)
    }

    /// Takes the record away and writes what became of the step into the run, in one.
    pub fn end_step(created: Revision, run: &At<Run>, after: Run) -> Self {
        Self {
            compares: vec![compare(KeyName::Step, Is::Created(created)), run_is(Some(run))],
            ops: vec![Op::Delete(KeyName::Step), Op::PutRun(after)],
        }
    }

    /// Gives a step up: its host may still wake, so a sign of it stays.
    pub fn abandon(record: &At<StepLock>, rules: &Rules) -> Self {
        let mut txn = Self::delete_down(record.created);
        if rules.abandon_leaves_a_sign {
            txn.ops.push(Op::PutAbandoned(record.value.clone()));
        }
        txn
    }

    /// Clears the sign of an abandoned step.
    pub fn clear_abandoned(member: MemberId, created: Revision) -> Self {
        Self::delete(KeyName::Abandoned(member), created)
    }

    /// Clears what has no lease and so is nobody's, unless somebody has bound it to one meanwhile.
    pub fn clear_stale(stale: Stale) -> Self {
        Self { compares: vec![compare(stale.key, Is::Modified(stale.modified))], ops: vec![Op::Delete(stale.key)] }
    }

    /// The key that this clears for want of a lease.
    pub fn stale(&self) -> Option<KeyName> {
        match (self.compares.as_slice(), self.ops.as_slice()) {
            ([Compare { is: Is::Modified(_), .. }], [Op::Delete(key)]) => Some(*key),
            _ => None,
        }
    }

    /// Says, or says anew, that this host takes part, in the place of what was seen under its id: of this process, or of
    /// one that is gone. Nobody else's is written over.
    pub fn register(host: HostId, participant: Participant, seen: Option<Revision>, rules: &Rules) -> Self {
        let mut compares = vec![compare(KeyName::Agent(host), seen.map_or(Is::Absent, Is::Modified))];
        if !rules.twins_are_refused {
            compares.clear();
        }
        Self { compares, ops: vec![Op::PutAgent(host, participant)] }
    }

    fn delete(key: KeyName, created: Revision) -> Self {
        Self { compares: vec![compare(key, Is::Created(created))], ops: vec![Op::Delete(key)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{AttemptId, Going, ProcessId},
        plan::samples,
        unknown::Unknown,
    };

    fn at<T>(value: T) -> At<T> {
        At { created: Revision(3), modified: Revision(9), value }
    }

    fn record() -> StepLock {
        let (member, host, host_name) = (MemberId(1), HostId { machine: None, instance: 1 }, Arc::from("h1"));
        let process = ProcessId { boot_id: 1, pid_namespace: 1, pid: 2, start_time: 3 };
        StepLock {
            member,
            host,
            host_name,
            attempt: AttemptId(9),
            process,
            back: false,
            guarded: None,
            role: None,
            unknown: Unknown::default(),
        }
    }

    /// A mark put, or lifted, over a run that has changed meanwhile would undo what others wrote.
    #[test]
    fn whoever_writes_the_run_compares_it_as_it_was_seen() {
        let rules = Rules::default();
        let failed = RunState::Failed { member: MemberId(1), why: Arc::from("it"), was: Going::Rolling };
        let run = |state| at(samples::run(state));
        let rolling = run(RunState::Rolling);
        let marked = run(failed.clone());
        let after = rolling.value.in_state(failed.clone());
        for txn in [
            Txn::begin(Some(&rolling), after.clone()),
            Txn::move_run(&rolling, failed),
            Txn::move_run_at_rest(&marked, RunState::Rolling, &rules),
            Txn::replace(&marked, after.clone(), std::iter::empty(), std::iter::empty()),
            Txn::put_down(Revision(1), &marked, record(), &rules),
            Txn::end_step(Revision(1), &rolling, after),
        ] {
            assert!(txn.ops.iter().any(|op| matches!(op, Op::PutRun(_))), "{txn:?}");
            assert!(txn.compares.contains(&compare(KeyName::Run, Is::Modified(Revision(9)))), "{txn:?}");
        }
    }
}
