//! Runtime `systemd`: the node is a service of the host's systemd, which starts it at boot, too.
//!
//! Orders are jobs, put by D-Bus and not waited for; what became of one is seen on the unit and its process. So an agent
//! that was killed over an order finds it carried out, or on its way, and waits for that. Unit files and drop-ins are the
//! operator's: nothing here writes one, or has systemd read them anew.
//!
//! A start is over when the unit's process runs; a step also needs systemd to call the unit started. To wait for the start job
//! would be to wait for a quorum that this member may have to bring. A member that is ready, and never says so to a
//! `Type=notify` unit, would be killed minutes after its step.
//!
//! A unit that is being stopped is waited for before it is looked at, whoever ordered the stop: an agent that was killed may
//! have, and its process may be gone in a moment. A stop is ordered without a process, too: it is what keeps `Restart=` from
//! starting one.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    Process, Started, Status,
    discovery::{self, undeleted},
};
use crate::host::process::process_id::ProcessId;

mod bus;
pub mod check;
pub mod environment;
pub mod mounts;
pub mod phase;
pub mod preflight;
mod program;
mod said;
pub mod unit;

use bus::{Bus, BusError};
use phase::{Phase, phase, was_never_run, words};
use preflight::Finding;
use unit::Unit;

/// How long a start may take until there is a main process: what the unit runs before it is the operator's.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a start that somebody else ordered is waited for before a look.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
/// Until then a node that was killed must have ended.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// How often a unit is looked at while something is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemdRuntime {
    /// The node's name in the playbook.
    pub name: String,
    pub unit: String,
    /// How long a stop that is under way is waited for: as long as a stop may take.
    pub patience: Duration,
}

/// Why a unit did not do what it was told, or could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum SystemdError {
    /// Systemd was not reached, or refused.
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(
        "node {name}: {unit} is not there; correct `unit`, or install its file, and after that: systemctl daemon-reload"
    )]
    NoUnit { name: String, unit: String },
    /// A step with it may not be made.
    #[error("node {name}: {finding}")]
    Unfit { name: String, finding: Finding },
    /// There was no process, and another try would bring none.
    #[error("node {name} was not started: {how}")]
    NotStarted { name: String, how: String },
    /// It is being stopped by somebody, and it is not known yet whether it will have ended.
    #[error("node {name}: a stop of {unit} is under way for more than {after:?}; wait until it has ended")]
    StopUnderWay {
        name: String,
        unit: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// It was told to end and has not.
    #[error("node {name} still runs {after:?} after {unit} was told to stop{}", systemds_own(*kills_after))]
    StillRunning {
        name: String,
        unit: String,
        /// How long it was waited for.
        after: Duration,
        /// When systemd itself kills it.
        kills_after: Option<Duration>,
    },
}

fn systemds_own(kills_after: Option<Duration>) -> String {
    kills_after.map_or_else(String::new, |after| format!("; systemd kills it {after:?} after it was told"))
}

impl SystemdRuntime {
    /// Orders a start unless it runs, and waits for its process; not for systemd to call it started.
    pub async fn start(&self) -> Result<Started, SystemdError> {
        let bus = Bus::open(&self.unit).await?;
        match phase(&self.look(&bus).await?) {
            Phase::Up | Phase::Starting => Ok(Started::found(self.started(&bus).await?)),
            at => {
                // The agent's starts are few and on purpose: those before them, and crashes, are not to forbid them.
                let _ = bus.forget_failures().await;
                if at == Phase::Idle {
                    bus.restart().await?
                } else {
                    bus.start().await?
                }
                Ok(Started::new(self.started(&bus).await?))
            }
        }
    }

    async fn started(&self, bus: &Bus) -> Result<Status, SystemdError> {
        let begun = Instant::now();
        loop {
            let unit = self.look(bus).await?;
            let at = phase(&unit);
            match (at, seen(at, &unit)) {
                (Phase::Up | Phase::Starting, Seen::Process(process)) => return Ok(running(Some(process))),
                (Phase::Up, Seen::Unknown) => return Ok(running(None)),
                (Phase::Down | Phase::Idle, _) if unit.job.is_none() => match was_never_run(&unit) {
                    true => return Err(self.not_started(&words(&unit)).await),
                    false => return Ok(Status::Stopped),
                },
                _ if begun.elapsed() >= START_LIMIT => {
                    let how = format!("unit {} is {} ({}) after {START_LIMIT:?}", unit.name, unit.active, unit.sub);
                    return Err(self.not_started(&how).await);
                }
                _ => sleep(POLL_INTERVAL).await,
            }
        }
    }

    async fn not_started(&self, how: &str) -> SystemdError {
        SystemdError::NotStarted { name: self.name.clone(), how: format!("{how}; {}", self.last_words().await) }
    }

    /// Orders a stop, whether or not there is a process: systemd may be about to start one. Waits until the unit has
    /// ended. Over the limit all its processes are killed where `kill` says so.
    pub async fn stop(&self, limit: Duration, kill: bool) -> Result<(), SystemdError> {
        let bus = Bus::open(&self.unit).await?;
        let unit = self.look(&bus).await?;
        if phase(&unit) == Phase::Down {
            return Ok(());
        }
        bus.stop().await?;
        if self.ends(&bus, limit).await? {
            return Ok(());
        }
        let kills_after = unit.stop_limit_time.filter(|_| unit.kills);
        let after = if kill { limit + KILL_LIMIT } else { limit };
        if kill {
            bus.kill().await?;
            if self.ends(&bus, KILL_LIMIT).await? {
                return Ok(());
            }
        }
        Err(SystemdError::StillRunning { name: self.name.clone(), unit: unit.name, after, kills_after })
    }

