//! Whether the nodes that the agent starts itself would be killed with it.
//!
//! They live in the agent's control group. systemd ends a service by ending its whole group, unless `KillMode` is
//! `process` (systemd.kill(5)), and a transient unit (systemd-run(1)) is gone with its command. Outside systemd, as
//! in a container, nothing ends the group but what ends the host.

use std::{fs, path::Path, time::Duration};

use crate::host::program::exec::{self, Output};

/// What systemd knows of the unit that the agent runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitFacts {
    /// `KillMode=`: `control-group`, `mixed`, `process`, `none`.
    pub kill_mode: String,
    /// Whether the unit was made by a command and not by a file.
    pub is_transient: bool,
    /// For units of a user: whether the user's systemd goes on after the last logout (loginctl(1), linger).
    pub lingers: bool,
    /// Whether logging out kills what a session left (logind.conf(5), KillUserProcesses).
    pub kills_sessions: bool,
}

/// What becomes of the nodes when the agent ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    Safe,
    /// They live on, but not past the user's logout.
    UntilLogout {
        unit: String,
    },
    /// They are killed with the agent.
    Killed {
        /// The unit whose group the agent is in.
        unit: String,
        why: Reason,
    },
}

/// Why a unit is not to hold nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Ending the service ends its whole group.
    KillMode(String),
    /// The unit goes with the command that made it.
    Transient,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::KillMode(mode) => write!(f, "its KillMode is {mode}, not process"),
            Self::Transient => f.write_str("it is a transient unit"),
        }
    }
}

/// Asks the system in which unit the agent is, and judges it.
pub async fn judge_own() -> Judgement {
    // Without systemd the path of the group says nothing of who would end it.
    if !Path::new("/run/systemd/system").is_dir() {
        return Judgement::Safe;
    }
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    match unit(&cgroup) {
        Some(unit) => judge(&unit, &facts(&unit).await),
        None => Judgement::Safe,
    }
}

/// The service of the system's systemd whose group a process is in.
pub fn service_of(pid: u32) -> Option<String> {
    if !Path::new("/run/systemd/system").is_dir() {
        return None;
    }
    let unit = unit(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)?;
    Some(unit.name).filter(|name| unit.user.is_none() && name.ends_with(".service"))
}

/// The unit that a group belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    /// Its name, such as `ssh.service`.
    name: String,
    /// The user whose own systemd it belongs to, by number.
    user: Option<String>,
}

/// The innermost unit in `/proc/self/cgroup`: of version 2 the line `0::`, of version 1 that of `name=systemd`.
fn unit(cgroup: &str) -> Option<Unit> {
    let path_of = |controller: &str| {
        let lines = cgroup.lines().filter_map(|line| line.splitn(3, ':').skip(1).collect::<Vec<_>>().try_into().ok());
        lines.filter(|[name, _]: &[&str; 2]| *name == controller).map(|[_, path]| path).find(|path| *path != "/")
    };
    let path = path_of("name=systemd").or_else(|| path_of(""))?;
    let is_unit = |part: &&str| [".service", ".scope"].iter().any(|kind| part.ends_with(kind));
    let name = path.rsplit('/').find(is_unit)?;
    let user = path.split('/').find_map(|part| part.strip_prefix("user@")?.strip_suffix(".service"));
    Some(Unit { name: name.into(), user: user.map(str::to_owned) })
}

/// The judgement itself, on facts alone.
fn judge(unit: &Unit, facts: &UnitFacts) -> Judgement {
    let killed = |why| Judgement::Killed { unit: unit.name.clone(), why };
    let until_logout = || Judgement::UntilLogout { unit: unit.name.clone() };
    match (unit.name.strip_suffix(".scope"), &unit.user) {
        // A login: the group stays until its last process ends.
        (Some(scope), None) if scope.starts_with("session-") => {
            if facts.kills_sessions {
                until_logout()
            } else {
                Judgement::Safe
            }
        }
        // A terminal of a desktop: the scopes of a user's systemd are all transient.
        (Some(scope), Some(_)) if !scope.starts_with("run-") => {
            if facts.lingers {
                Judgement::Safe
            } else {
                until_logout()
            }
        }
        // PID 1's own, and a container's as seen from outside: ended with the host or the container.
        (Some("init"), None) => Judgement::Safe,
        _ if facts.is_transient => killed(Reason::Transient),
        (Some(_), _) => Judgement::Safe,
        (None, user) => match facts.kill_mode.as_str() {
            "process" | "none" if user.is_some() && !facts.lingers => until_logout(),
            "process" | "none" => Judgement::Safe,
            mode => killed(Reason::KillMode(mode.into())),
        },
    }
}

