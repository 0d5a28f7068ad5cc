//! Bugs of etcd's past that are hunted: the releases and the size that the generator is given, and by what a plan that failed
//! is known to have found just this one. The generator never sees the second, and nothing else is said of a bug.

use super::{
    Absence, Action, Ground, Plan, Step,
    run::{Failure, Symptom},
};

/// One bug.
#[derive(Clone, Copy, Debug)]
pub struct Hunted {
    /// The number of etcd's issue, or an entry of `agent hazards` where there is none.
    pub name: &'static str,
    /// For a person.
    pub what: &'static str,
    way: &'static [&'static str],
    size: usize,
    /// Whether it was this one, and no other that these releases have.
    is_it: fn(&Plan, &Failure) -> bool,
}

/// The ten, with those first that are quick to be found.
pub const HUNTED: [Hunted; 10] = [
    Hunted {
        name: "hop-too-fast-37",
        what: "3.7 cannot read what 3.5 left in the log",
        way: &["3.5.30", "3.6.14", "3.7.1"],
        size: 3,
        is_it: |_, failure| failure.says("unmarshal should never fail"),
    },
    Hunted {
        name: "20809",
        what: "v2 requests in the log stop 3.6",
        way: &["3.4.23", "3.5.30", "3.6.14"],
        size: 3,
        is_it: |_, failure| failure.says("detected disallowed v2 WAL"),
    },
    Hunted {
        name: "20967",
        what: "members of long ago come back on 3.6",
        way: &["3.4.23", "3.5.16", "3.6.14"],
        size: 3,
        is_it: |plan, failure| {
            let is_36 = plan
                .has_begun(failure, |action| matches!(action, Action::Hop { to, .. } if to.to_string() == "3.6.14"));
            let is_restored = plan.has_begun(failure, |action| *action == Action::Restore);
            is_36 && is_restored && failure.is_of_membership()
        },
    },
    Hunted {
        name: "19557",
        what: "learners that were promoted are learners again on 3.6",
        way: &["3.5.16", "3.6.14"],
        size: 3,
        is_it: |plan, failure| {
            let is_36 = plan.has_begun(failure, |action| matches!(action, Action::Hop { .. }));
            let is_learner = failure.broken.symptom == Symptom::Membership && failure.says("is_learner: true");
            failure.says("too many learner members") || is_36 && is_learner
        },
    },
    Hunted {
        name: "14571",
        what: "a member that was sent a snapshot keeps the users of before",
        way: &["3.5.5", "3.5.30"],
        size: 3,
        is_it: |_, failure| failure.broken.symptom == Symptom::Auth,
    },
    Hunted {
        name: "15271",
        what: "a watch goes back in time after a snapshot",
        way: &["3.5.5", "3.5.30"],
        size: 3,
        is_it: |plan, failure| {
            let was_sent_snapshot = matches!(failing(plan, failure), Some(Action::Away { .. }));
            was_sent_snapshot && failure.broken.symptom == Symptom::Watch && failure.says("told revision")
        },
    },
    Hunted {
        name: "18667",
        what: "a transaction that reads another revision is not applied everywhere",
        way: &["3.5.30", "3.6.14"],
        size: 3,
        is_it: |plan, failure| plan.habits.reads_in_transactions && failure.broken.symptom == Symptom::Data,
    },
    Hunted {
        name: "13766",
        what: "a kill under load loses an entry on one member",
        way: &["3.5.2", "3.5.30"],
        size: 3,
        is_it: |plan, failure| {
            // A kill in a defragmentation is another bug of these releases (14685), and one in a compaction, too (17780).
            let mut done = plan.steps.iter().filter(|step| step.id <= failure.step);
            let is_of_other = |step: &Step| {
                step.kill.is_some() && matches!(step.action, Action::Defragment { .. } | Action::Compact { .. })
            };
            // Who compacts every so often leaves the newest revisions, without which a kill takes nothing back.
            let defragments = plan.habits.defragments_every.is_some();
            let is_other = defragments || plan.habits.reads_in_transactions || done.any(is_of_other);
            !is_other && plan.has_killed(failure) && failure.differs()
        },
    },
    Hunted {
        name: "17780",
        what: "a kill in a compaction takes the revision back",
        way: &["3.5.13", "3.5.30"],
        size: 3,
        is_it: |plan, failure| {
            let compacts = plan.habits.compacts_every.is_some()
                || plan.has_begun(failure, |action| matches!(action, Action::Compact { .. } | Action::Away { .. }));
            compacts && plan.has_killed(failure) && !plan.habits.reads_in_transactions && failure.differs()
        },
    },
    Hunted {
        name: "20271",
        what: "a defragmentation beside a snapshot breaks the database",
        way: &["3.5.16", "3.5.30"],
        size: 3,
        is_it: |plan, failure| {
            let defragments = plan.habits.defragments_every.is_some();
            let ends = failure.broken.symptom == Symptom::DoesNotServe && failure.says("panic");
            defragments && !plan.habits.reads_in_transactions && (ends || failure.differs())
        },
    },
];

impl Hunted {
    /// What the generator is given.
    pub fn ground(&self) -> Result<Ground, proto::VersionError> {
        let way = self.way.iter().map(|release| release.parse()).collect::<Result<_, _>>()?;
        Ok(Ground { way, size: self.size })
    }

    pub fn was_found(&self, plan: &Plan, failure: &Failure) -> bool {
        failure.broken.symptom != Symptom::NotCarriedOut && (self.is_it)(plan, failure)
    }
}

impl Failure {
    /// Whether a member ended with these words, or the judge saw them.
    fn says(&self, words: &str) -> bool {
        self.broken.text.contains(words) || self.last_lines.iter().any(|line| line.contains(words))
    }

    /// Whether members disagree on who is one, or do not find together.
    fn is_of_membership(&self) -> bool {
        matches!(self.broken.symptom, Symptom::Membership | Symptom::DoesNotServe)
    }

    /// Whether members hold different data, or less than was acknowledged. That hashes alone differ is another bug: before
    /// 3.5.16 they count a deletion or not, as the member has compacted.
    fn differs(&self) -> bool {
        let by_hash = self.broken.symptom == Symptom::Data && self.broken.text.starts_with("hashes at");
        matches!(self.broken.symptom, Symptom::Data | Symptom::LostWrite) && !by_hash
    }
}

impl Plan {
    /// Whether something of the kind was done by the time when it failed.
    fn has_begun(&self, failure: &Failure, is_such: fn(&Action) -> bool) -> bool {
        self.steps.iter().any(|step| step.id <= failure.step && is_such(&step.action))
    }

    /// Whether a member was killed by then.
    fn has_killed(&self, failure: &Failure) -> bool {
        let is_absence = |action: &Action| matches!(action, Action::Away { how: Absence::Killed, .. });
        let is_killed = self.steps.iter().any(|step| step.id <= failure.step && step.kill.is_some());
        is_killed || self.has_begun(failure, is_absence)
    }
}

fn failing<'p>(plan: &'p Plan, failure: &Failure) -> Option<&'p Action> {
    plan.steps.iter().find(|step| step.id == failure.step).map(|Step { action, .. }| action)
}
