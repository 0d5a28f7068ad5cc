//! A machine: its disk stays, processes come and go on it.

use std::{
    cell::Cell,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use node::{
    config::Config,
    features::Registry,
    member::{Member, Setup, start},
    process::live,
    serve::{Listeners, ServeOptions},
};
use proto::Release;
use simulated_disk::{Chance, Faults, SimulatedDisk, Survival};
use tokio::runtime::{Builder, Runtime};

use crate::{
    host::SimHost,
    network::{HostId, Micros, Network},
    plan::{Plan, Wishes},
};

pub const CLIENT_PORT: u16 = 2379;
/// Where members reach each other first.
pub const PEER_PORT: u16 = 2380;

thread_local! {
    /// Whose turn it is, for whoever logs or panics.
    pub static TURN: Cell<HostId> = const { Cell::new(0) };
}

/// The process on a machine.
struct Process {
    runtime: Runtime,
    /// There while it runs as a member.
    member: Arc<Mutex<Option<Member>>>,
    /// How it ended by itself.
    outcome: Arc<Mutex<Option<Result<(), String>>>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// What its member is, as far as anybody has applied it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Voter,
    Learner,
    Removed,
}

pub struct Machine {
    pub host: SimHost,
    /// Minor of the release that is installed.
    pub minor: u64,
    pub patch: u64,
    pub wishes: Wishes,
    /// It is to be started with the release that a downgrade leads to, as soon as that can be.
    pub goes_down: bool,
    /// It was started with a lower release than before.
    pub has_gone_down: bool,
    flags: Vec<String>,
    /// Where other members reach it, as its flags have it.
    pub peer_port: u16,
    pub role: Role,
    /// It was added to a cluster, and has not run as a member yet.
    pub is_joining: bool,
    /// No process on it has applied anything yet: where it was added, it may not be let in.
    pub is_new: bool,
    process: Option<Process>,
    /// Its process does not run, though it is there.
    pub frozen_until: Option<Micros>,
    /// When whoever supervises it starts it again.
    pub starts_at: Option<Micros>,
    /// What its disk has lost: then it may end by itself, and need not serve.
    pub loss: Option<String>,
    /// Until then it may end by itself, as its disk is full, or was a moment ago.
    pub full_until: Micros,
    /// Why its process has ended by itself, each time.
    pub ends: Vec<String>,
    /// How far the clock of its process is.
    clock: Micros,
}

/// Where a machine is reached at this port.
pub fn url(id: HostId, port: u16) -> String {
    format!("http://10.0.0.{id}:{port}")
}

impl Machine {
    pub fn new(id: HostId, network: &Network, plan: &Plan) -> Self {
        let named = |id: HostId| format!("m{id}={}", url(id, PEER_PORT));
        let founders: Vec<_> = (1..=plan.members).map(named).collect();
        let flags = vec![
            format!("--name=m{id}"),
            "--data-dir=data".into(),
            format!("--listen-client-urls={}", url(id, CLIENT_PORT)),
            format!("--advertise-client-urls={}", url(id, CLIENT_PORT)),
            format!("--listen-peer-urls={}", url(id, PEER_PORT)),
            format!("--initial-advertise-peer-urls={}", url(id, PEER_PORT)),
            format!("--initial-cluster={}", founders.join(",")),
            format!("--snapshot-count={}", plan.snapshot_count),
            format!("--linearizable-read-mode={}", if plan.reads_by_lease { "lease" } else { "quorum" }),
            format!("--snapshot-catchup-entries={}", plan.catchup_entries),
            "--corrupt-check-time=3s".into(),
        ];
        let host = SimHost {
            id,
            network: network.clone(),
            disk: SimulatedDisk::default(),
            ahead_ms: Arc::default(),
            sync_ms: Arc::new(2.into()),
        };
        Self {
            host,
            minor: plan.minor,
            patch: 0,
            wishes: Wishes::default(),
            goes_down: false,
            has_gone_down: false,
            flags,
            peer_port: PEER_PORT,
            role: Role::Voter,
            is_joining: false,
            is_new: true,
            process: None,
            frozen_until: None,
            starts_at: Some(0),
            loss: None,
            full_until: 0,
            ends: Vec::new(),
            clock: 0,
        }
    }

    /// One that is added to a cluster of these hosts' members, with a release of this minor and patch.
    pub fn added(
        id: HostId,
        network: &Network,
        plan: &Plan,
        others: &[(HostId, u16)],
        (minor, patch): (u64, u64),
        role: Role,
    ) -> Self {
        let mut machine = Self::new(id, network, plan);
        machine.flags.retain(|flag| !flag.starts_with("--initial-cluster="));
        let all: Vec<_> =
            others.iter().chain([&(id, PEER_PORT)]).map(|(id, port)| format!("m{id}={}", url(*id, *port))).collect();
        machine.flags.push(format!("--initial-cluster={}", all.join(",")));
        machine.flags.push("--initial-cluster-state=existing".into());
        Self { role, is_joining: true, minor, patch, ..machine }
    }

    /// From its next start on others reach it here.
    pub fn relocate(&mut self, peer_port: u16) {
        self.is_told_of(self.host.id, self.peer_port, peer_port);
        self.peer_port = peer_port;
    }

    /// From its next start on it looks for that machine there.
    pub fn is_told_of(&mut self, id: HostId, from: u16, to: u16) {
        let (from, to) = (url(id, from), url(id, to));
        self.flags.iter_mut().for_each(|flag| *flag = flag.replace(&from, &to));
    }

    /// The release that is installed.
    pub fn release(&self) -> Release {
        Release::new(3, self.minor, self.patch)
    }

    /// Starts a process with what is on the disk.
    pub fn start(&mut self, now: Micros) {
        self.starts_at = None;
        self.clock = now;
        TURN.set(self.host.id);
        self.host.network.is_back(self.host.id);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (member, outcome) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (host, mut flags, release) = (self.host.clone(), self.flags.clone(), self.release());
        let peer_port = self.peer_port;
        let wishes = self.wishes.overrides(Registry::of(&release)).0;
        if !wishes.is_empty() {
            let said: Vec<_> = wishes.iter().map(|(name, is_on)| format!("{name}={is_on}")).collect();
            flags.push(format!("--cluster-feature-gates={}", said.join(",")));
        }
        let (shown, ended) = (member.clone(), outcome.clone());
        runtime.spawn(async move {
            let outcome = run(host, flags, release, peer_port, &shown, stopped).await;
            *shown.lock().unwrap() = None;
            *ended.lock().unwrap() = Some(outcome);
        });
        tracing::warn!(target: "sim", release = %self.release(), wishes = ?self.wishes, "the process starts");
        self.process = Some(Process { runtime, member, outcome, stop: Some(stop) });
    }

    pub fn may_end(&self, now: Micros) -> bool {
        self.loss.is_some() || now < self.full_until || self.is_joining || self.role == Role::Removed
    }

    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// The member, where one runs.
    pub fn member(&self) -> Option<Member> {
        self.process.as_ref()?.member.lock().unwrap().clone()
    }

    /// Asks the process to end, as SIGTERM does.
    pub fn stop(&mut self) {
        if let Some(process) = &mut self.process {
            drop(process.stop.take());
        }
    }

    /// Ends the process at once; what it wrote stays with the system.
    pub fn kill(&mut self) {
        TURN.set(self.host.id);
        if let Some(process) = self.process.take() {
            self.host.network.close_ports(self.host.id);
            drop(process);
            self.host.disk = self.host.disk.after_exit(Faults::default());
        }
        self.frozen_until = None;
    }

    /// The machine loses its power.
    pub fn lose_power(&mut self, survival: Survival, chance: &mut Chance) {
        TURN.set(self.host.id);
        self.host.network.go_dark(self.host.id);
        self.process = None;
        self.frozen_until = None;
        self.host.disk = self.host.disk.after_power_loss(survival, chance, Faults::default());
    }

    /// Runs the process until this time. Why it has ended by itself, if it has.
    pub fn run_until(&mut self, now: Micros) -> Option<Result<(), String>> {
        let process = self.process.as_mut()?;
        if self.frozen_until.is_some_and(|until| now < until) {
            return None;
        }
        self.frozen_until = None;
        TURN.set(self.host.id);
        let passed = Duration::from_micros(now - self.clock);
        self.clock = now;
        // A process that stood still finds all its timers over at once.
        process.runtime.block_on(async {
            if passed > Duration::from_millis(20) {
                tokio::time::advance(passed).await;
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(passed).await;
            }
        });
        if let Some(member) = &*process.member.lock().unwrap() {
            self.is_joining = false;
            self.is_new &= member.read(|state| state.applied.0 == 0);
        }
        let outcome = process.outcome.lock().unwrap().take()?;
        self.process = None;
        self.host.network.close_ports(self.host.id);
        self.host.disk = self.host.disk.after_exit(Faults::default());
        Some(outcome)
    }

    /// How far its clock is ahead from now on.
    pub fn set_ahead(&self, ms: u64) {
        self.host.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

async fn run(
    host: SimHost,
    flags: Vec<String>,
    release: Release,
    peer_port: u16,
    shown: &Mutex<Option<Member>>,
    stopped: tokio::sync::oneshot::Receiver<()>,
) -> Result<(), String> {
    let registry = Registry::of(&release);
    let config = Config::read(flags, [], registry).map_err(|error| error.to_string())?;
    let options = ServeOptions::of(&config);
    let (network, id) = (host.network.clone(), host.id);
    let listeners = vec![network.listen(id, peer_port)];
    let setup = Setup { host: Arc::new(host), config, release, registry, listeners, tls: None };
    let running = start(setup).await.map_err(|error| consensus::with_causes(&error))?;
    *shown.lock().unwrap() = Some(running.member.clone());
    let listen = || Ok(Listeners { clients: vec![network.listen(id, CLIENT_PORT)], ..Listeners::default() });
    let outcome =
        live(&running, listen, options, async { drop(stopped.await) }).await.map_err(|error| error.to_string());
    running.end().await;
    outcome
}
