//! What of a unit stands in the way of a step, or makes it harder, and what to type. Pure.
//!
//! A unit is refused where a step could end with its member down, or with something else of the host down, by systemd's
//! doing; it is warned of what only makes a failure longer or louder. Source: systemd.service(5), systemd.unit(5).

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    phase::{Phase, phase},
    unit::{Load, Unit},
};

/// A pause between two starts below which a crash is a storm.
const SHORT: Duration = Duration::from_secs(1);

/// What the playbook wants of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The symlink that is switched.
    pub binary: Option<PathBuf>,
    /// Whether the unit's program leads through it.
    pub is_led_through: bool,
    /// The files that are switched.
    pub files: Vec<PathBuf>,
    /// How long a member may take to become ready.
    pub health: Duration,
    /// How long it may take to end.
    pub stop: Duration,
    /// Whether it is killed after that.
    pub kill: bool,
}

/// Something that is wrong with a unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{unit} {fault}; {remedy}")]
pub struct Finding {
    pub unit: String,
    pub fault: String,
    pub remedy: String,
}

/// A rule finds a fault and its remedy.
type Rule = fn(&Unit, &Wanted) -> Option<(String, String)>;

const REFUSALS: [Rule; 13] = [
    is_there,
    is_as_on_disk,
    is_lasting,
    may_be_ordered,
    is_one_process,
    has_the_hosts_root,
    runs_the_binary,
    is_not_switched_itself,
    is_ended_by_a_stop,
    is_not_killed_early,
    is_started_after_a_time_out,
    is_alone,
    spares_the_host,
];

const WARNINGS: [Rule; 6] =
    [may_be_killed_early, may_start_too_slowly, may_storm, may_meet_its_limit, may_be_triggered, may_stay_down_at_boot];

/// The first thing for which a step with this unit is refused.
///
/// # Errors
/// That.
pub fn refuse(unit: &Unit, wanted: &Wanted) -> Result<(), Finding> {
    let found = REFUSALS.iter().find_map(|rule| rule(unit, wanted));
    found.map_or(Ok(()), |found| Err(finding(unit, found)))
}

/// What is to be known before a step with it.
pub fn warn(unit: &Unit, wanted: &Wanted) -> Vec<Finding> {
    WARNINGS.iter().filter_map(|rule| rule(unit, wanted)).map(|found| finding(unit, found)).collect()
}

fn finding(unit: &Unit, (fault, remedy): (String, String)) -> Finding {
    Finding { unit: unit.name.clone(), fault, remedy }
}

/// How a setting is changed for good: systemd reads it at once.
fn edit(unit: &Unit, section: &str, setting: &str) -> String {
    format!("type `systemctl edit {}` and give it, in [{section}], {setting}", unit.name)
}

fn is_there(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    let again = "then `systemctl daemon-reload`";
    match &unit.load {
        Load::Loaded => None,
        Load::NotFound => Some(("is not there".into(), format!("correct `unit`, or install its file, {again}"))),
        Load::Masked => Some(("is masked".into(), format!("type `systemctl unmask {}`", unit.name))),
        Load::Wrong(why) => Some((format!("cannot be read by systemd: {why}"), format!("repair its file, {again}"))),
    }
}

/// What would be started is what systemd has read, and what the operator has written is another.
fn is_as_on_disk(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    unit.is_outdated
        .then(|| ("was changed on disk since systemd read it".into(), "type `systemctl daemon-reload`".into()))
}

fn is_lasting(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    unit.is_transient.then(|| {
        ("is a transient unit, which is gone once it is stopped".into(), "write a unit file for the member".into())
    })
}

fn may_be_ordered(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    (!unit.is_startable).then(|| {
        let setting = "RefuseManualStart=no and RefuseManualStop=no";
        ("may not be started and stopped by hand".into(), edit(unit, "Unit", setting))
    })
}

/// The process to look at must be one, and known.
fn is_one_process(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    if unit.kind == "oneshot" || unit.program.is_none() {
        return Some(("has no process that stays (Type=oneshot)".into(), "name the unit that runs the member".into()));
    }
    (phase(unit) == Phase::Up && unit.main.is_none()).then(|| {
        let remedy = edit(unit, "Service", "Type=notify, or the PIDFile= of the member");
        ("runs, but systemd does not know its main process".into(), remedy)
    })
}

fn has_the_hosts_root(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    let root = unit.root.as_ref()?;
    let fault = format!("has a root of its own, {}, where the host's paths lead elsewhere", root.display());
    Some((fault, "run the member without RootDirectory= and RootImage=".into()))
}

fn runs_the_binary(unit: &Unit, wanted: &Wanted) -> Option<(String, String)> {
    let (binary, program) = (wanted.binary.as_ref()?, unit.program.as_ref()?);
    (!wanted.is_led_through).then(|| {
        let (binary, program) = (binary.display(), program.display());
        let fault =
            format!("starts {program}, which does not lead through `binary`, {binary}: a switch would change nothing");
        (fault, edit(unit, "Service", &format!("ExecStart= and then ExecStart={binary} with the member's flags")))
    })
}

