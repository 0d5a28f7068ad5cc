//! What a rollout by Baton costs beside the bare shell loop that checks nothing: `scripts/bench-rollout`.
//!
//! Both go over fresh clusters of the same releases under the same load, in turns, leader last with
//! MoveLeader. Figures are medians with their range; what counts are the ratios within one run.

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use clap::Parser;
use rustix::process::Signal;
use tests::{
    Error,
    agent::{self, Agent},
    cluster::{Cluster, Layout, Member, Spec},
    command::{Wanted, end_of},
    etcd::Etcd,
    events,
    playbook::Upgrade,
    rollout::LIMIT,
    wait,
    witness::{Testimony, Witness},
    workload::Load,
};

/// Rolls real etcd clusters from one release to another under load, by Baton and by a bare loop, in turns.
#[derive(Parser)]
#[command(name = "bench-rollout")]
struct Cli {
    /// Rollouts of each kind.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    #[command(flatten)]
    wanted: Wanted,
}

/// One rollout's figures.
struct Figures {
    gap_ms: f64,
    failed: f64,
    rollout_s: f64,
    lost: usize,
    resident_mb: Option<f64>,
}

#[tokio::main]
async fn main() -> ExitCode {
    end_of(bench(&Cli::parse())).await
}

async fn bench(cli: &Cli) -> Result<ExitCode, Error> {
    let (from, to) = (Etcd::get(&cli.wanted.from)?, Etcd::get(&cli.wanted.to)?);
    let (mut bare, mut baton) = (Vec::new(), Vec::new());
    let mut plans = Vec::new();
    for run in 1..=cli.runs {
        let cluster = Cluster::up(&Spec { size: cli.wanted.size, ..Spec::new(from.clone()) }).await?;
        bare.push(by_the_bare_loop(&cluster.layout, &to).await?);
        drop(cluster);
        let cluster = Cluster::up(&Spec { size: cli.wanted.size, ..Spec::new(from.clone()) }).await?;
        plans.extend(plan_times(&cluster.layout, &to)?);
        baton.push(by_baton(&cluster.layout, &to).await?);
        eprintln!("run {run} of {} done", cli.runs);
    }
    report(cli, &from, &to, &bare, &baton, &mut plans)?;
    match bare.iter().chain(&baton).all(|figures| figures.lost == 0) {
        true => Ok(ExitCode::SUCCESS),
        false => Err("acknowledged writes were lost".into()),
    }
}

fn report(
    cli: &Cli,
    from: &Etcd,
    to: &Etcd,
    bare: &[Figures],
    baton: &[Figures],
    plans: &mut [f64],
) -> Result<(), Error> {
    println!(
        "etcd {} to {}, {} members, {} runs each; median (min–max)",
        from.release, to.release, cli.wanted.size, cli.runs
    );
    println!("| | longest write gap, ms | attempts repeated | rollout, s | writes lost |\n|---|---|---|---|---|");
    for (name, all) in [("bare loop", bare), ("Baton", baton)] {
        let column = |of: fn(&Figures) -> f64| spread(&mut all.iter().map(of).collect::<Vec<_>>());
        let lost: usize = all.iter().map(|figures| figures.lost).sum();
        println!(
            "| {name} | {} | {} | {} | {lost} |",
            column(|f| f.gap_ms),
            column(|f| f.failed),
            column(|f| f.rollout_s)
        );
    }
    let median_of = |all: &[Figures], of: fn(&Figures) -> f64| median(&mut all.iter().map(of).collect::<Vec<_>>());
    let over = median_of(baton, |f| f.rollout_s) - median_of(bare, |f| f.rollout_s);
    println!("Baton over the bare loop: {:.2} s a member", over / cli.wanted.size as f64);
    println!("gap, Baton / bare loop: {:.2}", median_of(baton, |f| f.gap_ms) / median_of(bare, |f| f.gap_ms));
    let resident: Vec<f64> = baton.iter().filter_map(|figures| figures.resident_mb).collect();
    println!("agent run, resident at most: {} MB", spread(&mut resident.clone()));
    println!("agent plan on the live cluster: {} ms", spread(plans));
    println!("agent --version, start to end: {} ms", spread(&mut start_times()?));
    Ok(())
}

