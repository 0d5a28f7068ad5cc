//! Systemd's manager on the system bus: what it is asked and told here, and nothing more.
//!
//! A job that is ordered is not waited for: that of a `Type=notify` unit is done only when the member has said that it
//! is ready, which may take a quorum that is not there yet. Source: org.freedesktop.systemd1(5).

use std::{collections::HashMap, time::Duration};

use nix::unistd::{Uid, User};
use serde::{Serialize, de::DeserializeOwned};
use zbus::{
    Connection,
    connection::Builder,
    zvariant::{DynamicType, OwnedObjectPath, OwnedValue, Type},
};

use super::unit::{Properties, Unit};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";
const JOB: &str = "org.freedesktop.systemd1.Job";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const PATH: &str = "/org/freedesktop/systemd1";
/// How long an answer may take: systemd answers nobody while it reads all unit files anew.
const LIMIT: Duration = Duration::from_secs(30);

/// Why systemd was not asked, or did not do it.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// There is no bus, or nobody answers there.
    #[error(
        "systemd cannot be reached over the system bus; run the agent on a host with systemd and dbus, outside of any container"
    )]
    NoBus(#[source] zbus::Error),
    #[error(
        "user `{user}` may not {doing} {unit}; run the agent as root, or let the user do so by polkit (org.freedesktop.systemd1.manage-units)"
    )]
    Refused {
        user: String,
        /// `start`, `stop`.
        doing: &'static str,
        unit: String,
        /// The words of systemd, where it was asked.
        source: Option<zbus::Error>,
    },
    #[error("systemd did not {doing} {unit}")]
    Call {
        /// `start`, `stop`, `show`.
        doing: &'static str,
        unit: String,
        source: zbus::Error,
    },
}

/// A connection for one unit.
#[derive(Debug)]
pub(super) struct Bus {
    connection: Connection,
    unit: String,
}

/// Whether the host is shutting down, as far as its systemd says so.
///
/// # Errors
/// Nobody answers, as once it has gone so far that the bus is gone.
pub(super) async fn goes_down() -> Result<bool, BusError> {
    let bus = Bus::open("").await?;
    let state: OwnedValue = bus.ask(PATH, PROPERTIES, "Get", &(MANAGER, "SystemState")).await?;
    Ok(String::try_from(state).is_ok_and(|state| state == "stopping"))
}

impl Bus {
    pub(super) async fn open(unit: &str) -> Result<Self, BusError> {
        let connection = async { Builder::system()?.method_timeout(LIMIT).build().await };
        let connection = tokio::time::timeout(LIMIT, connection).await;
        let connection = connection.unwrap_or_else(|_| Err(zbus::Error::InputOutput(timed_out())));
        Ok(Self { connection: connection.map_err(BusError::NoBus)?, unit: unit.to_owned() })
    }

    /// The unit as it is now. One that is not in memory is read first.
    pub(super) async fn look(&self) -> Result<Unit, BusError> {
        let path: OwnedObjectPath = self.ask(PATH, MANAGER, "LoadUnit", &(&self.unit)).await?;
        let unit = self.properties(&path, UNIT).await?;
        let service = self.properties(&path, SERVICE).await?;
        let job = match unit.job() {
            Some(job) => self.job(&job).await,
            None => None,
        };
        Ok(Unit::read(&unit, &service, job.as_deref()))
    }

    async fn properties(&self, path: &OwnedObjectPath, interface: &str) -> Result<Properties, BusError> {
        let all: HashMap<String, OwnedValue> = self.ask(path.as_str(), PROPERTIES, "GetAll", &(interface)).await?;
        Ok(Properties(all))
    }

    /// The variables that systemd gives every unit (`systemctl set-environment`, `DefaultEnvironment=`).
    pub(super) async fn environment(&self) -> Result<Vec<String>, BusError> {
        let said: OwnedValue = self.ask(PATH, PROPERTIES, "Get", &(MANAGER, "Environment")).await?;
        Ok(said.try_into().unwrap_or_default())
    }

