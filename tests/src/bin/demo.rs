//! One whole upgrade, or downgrade, of a real cluster under load, with an agent per member all at once: `scripts/demo`.
//!
//! What is shown and counted is `tests::witness`; what the agents say of themselves is `tests::events`.

use std::{io::Write as _, process::ExitCode};

use clap::Parser;
use serde_json::{Value, json};
use tests::{
    Error,
    agent::Agent,
    cluster::{Cluster, Layout, Spec},
    command::{Wanted, end_of},
    ended::Ended,
    events::{self, Span},
    playbook::Upgrade,
    rollout::LIMIT,
    system::{Build, System},
    wait,
    witness::{Testimony, Witness},
    workload::Load,
};

/// Upgrades a real cluster on this machine, or downgrades it where --to is lower, while clients write and read through
/// all of its members, with one agent per member, all started at once. Then every acknowledged write is read back.
#[derive(Parser)]
#[command(name = "demo")]
struct Cli {
    /// What the members are.
    #[arg(long, value_enum, default_value_t = System::Node)]
    system: System,
    /// Short for --system etcd.
    #[arg(long, conflicts_with = "system")]
    etcd: bool,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wanted: Wanted,
    /// Leave the cluster running, for scripts/cluster status and down.
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    end_of(demo(&Cli::parse())).await
}

