//! The steps of a run: whose turn it was, what was done, how that ended, and which events show it.

use std::collections::BTreeMap;

use super::{
    record::{Record, Said},
    timeline::Told,
    words::words,
};

/// How many steps are shown.
const MOST_STEPS: usize = 500;
/// How many events of one step are shown.
const MOST_EVIDENCE: usize = 100;

/// How a step has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    PutBack,
    KeptNew,
    Failed,
    /// No event says how it ended.
    Unknown,
}

impl Outcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::PutBack => "put back",
            Self::KeptNew => "kept on the new binary",
            Self::Failed => "failed",
            Self::Unknown => "no end is recorded",
        }
    }
}

/// One turn of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) member: String,
    pub(super) host: String,
    /// Whether it went back.
    pub(super) is_back: bool,
    pub(super) began: u64,
    /// From the stop to being ready again.
    pub(super) down: Option<(u64, Option<u64>)>,
    pub(super) outcome: Outcome,
    /// The release before it, and after it.
    pub(super) releases: (Option<String>, Option<String>),
    /// Moments, and what was so then.
    pub(super) evidence: Vec<(u64, String)>,
    id: String,
    /// Whether its member was started since it was last stopped.
    was_started: bool,
    is_over: bool,
}

/// The steps in which a member was stopped or started, in order of time; and how many more there are.
pub(super) fn steps(told: &[Told]) -> (Vec<Step>, usize) {
    let mut walk = Walk::default();
    told.iter().for_each(|(record, process)| walk.take(record, *process));
    let mut steps: Vec<Step> = walk.steps.into_iter().filter(|step| step.down.is_some() || !step.is_over).collect();
    let more = steps.len().saturating_sub(MOST_STEPS);
    steps.truncate(MOST_STEPS);
    (steps, more)
}

#[derive(Default)]
struct Walk {
    steps: Vec<Step>,
    /// The last step of each process.
    last_of: BTreeMap<usize, usize>,
    /// What was done before the lock of the step that comes.
    before: BTreeMap<usize, Vec<(u64, String)>>,
    /// What the last look of each process has shown of the others.
    shown: BTreeMap<usize, String>,
    releases: BTreeMap<String, String>,
}

impl Walk {
    fn take(&mut self, record: &Record, process: usize) {
        let said = &record.said;
        match said.event.as_str() {
            "seen" => return self.look(record, process),
            "step_locked" | "step_taken_over" => self.begin(record, process),
            "handed_over" | "hook_ran" | "hook_failed" if self.in_hand(process, said).is_none() => {
                let after =
                    self.last_of.get(&process).filter(|at| self.steps[**at].is(said) && said.event != "handed_over");
                match after.copied() {
                    // Hooks of a member whose step is over ran after it.
                    Some(at) if self.before.get(&process).is_none_or(Vec::is_empty) => {
                        self.show(at, record.at, words(said))
                    }
                    _ => {
                        let before = self.before.entry(process).or_default();
                        before.push((record.at, words(said)));
                        before.truncate(MOST_EVIDENCE);
                    }
                }
                return;
            }
            _ => {}
        }
        let Some(at) = self.in_hand(process, said) else { return };
        if said.event == "member_stopping" {
            self.steps[at].releases.0 = self.releases.get(&self.steps[at].id).cloned();
            let shown = self.shown.get(&process).cloned();
            shown
                .into_iter()
                .for_each(|shown| self.show(at, record.at, format!("the last look before the stop showed {shown}")));
        }
        self.show(at, record.at, words(said));
        self.steps[at].follow(said, record.at);
    }

    fn begin(&mut self, record: &Record, process: usize) {
        let said = &record.said;
        let id = said.member_id.clone().unwrap_or_default();
        let step = Step {
            member: said.member.clone().unwrap_or_else(|| id.clone()),
            host: said.host.clone(),
            is_back: said.back,
            began: record.at,
            down: None,
            outcome: Outcome::Unknown,
            releases: (self.releases.get(&id).cloned(), None),
            evidence: self.before.remove(&process).unwrap_or_default(),
            id,
            was_started: false,
            is_over: false,
        };
        self.last_of.insert(process, self.steps.len());
        self.steps.push(step);
    }

    /// The step of this process that this is about.
    fn in_hand(&self, process: usize, said: &Said) -> Option<usize> {
        self.last_of.get(&process).copied().filter(|at| self.steps[*at].is(said) && !self.steps[*at].is_over)
    }

    fn show(&mut self, at: usize, moment: u64, what: String) {
        let evidence = &mut self.steps[at].evidence;
        if evidence.len() < MOST_EVIDENCE {
            evidence.push((moment, what));
        }
    }

    /// What a look shows is what was so before the next stop, and since the last start.
    fn look(&mut self, record: &Record, process: usize) {
        let members = &record.said.members;
        let voters = || members.iter().filter(|member| member.role != "learner");
        let ready = voters().filter(|member| member.state == "ready").count();
        let leader = members.iter().find(|member| member.role == "leader");
        let leads =
            leader.map_or_else(|| "nobody is known to lead".to_owned(), |leader| format!("{} leads", leader.name));
        self.shown.insert(process, format!("{ready} of {} voters ready, {leads}", voters().count()));
        for member in members {
            let Some(release) = &member.release else { continue };
            self.releases.insert(member.id.clone(), release.clone());
            // What another agent saw may be older than the start.
            let is_of = |at: &usize| self.steps[*at].id == member.id && self.steps[*at].was_started;
            let step = self.last_of.get(&process).copied().filter(is_of).filter(|_| member.state == "ready");
            if let Some(at) = step.filter(|at| self.steps[*at].releases.1.as_ref() != Some(release)) {
                self.steps[at].releases.1 = Some(release.clone());
                self.show(at, record.at, format!("a look shows {} ready at {release}", member.name));
            }
        }
    }
}

impl Step {
    fn is(&self, said: &Said) -> bool {
        said.member_id.as_ref() == Some(&self.id)
    }

    /// The last word on a step stands: a member that was put back and is ready again was put back.
    fn follow(&mut self, said: &Said, at: u64) {
        match said.event.as_str() {
            "member_stopping" | "member_stopped" | "member_started" => {
                let (from, _) = self.down.unwrap_or((at, None));
                (self.down, self.was_started) = (Some((from, None)), said.event == "member_started");
                if !self.was_started {
                    self.releases.1 = None;
                }
            }
            "member_ready" => {
                (self.down, self.was_started) = (self.down.map(|(from, to)| (from, to.or(Some(at)))), true);
                if !matches!(self.outcome, Outcome::PutBack | Outcome::KeptNew) {
                    self.outcome = Outcome::Done;
                }
            }
            "member_failed" if !matches!(self.outcome, Outcome::PutBack | Outcome::KeptNew) => {
                self.outcome = Outcome::Failed;
            }
            "member_putting_back" => self.outcome = Outcome::PutBack,
            "member_kept_new" => self.outcome = Outcome::KeptNew,
            "step_unlocked" => self.is_over = true,
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "steps_test.rs"]
mod tests;