    /// A job that is done by now is none any more.
    async fn job(&self, path: &OwnedObjectPath) -> Option<String> {
        let job: OwnedValue = self.ask(path.as_str(), PROPERTIES, "Get", &(JOB, "JobType")).await.ok()?;
        String::try_from(job).ok()
    }

    pub(super) async fn start(&self) -> Result<(), BusError> {
        self.order("start", "StartUnit", &(&self.unit, "replace")).await
    }

    /// Orders a stop of whatever there is, and then a start.
    pub(super) async fn restart(&self) -> Result<(), BusError> {
        self.order("restart", "RestartUnit", &(&self.unit, "replace")).await
    }

    /// Orders a stop. It keeps systemd from starting the unit again, whatever its `Restart=` says.
    pub(super) async fn stop(&self) -> Result<(), BusError> {
        self.order("stop", "StopUnit", &(&self.unit, "replace")).await
    }

    /// Without polkit nobody but root may order anything.
    pub(super) async fn can_be_allowed(&self) -> Result<(), BusError> {
        const BUS: &str = "org.freedesktop.DBus";
        const POLKIT: &str = "org.freedesktop.PolicyKit1";
        let names =
            self.connection.call_method(Some(BUS), "/org/freedesktop/DBus", Some(BUS), "ListActivatableNames", &());
        let names: Result<Vec<String>, _> = names.await.and_then(|message| message.body().deserialize());
        match names.map_err(|source| self.failed("show", source))?.iter().any(|name| name == POLKIT) {
            true => Ok(()),
            false => Err(BusError::Refused { user: own_user(), doing: "start", unit: self.unit.clone(), source: None }),
        }
    }

    /// Orders a start of a unit that runs, which does nothing, to see whether this user may.
    pub(super) async fn try_to_start(&self) -> Result<(), BusError> {
        self.order("start", "StartUnit", &(&self.unit, "ignore-dependencies")).await
    }

    /// Kills all processes of the unit.
    pub(super) async fn kill(&self) -> Result<(), BusError> {
        const KILL: i32 = 9;
        self.order("kill", "KillUnit", &(&self.unit, "all", KILL)).await
    }

    /// Makes systemd forget that it failed, and how often it was started.
    pub(super) async fn forget_failures(&self) -> Result<(), BusError> {
        self.order("reset", "ResetFailedUnit", &(&self.unit)).await
    }

    async fn order<B: Serialize + DynamicType>(
        &self,
        doing: &'static str,
        method: &str,
        body: &B,
    ) -> Result<(), BusError> {
        let called = self.connection.call_method(Some(SYSTEMD), PATH, Some(MANAGER), method, body).await;
        called.map(drop).map_err(|source| self.failed(doing, source))
    }

    async fn ask<B: Serialize + DynamicType, A: DeserializeOwned + Type>(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Result<A, BusError> {
        let called = self.connection.call_method(Some(SYSTEMD), path, Some(interface), method, body).await;
        let answer = called.and_then(|message| message.body().deserialize());
        answer.map_err(|source| self.failed("show", source))
    }

    fn failed(&self, doing: &'static str, source: zbus::Error) -> BusError {
        let unit = self.unit.clone();
        match name_of(&source) {
            Some(name) if name.ends_with("AccessDenied") || name.ends_with("AuthorizationRequired") => {
                BusError::Refused { user: own_user(), doing, unit, source: Some(source) }
            }
            Some(name) if name.starts_with("org.freedesktop.DBus.Error.ServiceUnknown") => BusError::NoBus(source),
            _ => BusError::Call { doing, unit, source },
        }
    }
}

fn name_of(error: &zbus::Error) -> Option<&str> {
    match error {
        zbus::Error::MethodError(name, ..) => Some(name.as_str()),
        _ => None,
    }
}

fn timed_out() -> std::sync::Arc<std::io::Error> {
    std::sync::Arc::new(std::io::ErrorKind::TimedOut.into())
}

fn own_user() -> String {
    let own = Uid::effective();
    User::from_uid(own).ok().flatten().map_or_else(|| own.to_string(), |user| user.name)
}
