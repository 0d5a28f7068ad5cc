//! One rollout of either kind, and what it is measured by.

use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tests::{
    Error,
    agent::{self, Agent},
    cluster::{Layout, Member},
    events,
    playbook::Upgrade,
    rollout::LIMIT,
    system::Build,
    wait,
    witness::{Testimony, Witness, now_in_ms},
    workload::Load,
};

use crate::{down, resident::Peak};

/// One rollout's figures.
pub struct Figures {
    /// The longest time between two acknowledged writes.
    pub gap_ms: f64,
    /// Attempts of clients that had to be repeated.
    pub failed: f64,
    /// From the first member's stop to the last one's being up.
    pub rollout_s: f64,
    /// From the last member's being up until every member says the new cluster version, and has decided gates where there
    /// are any; down a minor until no downgrade is enabled any more.
    pub settled_ms: f64,
    /// Acknowledged writes that the cluster does not have.
    pub lost: usize,
    /// The most that an agent was resident.
    pub resident_mb: Option<f64>,
}

/// Nothing is checked but that the member answers: the floor for time, not a way to upgrade.
pub async fn by_the_bare_loop(layout: &Layout, to: &Build) -> Result<Figures, Error> {
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
    let (rollout_s, last_up) = (began.elapsed().as_secs_f64(), now_in_ms());
    witness.has_settled().await?;
    figures(&witness.end().await?, rollout_s, last_up, None)
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

/// An agent per member, all at once.
pub async fn by_baton(layout: &Layout, to: &Build) -> Result<Figures, Error> {
    let playbooks = Upgrade::new(layout, to).write(layout)?;
    let witness = Witness::begin(layout, &Load::default(), to.release.cluster_version()).await?;
    let is_down = to.release < layout.release;
    let over = is_down.then(|| tokio::spawn(down::is_over(layout.clone(), to.clone())));
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
    witness.has_settled().await?;
    let mut figures = figures(&witness.end().await?, span.seconds(), span.last_healthy, Some(resident))?;
    if let Some(over) = over {
        figures.settled_ms =
            tokio::time::timeout(wait::GENEROUS, over).await???.saturating_sub(span.last_healthy) as f64;
    }
    Ok(figures)
}

fn figures(seen: &Testimony, rollout_s: f64, last_up: u64, resident_mb: Option<f64>) -> Result<Figures, Error> {
    // Whoever has settled before anybody saw the last member up has settled at once.
    let settled = seen.gates_decided.or(seen.settled).ok_or("nobody saw the cluster version rise")?;
    let settled_ms = settled.saturating_sub(last_up);
    Ok(Figures {
        gap_ms: seen.longest_write_gap.as_secs_f64() * 1_000.0,
        failed: seen.failed_attempts as f64,
        rollout_s,
        settled_ms: settled_ms as f64,
        lost: seen.lost.len(),
        resident_mb,
    })
}

/// How long `agent plan` takes on a live cluster, in milliseconds.
pub fn plan_times(layout: &Layout, to: &Build) -> Result<Vec<f64>, Error> {
    let playbooks: Vec<PathBuf> = Upgrade::new(layout, to).write(layout)?;
    (0..3).map(|_| timed(Command::new(agent::executable()?).arg("plan").arg(&playbooks[0]))).collect()
}

/// How long `agent --version` takes, in milliseconds.
pub fn start_times() -> Result<Vec<f64>, Error> {
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
