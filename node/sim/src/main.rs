//! One seed, a soak of many, and a failing seed made small.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a tool of tests")]

use std::{
    collections::BTreeMap,
    io::Write,
    process::{Command, ExitCode, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use clap::{Parser, Subcommand};
use sim::{
    entropy,
    machine::TURN,
    plan::{Fault, Plan},
    world::{Report, World, note_panics},
};
use tracing_subscriber::fmt::{format::Writer, time::FormatTime};

/// In so many seeds each kind of fault takes effect, or something is wrong with the simulation.
const SEEDS_FOR_EACH_KIND: usize = 200;

/// Whole clusters of the bundled node on one thread, with every fault, decided by one seed.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Runs one seed, and prints what it was like as JSON; ends with 1 where something must not be.
    Run {
        seed: u64,
        /// Simulated seconds until all faults end.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// A disk loses what it has.
        #[arg(long)]
        disk: bool,
        /// Takes the plan from standard input, as JSON, in place of the seed's.
        #[arg(long)]
        plan: bool,
        /// What is logged to stderr, as `RUST_LOG` has it.
        #[arg(long)]
        log: Option<String>,
    },
    /// Runs seeds side by side until the time is over, and counts.
    Soak {
        /// Processor minutes, about.
        #[arg(long, default_value_t = 3.0)]
        minutes: f64,
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// At most as many seeds.
        #[arg(long, default_value_t = u64::MAX)]
        seeds: u64,
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        #[arg(long)]
        disk: bool,
        /// Goes on after a failure.
        #[arg(long)]
        keep_going: bool,
        /// As many at once.
        #[arg(long, default_value_t = 2)]
        at_once: usize,
    },
    /// Takes faults away from a failing seed for as long as it fails, and prints the plan that is left.
    Shrink {
        seed: u64,
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        #[arg(long)]
        disk: bool,
    },
    /// Runs a seed twice, and ends with 1 where the two differ.
    Replays {
        seed: u64,
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        #[arg(long)]
        disk: bool,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().what {
        What::Run { seed, seconds, disk, plan, log } => {
            let plan = match plan {
                true => serde_json::from_reader(std::io::stdin()).unwrap(),
                false => Plan::of(seed, seconds, disk),
            };
            let report = run(plan, log.as_deref());
            println!("{}", serde_json::to_string(&report).unwrap());
            ExitCode::from(u8::from(report.failure.is_some()))
        }
        What::Soak { minutes, first, seeds, seconds, disk, keep_going, at_once } => {
            soak(minutes, first, seeds, seconds, disk, keep_going, at_once)
        }
        What::Shrink { seed, seconds, disk } => {
            let plan = shrink(Plan::of(seed, seconds, disk));
            println!("{}", serde_json::to_string_pretty(&plan).unwrap());
            ExitCode::SUCCESS
        }
        What::Replays { seed, seconds, disk } => {
            let plan = Plan::of(seed, seconds, disk);
            let (one, other) = (elsewhere(&plan), elsewhere(&plan));
            let is_same = one.trace == other.trace;
            println!("{} {} {}", if is_same { "the same" } else { "DIFFERENT" }, one.trace, other.trace);
            ExitCode::from(u8::from(!is_same))
        }
    }
}

/// The world's time, and whose turn it is.
struct Turn;

impl FormatTime for Turn {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        write!(out, "{:9.3} m{}", entropy::now() as f64 / 1e9, TURN.get())
    }
}

fn run(plan: Plan, log: Option<&str>) -> Report {
    if let Some(log) = log {
        tracing_subscriber::fmt()
            .with_timer(Turn)
            .with_env_filter(log)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .init();
    }
    note_panics();
    // On a thread of its own: what a library draws once a thread it has drawn for this one already, and more where it logs.
    let run = move || {
        entropy::take_over(plan.seed);
        World::new(plan).run()
    };
    std::thread::spawn(run).join().unwrap()
}

/// A run in a process of its own.
fn elsewhere(plan: &Plan) -> Report {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["run", "0", "--plan"])
        .stdin(Stdio::piped())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(serde_json::to_string(plan).unwrap().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Report {
        seed: plan.seed,
        failure: Some(format!(
            "the simulation has ended: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )),
        ..Report::default()
    })
}

fn shrink(mut plan: Plan) -> Plan {
    let Some(failure) = elsewhere(&plan).failure else {
        eprintln!("seed {} does not fail", plan.seed);
        return plan;
    };
    eprintln!("seed {}: {failure}", plan.seed);
    // Large parts first, and in the end one by one.
    let mut size = plan.faults.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < plan.faults.len() {
            let mut fewer = plan.clone();
            fewer.faults.drain(at..(at + size).min(plan.faults.len()));
            match elsewhere(&fewer).failure {
                Some(failure) => {
                    eprintln!("{} faults: {failure}", fewer.faults.len());
                    plan = fewer;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    plan
}

fn soak(minutes: f64, first: u64, seeds: u64, seconds: u64, disk: bool, keep_going: bool, at_once: usize) -> ExitCode {
    let began = Instant::now();
    let limit = Duration::from_secs_f64(60.0 * minutes / at_once as f64);
    let next = AtomicU64::new(first);
    let last = first.saturating_add(seeds);
    let reports = Mutex::new(Vec::new());
    let failed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while began.elapsed() < limit && (keep_going || failed.load(Ordering::Relaxed) == 0) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= last {
                        return;
                    }
                    let report = elsewhere(&Plan::of(seed, seconds, disk));
                    if let Some(failure) = &report.failure {
                        failed.fetch_add(1, Ordering::Relaxed);
                        println!("seed {seed}: {failure}");
                    }
                    reports.lock().unwrap().push(report);
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap();
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    let mut faults: BTreeMap<String, u64> = Fault::KINDS.iter().map(|kind| ((*kind).to_owned(), 0)).collect();
    for (kind, count) in reports.iter().flat_map(|report| &report.faults) {
        *faults.entry(kind.clone()).or_default() += count;
    }
    let simulated = reports.iter().map(|report| report.simulated_s).sum::<f64>();
    let spent = began.elapsed().as_secs_f64() * at_once as f64;
    let calm = reports.iter().filter(|report| report.faults.values().sum::<u64>() < 3).count();
    println!(
        "{} seeds, {} failed, {calm} of them with fewer than three faults",
        reports.len(),
        failed.load(Ordering::Relaxed)
    );
    println!(
        "{:.1} simulated hours in {:.0} processor seconds: {:.1} an hour",
        simulated / 3600.0,
        spent,
        simulated / spent
    );
    println!(
        "writes {}, reads {}, transactions {}, unknown {}, added {}, not added {}, renewals {}, watched {}, compactions {}, states compared {}, gates seen {}, gates settled {}",
        sum(|r| r.puts),
        sum(|r| r.gets),
        sum(|r| r.swaps),
        sum(|r| r.unknown),
        sum(|r| r.added),
        sum(|r| r.refused),
        sum(|r| r.renewals),
        sum(|r| r.watched),
        sum(|r| r.compactions),
        sum(|r| r.compared),
        sum(|r| r.gates),
        sum(|r| r.settled)
    );
    println!(
        "terms {}, snapshots {}, processes that ended by themselves {}; at most {} MB",
        sum(|r| r.terms),
        sum(|r| r.snapshots),
        sum(|r| r.ends.len() as u64),
        reports.iter().map(|report| report.most_mb).max().unwrap_or_default()
    );
    println!(
        "faults that took effect: {}",
        faults.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
    );
    let missing: Vec<_> = faults.iter().filter(|(_, count)| **count == 0).map(|(kind, _)| kind.clone()).collect();
    if !missing.is_empty() {
        println!("never: {}", missing.join(", "));
    }
    // In a few seeds it may be by chance.
    let is_blind = reports.len() >= SEEDS_FOR_EACH_KIND && !missing.is_empty();
    ExitCode::from(u8::from(failed.load(Ordering::Relaxed) > 0 || is_blind))
}
