//! A guarded command: its process, its end, and whether the host stays. Source: agent/PROTOCOL.md, R-13.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Abort, Execution, error::ActError};
use crate::{
    event::RunEvent,
    host::{
        program::gated::{Argv, Gated},
        runtime::systemd::{has_systemd, is_about_to_go_down},
    },
    journal::guarded::Command,
    keys::ProcessId,
    machine::act::Event,
    words::with_causes,
};

/// Between two looks whether a command still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Between two looks whether the host is about to go down: systemd is asked over its bus.
const HOST_INTERVAL: Duration = Duration::from_secs(1);
/// The host stays where nothing was seen of a shutdown for so long: what a command leaves behind may order it a moment later.
const QUIET: Duration = Duration::from_secs(3);

/// What `agent guard` runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub argv: Argv,
    /// `--reboot`: the host restarts, though nobody sees it queued.
    pub reboots: bool,
    /// What the command prints goes to stderr: stdout has the result, as one object.
    pub is_beside: bool,
}

/// The command of this process, if it has one.
#[derive(Debug, Default)]
pub(super) struct OwnCommand {
    order: Option<Order>,
    gated: Option<Gated>,
    has_ended: bool,
    /// A person said that the host does not restart after all.
    host_stays: bool,
}

impl OwnCommand {
    pub(super) fn of(order: Option<Order>, host_stays: bool) -> Self {
        Self { order, host_stays, ..Self::default() }
    }

    /// Whether a signal may mean that this host shuts down, though no member is a unit.
    pub(super) fn is_on_systemd(&self) -> bool {
        self.order.is_some() && has_systemd()
    }

    /// What a shutdown cuts short. After the command it is what the command was for, or at least nothing that failed.
    pub(super) fn cut_short(&self) -> Abort {
        if self.has_ended { Abort::HostGoesDown } else { Abort::AtOnce }
    }
}

impl Execution<'_> {
    pub(super) fn spawn(&mut self) -> Event {
        match self.gate() {
            Ok(command) => Event::Spawned(command),
            Err(why) => Event::Failed(why.into()),
        }
    }

    fn gate(&mut self) -> Result<Command, ActError> {
        let Some(order) = &self.command.order else { return Err("there is no command to run".into()) };
        let gated = Gated::start(&order.argv, order.is_beside).map_err(|error| with_causes(&error))?;
        let init = init()?;
        let command = Command { process: gated.process, init, reboots: order.reboots };
        self.command.gated = Some(gated);
        Ok(command)
    }

    /// The others' word that the lock stands must not be old by now; else the shell that waits ends, and nothing has begun.
    pub(super) async fn run_command(&mut self) -> Event {
        let (Some(gated), Some(in_hand)) = (self.command.gated.take(), self.host.past.in_hand) else {
            return Event::Failed("there is no command to run".into());
        };
        let member = in_hand.member();
        if !self.is_confirmed_now(member) {
            return Event::Unconfirmed("this host stood still before the command".into());
        }
        let command = self.me.command.clone();
        self.host.touched = true;
        self.cluster.leases.recorded = None;
        self.tell(RunEvent::CommandBegun { member, command: &command });
        let ended = gated.run().await;
        self.command.has_ended = true;
        let failed = match &ended {
            Ok(status) if status.success() => None,
            Ok(status) => Some(how(status)),
            Err(error) => Some(format!("it is not known how it ended: {error}")),
        };
        self.tell(RunEvent::CommandEnded { member, command: &command, failed: failed.as_deref() });
        failed.map_or(Event::Done, |how| Event::Failed(how.into()))
    }

    /// Until the host is another boot, or the command has ended and nothing says that the host goes down.
    pub(super) async fn await_host(&mut self, command: Command) -> Event {
        let mut quiet_since: Option<Instant> = None;
        let (mut is_command_told, mut is_told) = (false, false);
        let member = self.host.past.in_hand.map(|in_hand| in_hand.member()).unwrap_or_default();
        loop {
            if init().is_ok_and(|init| init != command.init) {
                return Event::Done;
            }
            if command.process.is_over() == Some(false) {
                quiet_since = None;
                if !std::mem::replace(&mut is_command_told, true) {
                    self.tell(RunEvent::CommandAwaited { member, pid: command.process.pid });
                }
                sleep(POLL_INTERVAL).await;
                continue;
            }
            if (command.reboots && !self.command.host_stays) || is_about_to_go_down().await {
                quiet_since = None;
                if !std::mem::replace(&mut is_told, true) {
                    self.tell(RunEvent::HostAwaited { member });
                }
            } else if quiet_since.get_or_insert_with(Instant::now).elapsed() >= QUIET {
                return Event::Done;
            }
            sleep(HOST_INTERVAL).await;
        }
    }
}

/// The first process of this host. A container's has a start of its own under a boot id that it shares.
fn init() -> Result<ProcessId, ActError> {
    match ProcessId::of(1) {
        Ok(Some(init)) => Ok(init),
        Ok(None) => Err("/proc does not show process 1".into()),
        Err(error) => Err(format!("/proc does not show process 1: {error}").into()),
    }
}

fn how(status: &std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