/// Systemd would go on with what it has read.
fn is_not_switched_itself(unit: &Unit, wanted: &Wanted) -> Option<(String, String)> {
    // /lib may be a link to /usr/lib, and either may be written.
    let plain =
        |path: &Path| path.strip_prefix("/usr").map_or_else(|_| path.to_owned(), |rest| Path::new("/").join(rest));
    // An instance has its template's drop-ins, too.
    let template =
        unit.name.split_once('@').and_then(|(name, rest)| Some(format!("{name}@.{}.d", rest.rsplit_once('.')?.1)));
    let folders = [Some(format!("{}.d", unit.name)), template];
    let is_its_own = |path: &&PathBuf| {
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        unit.files.iter().any(|file| plain(file) == plain(path))
            || folders.iter().flatten().any(|own| Some(own.as_str()) == folder)
    };
    let file = wanted.files.iter().find(is_its_own)?;
    let fault = format!("is made of {}, which `files` would switch without systemd reading it anew", file.display());
    Some((fault, "switch an EnvironmentFile= or the member's own configuration instead".into()))
}

fn is_ended_by_a_stop(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    (unit.kill_mode == "none").then(|| {
        let fault = "is not ended by a stop (KillMode=none), so that the member would run on";
        (fault.into(), edit(unit, "Service", "KillMode=control-group"))
    })
}

fn early_kill(unit: &Unit, wanted: &Wanted) -> Option<(String, String)> {
    let limit = unit.stop_limit_time.filter(|limit| unit.kills && *limit < wanted.stop)?;
    let (stop, setting) = (wanted.stop, format!("TimeoutStopSec={}", wanted.stop.as_secs() + 1));
    let fault = format!("is killed by systemd {limit:?} after it was told to stop, and `stop.timeout` is {stop:?}");
    Some((fault, format!("{}; or lower `stop.timeout`", edit(unit, "Service", &setting))))
}

fn is_not_killed_early(unit: &Unit, wanted: &Wanted) -> Option<(String, String)> {
    early_kill(unit, wanted).filter(|_| !wanted.kill)
}

fn may_be_killed_early(unit: &Unit, wanted: &Wanted) -> Option<(String, String)> {
    early_kill(unit, wanted).filter(|_| wanted.kill)
}

/// etcd says that it is ready only when there is a quorum: a start that waits for one is ended by systemd over its limit.
fn slow_start(unit: &Unit, wanted: &Wanted, then: &str) -> Option<(String, String)> {
    let limit = unit.start_limit_time.filter(|limit| unit.kind.starts_with("notify") && *limit < wanted.health)?;
    let health = wanted.health;
    let fault = format!(
        "is ended by systemd where it is not ready after {limit:?}, as without a quorum, and `health.timeout` is {health:?}; {then}"
    );
    Some((fault, edit(unit, "Service", "TimeoutStartSec=infinity")))
}

fn starts_again_after_a_time_out(unit: &Unit) -> bool {
    matches!(unit.restart.as_str(), "always" | "on-failure" | "on-abnormal")
}

fn is_started_after_a_time_out(unit: &Unit, wanted: &Wanted) -> Option<(String, String)> {
    let found = slow_start(unit, wanted, &format!("with Restart={} it then stays down", unit.restart));
    found.filter(|_| !starts_again_after_a_time_out(unit))
}

fn may_start_too_slowly(unit: &Unit, wanted: &Wanted) -> Option<(String, String)> {
    let found = slow_start(unit, wanted, "it is then started anew, again and again");
    found.filter(|_| starts_again_after_a_time_out(unit))
}

/// Others are stopped with it, and nobody starts them again.
fn is_alone(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    if !unit.kept_up_by.is_empty() {
        let others = unit.kept_up_by.join(", ");
        let fault = format!("is started again by {others} (Upholds=) as soon as it is stopped");
        return Some((fault, format!("take Upholds={} out of {others}", unit.name)));
    }
    (!unit.stopped_along.is_empty()).then(|| {
        let others = unit.stopped_along.join(", ");
        let remedy =
            format!("have {others} say Wants={0} and After={0} instead of Requires=, BindsTo= or PartOf=", unit.name);
        (format!("takes {others} down when it is stopped, and nobody starts that again"), remedy)
    })
}

/// A new binary that fails would take the host down, and again after each boot.
fn spares_the_host(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    let (name, action) = unit.host_actions.first()?;
    let fault = format!("has systemd do a {action} of the host when it ends ({name}={action})");
    Some((fault, edit(unit, "Unit", &format!("{name}=none"))))
}

fn restarts(unit: &Unit) -> bool {
    !matches!(unit.restart.as_str(), "" | "no")
}

fn may_storm(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    let is_storm = restarts(unit) && unit.start_limit.is_none() && unit.restart_pause < SHORT;
    is_storm.then(|| {
        let fault = format!(
            "is started again {:?} after each end, without a limit: a new binary that fails does so until it is put back",
            unit.restart_pause
        );
        (fault, edit(unit, "Service", "RestartSec=5"))
    })
}

/// The limit is lifted for the agent's own starts, but systemd's may meet it at any time afterwards.
fn may_meet_its_limit(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    let (burst, within) = unit.start_limit.filter(|_| restarts(unit))?;
    (burst == 1).then(|| {
        let fault = format!("is not started again by systemd where that would be its second start in {within:?}");
        (fault, edit(unit, "Unit", "StartLimitBurst=5"))
    })
}

fn may_be_triggered(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    (!unit.triggers.is_empty()).then(|| {
        let triggers = unit.triggers.join(", ");
        let remedy = format!("type `systemctl stop {}` for as long as the run takes", unit.triggers.join(" "));
        (format!("may be started by {triggers} while its binary is switched"), remedy)
    })
}

fn may_stay_down_at_boot(unit: &Unit, _: &Wanted) -> Option<(String, String)> {
    (unit.file_state == "disabled").then(|| {
        let fault = "is not started at boot: a host that is booted in a step stays down until the agent runs again";
        (fault.into(), format!("type `systemctl enable {}`", unit.name))
    })
}

#[cfg(test)]
#[path = "preflight_test.rs"]
mod tests;
