//! A hunt: plan after plan from one seed to the next, until one finds the bug or the time is over.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{
    Ground, Plan,
    generate::plan,
    run::{Answer, Bench, Failure, Outcome, Symptom, run},
};

/// How long a hunt may take, and how.
#[derive(Clone, Debug)]
pub struct Limits {
    pub time: Duration,
    pub plans: u64,
    pub jobs: usize,
    pub seed: u64,
}

/// What a hunt came to.
#[derive(Debug, Default)]
pub struct Bag {
    /// The plan that found what was hunted.
    pub found: Option<(Plan, Failure)>,
    /// What the agent had said of that plan's hops.
    pub answers: Vec<Answer>,
    /// How many plans were run to their end or to a broken promise.
    pub plans: u64,
    /// What else was found: other bugs that these releases have.
    pub others: Vec<(u64, Failure)>,
    /// Plans that could not be carried out, and why.
    pub not_carried_out: Vec<(u64, Failure)>,
    pub took: Duration,
}

/// Runs plans of this ground. `is_it` judges whether a failure is what is hunted.
pub async fn hunt(
    ground: &Ground,
    bench: &Bench,
    folder: &Path,
    limits: &Limits,
    is_it: impl Fn(&Plan, &Failure) -> bool,
) -> Bag {
    let (began, bench) = (Instant::now(), Arc::new(bench.clone()));
    let (mut running, mut bag) = (JoinSet::new(), Bag::default());
    let mut seeds = limits.seed..limits.seed.saturating_add(limits.plans);
    while bag.found.is_none() {
        while running.len() < limits.jobs
            && let Some(seed) = seeds.next()
        {
            running.spawn(one(plan(ground, seed), Arc::clone(&bench), folder.join(seed.to_string())));
        }
        let left = limits.time.saturating_sub(began.elapsed());
        let Ok(Some(Ok((plan, outcome)))) = tokio::time::timeout(left, running.join_next()).await else { break };
        bag.plans += 1;
        tell(&plan, &outcome);
        let Some(failure) = outcome.failure else { continue };
        let name = plan.seed;
        match failure.broken.symptom {
            Symptom::NotCarriedOut => bag.not_carried_out.push((name, failure)),
            _ if is_it(&plan, &failure) => {
                bag.found = Some((plan, failure));
                bag.answers = outcome.answers;
            }
            _ => bag.others.push((name, failure)),
        }
    }
    // Their clusters end with them.
    running.shutdown().await;
    bag.took = began.elapsed();
    bag
}

async fn one(plan: Plan, bench: Arc<Bench>, folder: PathBuf) -> (Plan, Outcome) {
    let outcome = run(&plan, &bench, &folder).await;
    (plan, outcome)
}

/// In one piece: other plans may be told of at the same time.
fn tell(plan: &Plan, outcome: &Outcome) {
    let took = outcome.took.as_secs();
    match &outcome.failure {
        None => eprintln!("seed {}: passed, {took} s", plan.seed),
        Some(failure) => eprintln!("{plan}{}, {took} s\n", words(failure)),
    }
    for answer in &outcome.answers {
        eprintln!("{answer}");
    }
}

/// A failure for a person.
pub fn words(failure: &Failure) -> String {
    let lines: String = failure.last_lines.iter().map(|line| format!("\n  {line}")).collect();
    let text: String = failure.broken.text.chars().take(600).collect();
    format!(
        "failed in step {}: {:?}: {text}{lines}\nlogs: {}",
        failure.step,
        failure.broken.symptom,
        failure.folder.display()
    )
}

impl Bag {
    /// Removes the clusters of all plans that failed.
    pub fn tidy(&self) {
        let found = self.found.iter().map(|(_, failure)| failure);
        let others = self.others.iter().chain(&self.not_carried_out).map(|(_, failure)| failure);
        found.chain(others).for_each(|failure| drop(fs::remove_dir_all(&failure.folder)));
    }
}
