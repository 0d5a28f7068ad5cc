//! A unit as systemd shows it: its properties, as data.
//!
//! What they mean is said by `phase.rs` and `preflight.rs`. A property that this systemd does not have yet, or any more,
//! has the value that means nothing is set. Source: org.freedesktop.systemd1(5).

use std::{collections::HashMap, path::PathBuf, time::Duration};

use zbus::zvariant::{OwnedObjectPath, OwnedValue};

use super::mounts::Mounts;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Load {
    #[default]
    Loaded,
    /// There is none of this name.
    NotFound,
    Masked,
    /// Its file is wrong, and how.
    Wrong(String),
}

/// What is ordered of a unit and not yet done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    Start,
    /// To stop it, and perhaps to start it again.
    Stop,
    /// Something that leaves its process alone.
    Other,
}

/// How the main process ended (wait(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// It did not, or there was none.
    #[default]
    No,
    Exit(i32),
    Signal(i32),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Its name; that of the file where it was asked for by an alias.
    pub name: String,
    pub load: Load,
    /// `active`, `inactive`, `failed`, `activating`, `deactivating`, …
    pub active: String,
    /// `running`, `dead`, `auto-restart`, `start-pre`, …
    pub sub: String,
    pub job: Option<Job>,
    /// Its main process; `None` when there is none or systemd does not know it.
    pub main: Option<u32>,
    /// Its last run, by the number that systemd gives each.
    pub invocation: Option<String>,
    /// How its last main process ended.
    pub ended: Ended,
    /// `success`, `exit-code`, `timeout`, `start-limit-hit`, …
    pub result: String,
    /// Whether its conditions were met when it was last to be started.
    pub conditions_met: bool,
    /// Whether its files on disk are others than those that systemd has read.
    pub is_outdated: bool,
    /// Whether it was made by a command and not by a file.
    pub is_transient: bool,
    /// Whether it may be started and stopped by whoever has the right to.
    pub is_startable: bool,
    /// `enabled`, `disabled`, `static`, …
    pub file_state: String,
    pub files: Vec<PathBuf>,
    /// Units that are stopped when it is.
    pub stopped_along: Vec<String>,
    /// Units that start it when they find it stopped.
    pub kept_up_by: Vec<String>,
    /// Sockets, timers and paths that start it on an event.
    pub triggers: Vec<String>,
    /// What systemd does to the host when it ends, by property; only what is set.
    pub host_actions: Vec<(&'static str, String)>,
    /// How many starts in how long are too many.
    pub start_limit: Option<(u32, Duration)>,
    /// `simple`, `notify`, `forking`, …
    pub kind: String,
    /// `no`, `on-failure`, `always`, …
    pub restart: String,
    /// How long after an end it is started again.
    pub restart_pause: Duration,
    /// How long a start may take; `None` is for ever.
    pub start_limit_time: Option<Duration>,
    /// How long a stop may take; `None` is for ever.
    pub stop_limit_time: Option<Duration>,
    /// `control-group`, `mixed`, `process`, `none`.
    pub kill_mode: String,
    /// Whether what outlives its stop is killed.
    pub kills: bool,
    /// The program that it starts.
    pub program: Option<PathBuf>,
    /// What it starts it with, variables not expanded.
    pub arguments: Vec<String>,
    /// Variables that it gives its program, `NAME=value`.
    pub environment: Vec<String>,
    /// Files with more of them, and whether each may be absent; over those before.
    pub environment_files: Vec<(String, bool)>,
    /// Variables that it takes from systemd's own process, by their names.
    pub passed: Vec<String>,
    /// Variables that it does not give after all, by name or as `NAME=value`.
    pub unset: Vec<String>,
    /// Folders that are made for it, joined by `:`, and the variable that names them.
    pub directories: Vec<(&'static str, String)>,
    pub mounts: Mounts,
    /// The user it runs as; root's where there is none.
    pub user: Option<String>,
    /// The group, where it is named.
    pub group: Option<String>,
    /// Whether its user is made up for each start.
    pub has_dynamic_user: bool,
    /// Its working folder, where it is named and must be there.
    pub cwd: Option<PathBuf>,
    /// The same, whether or not it must be there; `None` is that of its user.
    pub works_in: Option<PathBuf>,
    /// A folder or image that is its `/`.
    pub root: Option<PathBuf>,
}

pub(super) struct Properties(pub(super) HashMap<String, OwnedValue>);

impl Properties {
    fn get<T: TryFrom<OwnedValue>>(&self, name: &str) -> Option<T> {
        T::try_from(self.0.get(name)?.try_clone().ok()?).ok()
    }

    fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default()
    }

    fn set(&self, name: &str) -> Option<String> {
        self.get(name).filter(|text: &String| !text.is_empty())
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).unwrap_or_default()
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.get(name).unwrap_or_default()
    }

    fn micros(&self, name: &str) -> Option<Duration> {
        self.get(name).filter(|micros| *micros != u64::MAX).map(Duration::from_micros)
    }

    /// The job's place on the bus.
    pub(super) fn job(&self) -> Option<OwnedObjectPath> {
        let (number, path): (u32, OwnedObjectPath) = self.get("Job")?;
        (number != 0).then_some(path)
    }

    fn load(&self) -> Load {
        match self.text("LoadState").as_str() {
            "not-found" => Load::NotFound,
            "masked" => Load::Masked,
            "bad-setting" | "error" => {
                let (_, message): (String, String) = self.get("LoadError").unwrap_or_default();
                Load::Wrong(message)
            }
            _ => Load::Loaded,
        }
    }

    /// What was never looked at says that it is not met.
    fn is_met(&self, what: &str) -> bool {
        self.micros(&format!("{what}Timestamp")).unwrap_or_default().is_zero() || self.flag(&format!("{what}Result"))
    }

    fn start_limit(&self) -> Option<(u32, Duration)> {
        let (burst, within) = (self.get("StartLimitBurst")?, self.micros("StartLimitIntervalUSec")?);
        (burst > 0 && !within.is_zero()).then_some((burst, within))
    }

    /// What it starts, and that program's arguments without its name.
    fn command(&self) -> Option<(PathBuf, Vec<String>)> {
        type Command = (String, Vec<String>, bool, u64, u64, u64, u64, u32, i32, i32);
        let commands: Vec<Command> = self.get("ExecStart")?;
        let (program, argv, ..) = commands.into_iter().next()?;
        Some((program.into(), argv.into_iter().skip(1).collect()))
    }

    fn ended(&self) -> Ended {
        /// CLD_EXITED, CLD_KILLED and CLD_DUMPED (sigaction(2)).
        const EXITED: i32 = 1;
        const KILLED: i32 = 2;
        const DUMPED: i32 = 3;
        let status = self.get("ExecMainStatus").unwrap_or_default();
        match self.get("ExecMainCode") {
            Some(EXITED) => Ended::Exit(status),
            Some(KILLED | DUMPED) => Ended::Signal(status),
            _ => Ended::No,
        }
    }

    /// Of a folder that may be missing systemd says so with a `-`, and of none with a `/`.
    fn cwd(&self) -> Option<PathBuf> {
        self.set("WorkingDirectory").filter(|cwd| cwd.starts_with('/')).map(PathBuf::from)
    }
}

