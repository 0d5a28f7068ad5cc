//! What came of a plan: the verdict, what was really injected, and of a failure all that a person asks for first.

use std::{path::PathBuf, time::Duration};

use serde::Serialize;

use super::plan::Plan;

#[derive(Clone, Debug)]
pub struct Outcome {
    pub plan: Plan,
    pub verdict: Verdict,
    /// What was done to the cluster, beside the steps.
    pub record: Vec<Entry>,
    /// Agents that ended badly where a fault was in their step, so that their command was run again; in words.
    pub again: Vec<String>,
    pub took: Duration,
}

#[derive(Clone, Debug)]
pub enum Verdict {
    /// All went as promised, with every fault injected but those that the record names.
    Passed,
    /// All went as promised, but none of the faults came to pass: nothing is shown.
    NotInjected,
    Failed(Box<Failure>),
    /// A signal asked for an end before it was over: nothing is known of it.
    NotRun,
}

impl Verdict {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::NotInjected => "not injected",
            Self::Failed(_) => "failed",
            Self::NotRun => "not run",
        }
    }
}

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Failure {
    /// In which step; 0 before the first.
    pub step: usize,
    /// What was expected, and what was seen.
    pub why: String,
    /// How members stood before the step.
    pub before: Vec<MemberRow>,
    pub after: Vec<MemberRow>,
    /// The smallest plan that was seen to fail, and why it does.
    pub smallest: Option<(Plan, String)>,
    /// Logs of members and agents.
    pub folder: PathBuf,
}

/// How a member stands, as far as it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberRow {
    pub member: String,
    /// The release that its symlink leads to.
    pub binary: Option<String>,
    pub runs: Option<String>,
    /// Which cluster version it holds.
    pub cluster_version: Option<String>,
}

/// One fault of a plan, as it came to pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name in the plan, `3.1`; that of the step where the step itself has an agent die.
    pub fault: String,
    /// What was to happen, and to whom.
    pub what: String,
    /// When it did, in milliseconds since the plan began; `None` if it did not.
    pub at_ms: Option<u64>,
    /// What came of it, or why it was not injected.
    pub note: String,
}

impl Outcome {
    /// What there is to say of a plan that a signal ended, or kept from its begin.
    pub fn not_run(plan: Plan) -> Self {
        Self { plan, verdict: Verdict::NotRun, record: Vec::new(), again: Vec::new(), took: Duration::ZERO }
    }

    /// Whether it passed with fewer faults than its plan has.
    pub fn is_partial(&self) -> bool {
        matches!(self.verdict, Verdict::Passed) && self.injected() < self.record.len()
    }

    /// The faults that came to pass.
    pub fn injected(&self) -> usize {
        self.record.iter().filter(|entry| entry.at_ms.is_some()).count()
    }
}