/// Nothing is checked but that the member answers: the floor for time, not a way to upgrade.
async fn by_the_bare_loop(layout: &Layout, to: &Etcd) -> Result<Figures, Error> {
    // Everything is in place beforehand, as it is for Baton: what is timed is the rollout alone.
    layout.members.iter().try_for_each(|member| member.install(to))?;
    let witness = Witness::begin(layout, &Load::default(), to.release.cluster_version()).await?;
    let leader = layout.leader().await?.name.clone();
    let (last, first): (Vec<_>, Vec<_>) = layout.members.iter().partition(|member| member.name == leader);
    let began = Instant::now();
    for member in first.iter().chain(&last) {
        if member.name == leader {
            pass_leadership_on(layout, member, first[0]).await?;
        }
        member.end(Signal::TERM)?;
        member.start()?;
        healthy(layout, member).await?;
    }
    let rollout_s = began.elapsed().as_secs_f64();
    witness.has_settled().await?;
    figures(witness.end().await?, rollout_s, None)
}

async fn pass_leadership_on(layout: &Layout, from: &Member, to: &Member) -> Result<(), Error> {
    let client = layout.client(from)?;
    let target = layout.client(to)?.status().await?;
    let id = target.header.map_or(0, |header| header.member_id);
    Ok(client.move_leader(id).await?)
}

async fn healthy(layout: &Layout, member: &Member) -> Result<(), Error> {
    let deadline = Instant::now() + wait::GENEROUS;
    while Instant::now() < deadline {
        let client = layout.client(member)?;
        if client.get("health").await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err(format!("{} did not become healthy", member.name).into())
}

async fn by_baton(layout: &Layout, to: &Etcd) -> Result<Figures, Error> {
    let playbooks = Upgrade::new(layout, to).write(layout)?;
    let witness = Witness::begin(layout, &Load::default(), to.release.cluster_version()).await?;
    let agents: Vec<Agent> = playbooks.iter().map(|path| Agent::start("run", path, &[])).collect::<Result<_, _>>()?;
    let peak = Peak::watch(agents.iter().filter_map(|agent| agent.process().ok()).map(|process| process.pid).collect());
    let mut happened = Vec::new();
    for agent in agents {
        let ended = agent.ended(LIMIT).await?;
        if ended.exit != Some(0) {
            return Err(format!("an agent ended with {:?}: {}", ended.exit, ended.stderr).into());
        }
        happened.extend(ended.events);
    }
    let resident = peak.end();
    let span = events::span(&happened)?.ok_or("the agents told of no step")?;
    figures(witness.end().await?, span.seconds(), Some(resident))
}

fn figures(seen: Testimony, rollout_s: f64, resident_mb: Option<f64>) -> Result<Figures, Error> {
    Ok(Figures {
        gap_ms: seen.longest_write_gap.as_secs_f64() * 1_000.0,
        failed: seen.failed_attempts as f64,
        rollout_s,
        lost: seen.lost.len(),
        resident_mb,
    })
}

/// The most that any of some processes was resident, as the kernel counts it.
struct Peak {
    stop: Arc<AtomicBool>,
    most_kb: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Peak {
    fn watch(pids: Vec<i32>) -> Self {
        let (stop, most_kb) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, most) = (stop.clone(), most_kb.clone());
        let thread = std::thread::spawn(move || {
            while !until.load(SeqCst) {
                let now = pids.iter().filter_map(|pid| resident_kb(*pid)).max();
                most.fetch_max(now.unwrap_or(0), SeqCst);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Self { stop, most_kb, thread }
    }

    fn end(self) -> f64 {
        self.stop.store(true, SeqCst);
        // A panicking thread has shown itself on stderr already.
        let _ = self.thread.join();
        self.most_kb.load(SeqCst) as f64 / 1_024.0
    }
}

fn resident_kb(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn plan_times(layout: &Layout, to: &Etcd) -> Result<Vec<f64>, Error> {
    let playbooks: Vec<PathBuf> = Upgrade::new(layout, to).write(layout)?;
    (0..3).map(|_| timed(Command::new(agent::executable()?).arg("plan").arg(&playbooks[0]))).collect()
}

fn start_times() -> Result<Vec<f64>, Error> {
    (0..20).map(|_| timed(Command::new(agent::executable()?).arg("--version"))).collect()
}

fn timed(command: &mut Command) -> Result<f64, Error> {
    let began = Instant::now();
    let output = command.output()?;
    match output.status.success() {
        true => Ok(began.elapsed().as_secs_f64() * 1_000.0),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn spread(values: &mut [f64]) -> String {
    let middle = median(values);
    let digits = usize::from(middle < 100.0) + usize::from(middle < 10.0);
    match (values.first(), values.last()) {
        (Some(least), Some(most)) => format!("{middle:.digits$} ({least:.digits$}–{most:.digits$})"),
        _ => "none".into(),
    }
}