    async fn ends(&self, bus: &Bus, limit: Duration) -> Result<bool, SystemdError> {
        let begun = Instant::now();
        while phase(&self.look(bus).await?) != Phase::Down {
            if begun.elapsed() >= limit {
                return Ok(false);
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(true)
    }

    /// Whether the node runs, and as which process. Asked once no stop is under way any more, whoever ordered it: before
    /// that a node that runs may be gone in a moment. A start under way is waited for a while, too.
    pub async fn status(&self) -> Result<Status, SystemdError> {
        let bus = Bus::open(&self.unit).await?;
        let begun = Instant::now();
        loop {
            let unit = self.look(&bus).await?;
            let at = phase(&unit);
            let seen = seen(at, &unit);
            let is_settling = match seen {
                Seen::Forked => true,
                Seen::Nothing => matches!(at, Phase::Queued | Phase::Starting | Phase::Up),
                Seen::Process(_) | Seen::Unknown => false,
            };
            match at {
                Phase::Ending if begun.elapsed() >= self.patience => {
                    let (name, unit) = (self.name.clone(), unit.name);
                    return Err(SystemdError::StopUnderWay { name, unit, after: self.patience });
                }
                Phase::Ending => {}
                _ if is_settling && begun.elapsed() < SETTLE_LIMIT => {}
                _ => return Ok(status(at, seen)),
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Whether the node runs at this moment.
    pub async fn peek(&self) -> Result<Status, SystemdError> {
        let unit = self.look(&Bus::open(&self.unit).await?).await?;
        let at = phase(&unit);
        Ok(status(at, seen(at, &unit)))
    }

    /// What systemd still waits for of a node that runs: one that never says that it is ready is killed in the end.
    pub async fn unfinished(&self) -> Result<Option<String>, SystemdError> {
        let unit = self.look(&Bus::open(&self.unit).await?).await?;
        Ok((phase(&unit) == Phase::Starting).then(|| {
            format!(
                "systemd still starts {}, which is {} ({}): it is Type={}",
                unit.name, unit.active, unit.sub, unit.kind
            )
        }))
    }

    /// How the unit of a node that does not run stands.
    pub async fn ending(&self) -> Result<String, SystemdError> {
        Ok(words(&self.look(&Bus::open(&self.unit).await?).await?))
    }

    async fn look(&self, bus: &Bus) -> Result<Unit, SystemdError> {
        let unit = bus.look().await?;
        match unit.load {
            unit::Load::NotFound => Err(SystemdError::NoUnit { name: self.name.clone(), unit: self.unit.clone() }),
            _ => Ok(unit),
        }
    }
}

/// Waits until the host is seen to shut down. A bus that nobody answers at is taken for that when it stays so: by then
/// there is nobody any more to be told to start anything.
pub async fn host_goes_down() {
    const TRIES: u32 = 4;
    let mut silent = 0;
    while silent < TRIES {
        match bus::goes_down().await {
            Ok(true) => return,
            Ok(false) => silent = 0,
            Err(_) => silent += 1,
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Whether systemd runs this host, as sd_booted(3) asks it.
pub fn has_systemd() -> bool {
    Path::new("/run/systemd/system").exists()
}

/// Whether this host is about to go down: now, or at the time that `shutdown` was told. Where systemd should answer and does not,
/// it may be past that.
pub async fn is_about_to_go_down() -> bool {
    let exists = |path: &str| Path::new(path).exists();
    if !has_systemd() {
        return false;
    }
    exists("/run/systemd/shutdown/scheduled")
        || bus::goes_down().await.unwrap_or_else(|_| exists("/run/dbus/system_bus_socket"))
}

/// What there is of a unit's process.
#[derive(Debug)]
enum Seen {
    /// It runs what the unit says.
    Process(Process),
    /// It is there, and not yet what the unit says.
    Forked,
    /// It may run, but systemd does not know which it is.
    Unknown,
    Nothing,
}

fn seen(at: Phase, unit: &Unit) -> Seen {
    let Some(pid) = unit.main else { return if at == Phase::Up { Seen::Unknown } else { Seen::Nothing } };
    let settled = ProcessId::of(pid).map(|identity| identity.map(discovery::settled));
    match settled {
        Ok(Some(Ok(Some(process)))) if !process.exe.as_deref().is_some_and(is_systemds) => Seen::Process(process),
        Ok(Some(Ok(Some(_)))) => Seen::Forked,
        _ => Seen::Nothing,
    }
}

/// Whether a process is still the one that systemd forked to become the unit's.
fn is_systemds(exe: &Path) -> bool {
    let exe = undeleted(PathBuf::from(exe));
    exe.file_name().is_some_and(|name| name == "systemd" || name == "systemd-executor")
}

fn status(at: Phase, seen: Seen) -> Status {
    match (at, seen) {
        (_, Seen::Process(process)) => running(Some(process)),
        (Phase::Up | Phase::Starting | Phase::Ending, _) => running(None),
        (Phase::Down | Phase::Queued | Phase::Idle, _) => Status::Stopped,
    }
}

fn running(process: Option<Process>) -> Status {
    Status::Running { process }
}
