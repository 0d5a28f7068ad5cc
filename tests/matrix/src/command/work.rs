//! Runs the plans, so many at once, and tells of each.

use std::{collections::BTreeMap, fs, io::Write as _, panic::resume_unwind, sync::Arc, time::Instant};

use tokio::task::JoinSet;

use agent::execute::interrupt::Interrupt;

use crate::{
    cli,
    plan::Plan,
    report::words,
    run::Bench,
    shrink::shrink,
    verdict::{Outcome, Verdict},
};

/// Runs every plan. Returns what came of them, in their order: a signal ends those that are under way, with every process
/// that they started, and they, and those that had not begun, count as not run.
pub(super) async fn work(bench: Bench, plans: Vec<Plan>, typed: &cli::Matrix, interrupt: &Interrupt) -> Vec<Outcome> {
    let shared = Arc::new((bench, typed.clone(), interrupt.clone()));
    let (all, began) = (plans.len(), Instant::now());
    let mut outcomes: BTreeMap<_, _> = plans.iter().cloned().map(Outcome::not_run).enumerate().collect();
    let (mut waiting, mut running, mut done) = (plans.into_iter().enumerate(), JoinSet::new(), 0);
    loop {
        while running.len() < typed.jobs.into()
            && !interrupt.is_asked()
            && let Some((number, plan)) = waiting.next()
        {
            let shared = Arc::clone(&shared);
            running.spawn(async move {
                let (bench, typed, interrupt) = &*shared;
                (number, one(bench, &plan, typed, number, interrupt).await)
            });
        }
        match running.join_next().await {
            None => break,
            Some(Ok((number, outcome))) => {
                done += usize::from(outcome.is_some());
                outcomes.extend(outcome.map(|outcome| (number, outcome)));
                say(&format!("{}\n\n", words::progress(done, all, began.elapsed())));
            }
            Some(Err(panicked)) => resume_unwind(panicked.into_panic()),
        }
    }
    outcomes.into_values().collect()
}

/// What came of one; nothing where a signal ended it.
async fn one(bench: &Bench, plan: &Plan, typed: &cli::Matrix, number: usize, interrupt: &Interrupt) -> Option<Outcome> {
    say(&plan.to_string());
    let name = number.to_string();
    let mut outcome = tokio::select! {
        outcome = bench.run(plan, &name) => outcome,
        () = interrupt.asked(1) => return None,
    };
    if let Verdict::Failed(failure) = &mut outcome.verdict
        && !typed.no_shrink
        && failure.step > 0
    {
        let (name, step, why) = (plan.cell.id(), failure.step, &failure.why);
        say(&format!("{name} failed in step {step}: {why}; looking for a smaller plan that fails\n"));
        failure.smallest = tokio::select! {
            smallest = smallest(bench, plan, (failure.step, &failure.why), number) => smallest,
            () = interrupt.asked(1) => None,
        };
    }
    let mut told = words::record(&outcome);
    if let Verdict::Failed(failure) = &outcome.verdict {
        told += &words::failure(failure, plan, &typed.matrix.to_string_lossy());
    }
    // In one piece: other plans may be told of at the same time.
    say(&format!("{told}{}\n", words::line(&outcome)));
    Some(outcome)
}

async fn smallest(bench: &Bench, plan: &Plan, failed: (usize, &str), number: usize) -> Option<(Plan, String)> {
    let mut tries = 0;
    shrink(plan, failed, |smaller| {
        tries += 1;
        let name = format!("{number}-smaller-{tries}");
        async move {
            match bench.run(&smaller, &name).await.verdict {
                Verdict::Failed(failure) => {
                    // The logs of the whole plan are kept; of the smaller ones they would only fill the disk.
                    let _ = fs::remove_dir_all(&failure.folder);
                    // Before the first step nothing of the plan can have failed.
                    (failure.step > 0).then_some((failure.step, failure.why))
                }
                _ => None,
            }
        }
    })
    .await
}

/// A closed terminal changes no run.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(agent::visible::lines(text).as_bytes());
}