async fn demo(cli: &Cli) -> Result<ExitCode, Error> {
    tests::agent::executable()?;
    let (from, to) = cli.wanted.builds(if cli.etcd { System::Etcd } else { cli.system })?;
    say(&format!("starting {} members of {from}", cli.wanted.size));
    let kept = cli.keep.then(|| tempfile::Builder::new().prefix("baton-demo-").tempdir()).transpose()?;
    let dir = kept.map(tempfile::TempDir::keep);
    let cluster = Cluster::up(&Spec { size: cli.wanted.size, dir, ..Spec::new(from.clone()) }).await?;
    let run = Run::of(&cluster.layout, &to).await?;
    let is_ok = run.is_ok();
    run.show(&cluster.layout, &from, &to);
    if cli.json {
        println!("{}", run.json(&cluster.layout, &from, &to));
    }
    if cli.keep {
        let layout = cluster.leave_running();
        say(&format!("left running; scripts/cluster status --dir {}", layout.dir.display()));
    }
    Ok(if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One rollout that is over.
struct Run {
    agents: Vec<(String, Ended)>,
    testimony: Testimony,
    span: Option<Span>,
    /// What each member says it runs now.
    releases: Vec<String>,
    wanted: String,
}

impl Run {
    async fn of(layout: &Layout, to: &Build) -> Result<Self, Error> {
        let playbooks = Upgrade::new(layout, to).write(layout)?;
        say("starting clients that write and read all the time through all members");
        let witness = Witness::begin(layout, &Load::default(), to.release.cluster_version()).await?;
        say(&format!("starting {} agents, all at once", playbooks.len()));
        let started: Result<Vec<_>, _> = playbooks.iter().map(|path| Agent::start("run", path, &[])).collect();
        let agents = watched(layout, started?).await?;
        if agents.iter().all(|(_, ended)| ended.exit == Some(0)) {
            witness.has_settled().await?;
        }
        say("stopping the clients; reading every acknowledged write back");
        let testimony = witness.end().await?;
        let all: Vec<_> = agents.iter().flat_map(|(_, ended)| ended.events.clone()).collect();
        let span = events::span(&all)?;
        let wanted = to.release.to_string();
        let releases = layout.versions().await?.into_iter().map(|said| said.server).collect();
        Ok(Self { agents, testimony, span, releases, wanted })
    }

    fn is_ok(&self) -> bool {
        self.agents.iter().all(|(_, ended)| ended.exit == Some(0))
            && self.releases.iter().all(|release| *release == self.wanted)
            && self.testimony.is_nothing_lost()
            && self.testimony.observed.max_members_down <= 1
    }

    fn rollout_s(&self) -> Option<f64> {
        self.span.as_ref().map(Span::seconds)
    }

    /// `None` too where the cluster version did not change.
    fn version_convergence_ms(&self, layout: &Layout, to: &Build) -> Option<u64> {
        let changes = layout.release.cluster_version() != to.release.cluster_version();
        let (span, settled) = self.span.zip(self.testimony.settled)?;
        changes.then(|| settled.saturating_sub(span.last_healthy))
    }

    /// `None` where there are no gates, as in every release of etcd.
    fn gates_convergence_ms(&self) -> Option<u64> {
        let (span, decided) = self.span.zip(self.testimony.gates_decided)?;
        Some(decided.saturating_sub(span.last_healthy))
    }

    fn json(&self, layout: &Layout, from: &Build, to: &Build) -> Value {
        let agents = self.agents.iter().map(|(member, ended)| {
            let mut agent = ended.result.clone().unwrap_or_else(|| json!({"stderr": ended.stderr}));
            agent["exit"] = json!(ended.exit);
            agent["member"] = json!(member);
            agent
        });
        json!({
            "ok": self.is_ok(),
            "system": from.system,
            "from": from.release,
            "to": to.release,
            "members": layout.members.len(),
            "writes_acked": self.testimony.writes_acked,
            "writes_lost": self.testimony.lost.len(),
            "linearizable": self.testimony.history.is_ok(),
            "failed_attempts": self.testimony.failed_attempts,
            "longest_write_gap_ms": self.testimony.longest_write_gap.as_millis() as u64,
            "rollout_s": self.rollout_s(),
            "version_convergence_ms": self.version_convergence_ms(layout, to),
            "gates_convergence_ms": self.gates_convergence_ms(),
            "max_members_down": self.testimony.observed.max_members_down,
            "observer_longest_blind_ms": self.testimony.observed.longest_blind.as_millis() as u64,
            "agents": agents.collect::<Vec<_>>(),
        })
    }

    fn show(&self, layout: &Layout, from: &Build, to: &Build) {
        let seen = &self.testimony;
        let or_unknown = |figure: Option<String>| figure.unwrap_or_else(|| "unknown".into());
        say("");
        for (member, release) in layout.members.iter().zip(&self.releases) {
            say(&format!("{}  {}  runs {release}", member.name, member.client_url));
        }
        for (member, ended) in self.agents.iter().filter(|(_, ended)| ended.exit != Some(0)) {
            say(&format!("agent of {member}: exit {:?}, signal {:?}\n{}", ended.exit, ended.signal, ended.stderr));
        }
        say(&format!("writes acknowledged    {}, of which lost {}", seen.writes_acked, seen.lost.len()));
        match &seen.history {
            Ok(judged) => say(&format!("history                linearizable ({} operations)", judged.operations)),
            Err(error) => say(&format!("history                {error}")),
        }
        say(&format!("attempts repeated      {}", seen.failed_attempts));
        say(&format!("longest write gap      {} ms", seen.longest_write_gap.as_millis()));
        say(&format!("most members down      {}", seen.observed.max_members_down));
        say(&format!("rollout                {} s", or_unknown(self.rollout_s().map(|s| format!("{s:.2}")))));
        let settled = self.version_convergence_ms(layout, to).map(|ms| ms.to_string());
        say(&format!("version settled after  {} ms more", or_unknown(settled)));
        if let Some(ms) = self.gates_convergence_ms() {
            say(&format!("gates settled after    {ms} ms more"));
        }
        let done = if to.release < from.release { "downgraded" } else { "upgraded" };
        let verdict = if self.is_ok() { done.to_owned() } else { format!("NOT {done} as it should be") };
        say(&format!("{verdict}: {from} to {}", to.release));
    }
}

/// Waits for the agents, and passes on what they write meanwhile.
async fn watched(layout: &Layout, agents: Vec<Agent>) -> Result<Vec<(String, Ended)>, Error> {
    let mut shown = vec![0; agents.len()];
    let mut show = |agents: &[Agent]| -> Result<bool, String> {
        let mut all_ended = true;
        for ((agent, shown), member) in agents.iter().zip(&mut shown).zip(&layout.members) {
            let events = agent.events().map_err(|error| error.to_string())?;
            for event in events.iter().skip(*shown) {
                let about = event.member.as_deref().unwrap_or_default();
                say(&format!("{}  agent of {}  {} {about}", event.time, member.name, event.event));
            }
            *shown = events.len();
            all_ended &= !agent.process().is_ok_and(|process| process.is_alive());
        }
        Ok(all_ended)
    };
    wait::until("every agent to end", LIMIT, || {
        std::future::ready(show(&agents).and_then(|ended| if ended { Ok(()) } else { Err("some still run".into()) }))
    })
    .await?;
    show(&agents)?;
    let mut ended = Vec::new();
    for (agent, member) in agents.into_iter().zip(&layout.members) {
        ended.push((member.name.clone(), agent.ended(wait::GENEROUS).await?));
    }
    Ok(ended)
}

fn say(line: &str) {
    // A closed pipe ends the display, not the rollout.
    let _ = writeln!(std::io::stderr(), "{line}");
}
