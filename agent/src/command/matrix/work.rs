//! Runs the plans, so many at once, and tells of each.

use std::{collections::BTreeMap, fs, io::Write as _, panic::resume_unwind, sync::Arc};

use tokio::task::JoinSet;

use crate::{
    cli,
    execute::interrupt::Interrupt,
    matrix::{
        plan::Plan,
        report::words,
        run::Bench,
        shrink::shrink,
        verdict::{Outcome, Verdict},
    },
};

/// Runs every plan. Returns what came of them, in their order, and whether they all were run: a signal ends those that are
/// under way, with every process that they started.
pub(super) async fn work(
    bench: Bench,
    plans: Vec<Plan>,
    typed: &cli::Matrix,
    interrupt: &Interrupt,
) -> (Vec<Outcome>, bool) {
    let (bench, typed) = (Arc::new(bench), Arc::new(typed.clone()));
    let (mut waiting, mut running) = (plans.into_iter().enumerate(), JoinSet::new());
    let mut outcomes = BTreeMap::new();
    let is_whole = loop {
        while running.len() < typed.jobs.into()
            && let Some((number, plan)) = waiting.next()
        {
            let (bench, typed) = (Arc::clone(&bench), Arc::clone(&typed));
            running.spawn(async move { (number, one(&bench, &plan, &typed, number).await) });
        }
        let done = tokio::select! {
            done = running.join_next() => done,
            () = interrupt.asked(1) => break false,
        };
        match done {
            None => break true,
            Some(Ok((number, outcome))) => drop(outcomes.insert(number, outcome)),
            Some(Err(panicked)) => resume_unwind(panicked.into_panic()),
        }
    };
    running.shutdown().await;
    (outcomes.into_values().collect(), is_whole)
}

async fn one(bench: &Bench, plan: &Plan, typed: &cli::Matrix, number: usize) -> Outcome {
    say(&plan.to_string());
    let mut outcome = bench.run(plan, &number.to_string()).await;
    if let Verdict::Failed(failure) = &mut outcome.verdict
        && !typed.no_shrink
        && failure.step > 0
    {
        let (name, step, why) = (plan.cell.id(), failure.step, &failure.why);
        say(&format!("{name} failed in step {step}: {why}; looking for a smaller plan that fails\n"));
        failure.smallest = smallest(bench, plan, (failure.step, &failure.why), number).await;
    }
    let mut told = words::record(&outcome.record);
    if let Verdict::Failed(failure) = &outcome.verdict {
        told += &words::failure(failure, plan, &typed.matrix.to_string_lossy());
    }
    // In one piece: other plans may be told of at the same time.
    say(&format!("{told}{}\n\n", words::line(&outcome)));
    outcome
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
    let _ = std::io::stderr().write_all(text.as_bytes());
}