/// What a folder of this kind is named by, and where it lies.
const DIRECTORIES: [(&str, &str, &str); 5] = [
    ("StateDirectory", "STATE_DIRECTORY", "/var/lib"),
    ("RuntimeDirectory", "RUNTIME_DIRECTORY", "/run"),
    ("CacheDirectory", "CACHE_DIRECTORY", "/var/cache"),
    ("LogsDirectory", "LOGS_DIRECTORY", "/var/log"),
    ("ConfigurationDirectory", "CONFIGURATION_DIRECTORY", "/etc"),
];

impl Properties {
    fn directories(&self) -> Vec<(&'static str, String)> {
        let named = |(property, variable, folder): (&str, &'static str, &str)| {
            let paths: Vec<_> = self.list(property).iter().map(|name| format!("{folder}/{name}")).collect();
            (!paths.is_empty()).then(|| (variable, paths.join(":")))
        };
        DIRECTORIES.into_iter().filter_map(named).collect()
    }

    fn mounts(&self) -> Mounts {
        type Bind = (String, String, bool, u64);
        let binds = ["BindPaths", "BindReadOnlyPaths"]
            .into_iter()
            .flat_map(|name| self.get::<Vec<Bind>>(name).unwrap_or_default());
        let empty: Vec<(String, String)> = self.get("TemporaryFileSystem").unwrap_or_default();
        Mounts {
            binds: binds.map(|(source, place, ..)| (source.into(), place.into())).collect(),
            empty: empty.into_iter().map(|(place, _)| place.into()).collect(),
        }
    }

