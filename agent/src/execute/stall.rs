//! What anyone has brought about since this agent began, and how often it looks: the state behind the stall timeout (I-11). No I/O.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use proto::{LogIndex, MemberId};

use super::wait::{LOOK_GAP, NOTHING_NEW};
use crate::{
    event::Decision,
    keys::{
        KeyName, Keys, ProcessId, Run, RunId, RunState,
        membership::{Membership, RoleChange},
    },
};

/// How far a run is, by its keys: its state, how many are done, who comes and goes, the step in hand, and how much of the backup is had.
type Stage = (Option<(RunId, RunState, usize, Option<Membership>)>, Option<InHand>, Option<u8>);

/// Whose step, and whether it goes back or changes the member's role. Not which attempt: one that is begun again and again, and refused each
/// time, brings nobody anywhere.
type InHand = (MemberId, bool, Option<RoleChange>);

/// What was last seen to come about, by anyone, and when.
#[derive(Debug)]
pub(super) struct Progress {
    /// What was seen before, since this agent began: what comes again is no progress, or one member that says another release
    /// at each look would keep everybody waiting for ever (I-11).
    stages: HashSet<Stage>,
    /// Of each member whether it was at its target, and ready.
    members: HashSet<MemberProgress>,
    pub(super) at: Instant,
    /// When a wait was last over that nobody's progress ends, such as that for a window: it is not held against anybody.
    excused: Instant,
    pub(super) joined: Option<RunId>,
    /// Since when the run is marked failed, or a step is given up.
    pub(super) stands_still_since: Option<Instant>,
    /// The keys of the last look.
    keys: Option<Keys>,
    /// How long it is until the next look, at least.
    pub(super) breath: Duration,
    /// Whether word of a change came at once, the last time that it was waited for.
    pub(super) was_at_once: bool,
}

/// Which member, whether it runs the target, whether it is ready, and how far a learner has applied the log.
type MemberProgress = (MemberId, bool, bool, Option<LogIndex>);

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            stages: HashSet::new(),
            members: HashSet::new(),
            at: Instant::now(),
            excused: Instant::now(),
            joined: None,
            stands_still_since: None,
            keys: None,
            breath: LOOK_GAP,
            was_at_once: false,
        }
    }

    /// Takes over how far the run and its members are.
    pub(super) fn note(&mut self, keys: &Keys, members: impl Iterator<Item = MemberProgress>) {
        let run = keys.run.as_ref().map(|run| &run.value);
        let is_backed_up = run.is_none_or(|run| run.backup.is_some());
        let backed_up = keys.agents.values().filter_map(|agent| agent.value.backed_up).max().filter(|_| !is_backed_up);
        let run =
            run.map(|run| (run.id, run.state.clone(), run.done.len(), run.membership.as_deref().map(without_calls)));
        let in_hand = keys.step.as_ref().map(|step| (step.value.member, step.value.back, step.value.role));
        let is_new = self.stages.insert((run, in_hand, backed_up));
        // Each of them counts, so all are put in.
        let new_members = members.filter(|member| self.members.insert(*member)).count();
        if is_new || new_members > 0 {
            self.at = Instant::now();
        }
    }

    /// Since when somebody could have brought something about, and nobody has.
    pub(super) fn stalls_since(&self) -> Instant {
        self.at.max(self.excused)
    }

    /// Nothing was to come about until now.
    pub(super) fn excuse(&mut self) {
        self.excused = Instant::now();
    }

    /// Takes over what a look read. Word upon word of changes where nothing has changed is heard less and less often.
    pub(super) fn read(&mut self, keys: &Keys) {
        let is_idle = self.was_at_once && self.keys.as_ref() == Some(keys);
        self.breath = if is_idle { (2 * self.breath).min(NOTHING_NEW) } else { LOOK_GAP };
        self.keys = Some(keys.clone());
    }

    /// What `agent resume` has decided by writing this, where the last look read a mark, or other members than are expected now.
    pub(super) fn taken_up_by(&self, run: &Run) -> Option<Decision> {
        let before = &self.keys.as_ref()?.run.as_ref()?.value;
        let accepts = || run.membership.as_ref()?.accepts(before.membership.as_ref()?).then_some(Decision::Accepted);
        match before.state {
            RunState::Failed { .. } => Some(Decision::Resumed),
            _ => accepts(),
        }
    }

    /// Whether the last look read a step by which this member is removed.
    pub(super) fn is_about_to_leave(&self, member: MemberId) -> bool {
        let step = self.keys.as_ref().and_then(|keys| keys.step.as_ref()).map(|step| &step.value);
        step.is_some_and(|step| step.member == member && step.role == Some(RoleChange::Leave))
    }

    /// The keys of the last look, where another process had a baton then whose lease still ran.
    pub(super) fn others_baton(&self, own: ProcessId) -> Option<&Keys> {
        let keys = self.keys.as_ref()?;
        let is_others = keys.baton.as_ref().is_some_and(|baton| baton.value.process != own);
        (is_others && keys.leases.contains_key(&KeyName::Baton)).then_some(keys)
    }
}

fn without_calls(membership: &Membership) -> Membership {
    Membership { called: None, ..membership.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples;

    /// Whether a look is progress.
    fn is_new(progress: &mut Progress, keys: &Keys, members: &[(u64, bool, bool)]) -> bool {
        let before = Instant::now();
        progress.at = before;
        while Instant::now() == before {}
        progress.note(keys, members.iter().map(|(id, at_target, ready)| (MemberId(*id), *at_target, *ready, None)));
        progress.at != before
    }

    #[test]
    fn a_wait_for_a_window_is_not_held_against_anybody() {
        let mut progress = Progress::new();
        let before = progress.stalls_since();
        while Instant::now() == before {}
        progress.excuse();
        assert!(progress.stalls_since() > before);
    }

    #[test]
    fn what_comes_again_is_no_progress() {
        let mut progress = Progress::new();
        let mut keys = samples::keys(None, true);
        for (members, expected) in [
            ([(1, false, true), (2, false, true)], true),
            ([(1, false, true), (2, false, true)], false),
            ([(1, false, false), (2, false, true)], true), // silent, or not ready
            ([(1, false, true), (2, false, true)], false), // as it was
            ([(1, false, false), (2, false, true)], false),
            ([(1, true, true), (2, true, true)], true),
            ([(1, true, true), (2, false, true)], false),
        ] {
            assert_eq!(is_new(&mut progress, &keys, &members), expected, "{members:?}");
        }
        keys.run.as_mut().unwrap().value.done.push(MemberId(1));
        assert!(is_new(&mut progress, &keys, &[]), "one more is done");
        keys.run.as_mut().unwrap().modified.0 += 1;
        assert!(!is_new(&mut progress, &keys, &[]), "written once more");
        let step = keys.step.as_mut().unwrap();
        step.value.attempt.0 += 1;
        assert!(!is_new(&mut progress, &keys, &[]), "begun once more");
        keys.step.as_mut().unwrap().value.back = true;
        assert!(is_new(&mut progress, &keys, &[]), "it goes back");
        keys.step = None;
        assert!(is_new(&mut progress, &keys, &[]), "a step is over");
    }
}