/// What cannot be asked is taken for systemd's default, which kills.
async fn facts(unit: &Unit) -> UnitFacts {
    let own = |argv: &[&str]| ask(argv.iter().map(|word| (*word).to_owned()).collect());
    let show = match unit.user {
        Some(_) => own(&["systemctl", "--user", "show", "-p", "KillMode", "-p", "Transient", "--", &unit.name]).await,
        None => own(&["systemctl", "show", "-p", "KillMode", "-p", "Transient", "--", &unit.name]).await,
    };
    let lingers = match &unit.user {
        Some(user) => own(&["loginctl", "show-user", user, "-p", "Linger"]).await,
        None => String::new(),
    };
    let logind = own(&[
        "busctl",
        "get-property",
        "org.freedesktop.login1",
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
        "KillUserProcesses",
    ])
    .await;
    UnitFacts {
        kill_mode: property(&show, "KillMode").unwrap_or("control-group").to_owned(),
        is_transient: property(&show, "Transient") == Some("yes"),
        lingers: property(&lingers, "Linger") == Some("yes"),
        kills_sessions: logind.trim() == "b true",
    }
}

fn property<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).filter(|value| !value.is_empty())
}

/// What a command prints; nothing when it cannot be asked.
async fn ask(argv: Vec<String>) -> String {
    let ended = exec::run(&argv, Duration::from_secs(5), &Output::Kept).await;
    ended.ok().filter(exec::Ended::is_success).map_or_else(String::new, |ended| ended.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit_of(text: &str) -> Option<(String, Option<String>)> {
        unit(text).map(|unit| (unit.name, unit.user))
    }

    #[test]
    fn the_unit_is_found_in_every_layout() {
        for (cgroup, expected) in [
            ("0::/system.slice/agent.service\n", Some(("agent.service", None))),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", Some(("session-3.scope", None))),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-1.scope\n",
                Some(("vte-1.scope", Some("1000"))),
            ),
            ("9:name=systemd:/system.slice/cron.service\n4:memory:/x\n0::/\n", Some(("cron.service", None))),
            ("1:name=systemd:/\n0::/system.slice/cron.service\n", Some(("cron.service", None))),
            ("0::/system.slice/agent.service/workers\n", Some(("agent.service", None))),
            ("0::/system.slice/system-a.slice/a@b:c.service\n", Some(("a@b:c.service", None))),
            ("9:name=systemd:/\n4:memory:/process/4f0a\n0::/\n", None),
            ("0::/docker/0123abcd\n", None),
            ("", None),
            ("nonsense\n:\n", None),
        ] {
            let expected = expected.map(|(name, user)| (name.to_owned(), user.map(str::to_owned)));
            assert_eq!(unit_of(cgroup), expected, "{cgroup:?}");
        }
    }

    #[test]
    fn a_group_that_ends_with_the_agent_is_refused() {
        const SAFE: &str = "safe";
        const LOGOUT: &str = "until logout";
        for (name, user, facts, expected) in [
            ("agent.service", "", "control-group", "its KillMode is control-group, not process"),
            ("agent.service", "", "mixed", "its KillMode is mixed, not process"),
            ("agent.service", "", "process", SAFE),
            ("ssh.service", "", "none", SAFE),
            ("run-u7.service", "", "control-group transient", "it is a transient unit"),
            ("run-u7.service", "", "process transient", "it is a transient unit"),
            ("run-r1.scope", "", "control-group transient", "it is a transient unit"),
            ("run-r1.scope", "1000", "control-group transient lingers", "it is a transient unit"),
            ("session-3.scope", "", "control-group transient", SAFE),
            ("session-3.scope", "", "control-group transient kills_sessions", LOGOUT),
            ("init.scope", "", "control-group transient", SAFE),
            ("vte-1.scope", "1000", "control-group transient", LOGOUT),
            ("vte-1.scope", "1000", "control-group transient lingers", SAFE),
            ("agent.service", "1000", "process", LOGOUT),
            ("agent.service", "1000", "process lingers", SAFE),
            ("agent.service", "1000", "control-group lingers", "its KillMode is control-group, not process"),
        ] {
            let has = |word: &str| facts.split(' ').any(|fact| fact == word);
            let unit = Unit { name: name.into(), user: Some(user.to_owned()).filter(|user| !user.is_empty()) };
            let kill_mode = facts.split(' ').next().unwrap_or_default().to_owned();
            let known = UnitFacts {
                kill_mode,
                is_transient: has("transient"),
                lingers: has("lingers"),
                kills_sessions: has("kills_sessions"),
            };
            let found = match judge(&unit, &known) {
                Judgement::Safe => SAFE.to_owned(),
                Judgement::UntilLogout { unit } => {
                    assert_eq!(unit, name);
                    LOGOUT.to_owned()
                }
                Judgement::Killed { why, .. } => why.to_string(),
            };
            assert_eq!(found, expected, "{name} of {user:?}: {facts}");
        }
    }

    #[test]
    fn properties_are_read_as_systemctl_prints_them() {
        let shown = "KillMode=process\nTransient=no\nEmpty=\n";
        assert_eq!(property(shown, "KillMode"), Some("process"));
        assert_eq!((property(shown, "Kill"), property(shown, "Empty"), property("", "KillMode")), (None, None, None));
    }
}