    fn works_in(&self) -> Option<PathBuf> {
        let Some(named) = self.set("WorkingDirectory") else { return Some("/".into()) };
        let path = PathBuf::from(named.trim_start_matches(['-', '!']));
        path.is_absolute().then_some(path)
    }
}

impl Unit {
    /// Reads both of its interfaces, and its job's type.
    pub(super) fn read(unit: &Properties, service: &Properties, job: Option<&str>) -> Self {
        let no_target = |name: &String| !name.ends_with(".target") && !name.ends_with(".slice");
        let stopping = ["RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo"];
        let actions = ["FailureAction", "SuccessAction", "StartLimitAction"];
        let action = |name| Some((name, unit.set(name).filter(|action| action != "none")?));
        let root = service.set("RootDirectory").or_else(|| service.set("RootImage"));
        let mut stopped_along: Vec<String> =
            stopping.iter().flat_map(|name| unit.list(name)).filter(no_target).collect();
        stopped_along.sort();
        stopped_along.dedup();
        let (program, arguments) = service.command().unzip();
        Self {
            name: unit.text("Id"),
            load: unit.load(),
            active: unit.text("ActiveState"),
            sub: unit.text("SubState"),
            job: job.map(job_of),
            main: service.get("MainPID").filter(|pid| *pid != 0),
            invocation: unit.get::<Vec<u8>>("InvocationID").filter(|id| !id.is_empty()).map(|id| hex(&id)),
            ended: service.ended(),
            result: service.text("Result"),
            conditions_met: unit.is_met("Condition") && unit.is_met("Assert"),
            is_outdated: unit.flag("NeedDaemonReload"),
            is_transient: unit.flag("Transient"),
            is_startable: unit.flag("CanStart") && !unit.flag("RefuseManualStart") && !unit.flag("RefuseManualStop"),
            file_state: unit.text("UnitFileState"),
            files: unit.set("FragmentPath").into_iter().chain(unit.list("DropInPaths")).map(PathBuf::from).collect(),
            stopped_along,
            kept_up_by: unit.list("UpheldBy"),
            triggers: unit.list("TriggeredBy"),
            host_actions: actions.into_iter().filter_map(action).collect(),
            start_limit: unit.start_limit(),
            kind: service.text("Type"),
            restart: service.text("Restart"),
            restart_pause: service.micros("RestartUSec").unwrap_or_default(),
            start_limit_time: service.micros("TimeoutStartUSec"),
            stop_limit_time: service.micros("TimeoutStopUSec"),
            kill_mode: service.text("KillMode"),
            kills: service.flag("SendSIGKILL"),
            program,
            arguments: arguments.unwrap_or_default(),
            directories: service.directories(),
            mounts: service.mounts(),
            environment: service.list("Environment"),
            environment_files: service.get("EnvironmentFiles").unwrap_or_default(),
            passed: service.list("PassEnvironment"),
            unset: service.list("UnsetEnvironment"),
            user: service.set("User"),
            group: service.set("Group"),
            has_dynamic_user: service.flag("DynamicUser"),
            cwd: service.cwd(),
            works_in: service.works_in(),
            root: root.map(PathBuf::from),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn job_of(kind: &str) -> Job {
    match kind {
        "start" => Job::Start,
        "stop" | "restart" | "try-restart" => Job::Stop,
        _ => Job::Other,
    }
}
