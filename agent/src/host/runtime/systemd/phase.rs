//! What a unit's state means for whoever wants its process to run, or not to. Pure.
//!
//! Source: systemd's table of service states, and systemd.service(5) on `Restart=` and `RemainAfterExit=`.

use super::unit::{Ended, Job, Unit};

/// Where a unit is between stopped and running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing runs, and nothing is ordered.
    Down,
    /// Nothing runs yet, and a start waits for other units.
    Queued,
    /// No process, and a start would not bring one: it waits to be started again, or counts as active without one.
    Idle,
    /// It is being started; its process may be there.
    Starting,
    Up,
    /// It is being stopped; its process may be there.
    Ending,
}

pub fn phase(unit: &Unit) -> Phase {
    match (unit.active.as_str(), unit.sub.as_str(), unit.job) {
        ("deactivating" | "maintenance", ..) => Phase::Ending,
        (_, "auto-restart" | "auto-restart-queued" | "dead-before-auto-restart" | "failed-before-auto-restart", _) => {
            Phase::Idle
        }
        ("inactive" | "failed", _, Some(Job::Start | Job::Stop)) => Phase::Queued,
        ("inactive" | "failed", ..) => Phase::Down,
        (_, _, Some(Job::Stop)) => Phase::Ending,
        ("activating", ..) => Phase::Starting,
        (_, "running", _) => Phase::Up,
        _ if unit.main.is_some() => Phase::Up,
        _ => Phase::Idle,
    }
}

/// Whether a start that brought no process failed before there was one of the unit's own: then to try again is of no use.
pub fn was_never_run(unit: &Unit) -> bool {
    // Codes that no program's end has: what systemd itself could not do before it became the program
    // (systemd.exec(5), "Process Exit Codes").
    let is_systemds = |code: i32| (200..=243).contains(&code);
    match (unit.result.as_str(), unit.ended) {
        _ if !unit.conditions_met => true,
        ("resources" | "start-limit-hit" | "exec-condition", _) => true,
        (_, Ended::Exit(code)) => is_systemds(code),
        (_, Ended::No) => true,
        (_, Ended::Signal(_)) => false,
    }
}

/// How a unit stands that has no process, in words.
pub fn words(unit: &Unit) -> String {
    let ended = match unit.ended {
        Ended::Exit(203) => ", exit 203: its program could not be run".to_owned(),
        Ended::Exit(code) => format!(", exit {code}"),
        Ended::Signal(signal) => format!(", signal {signal}"),
        Ended::No => String::new(),
    };
    let why = match unit.result.as_str() {
        _ if !unit.conditions_met => ": a condition of the unit is not met".to_owned(),
        "" | "success" => ended,
        result => format!(": {result}{ended}"),
    };
    format!(
        "unit {} is {} ({}){why}; `journalctl -u {}` shows what it said",
        unit.name, unit.active, unit.sub, unit.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(active: &str, sub: &str, job: Option<Job>, main: u32) -> Unit {
        let main = (main != 0).then_some(main);
        Unit { active: active.into(), sub: sub.into(), job, main, conditions_met: true, ..Unit::default() }
    }

    #[test]
    fn every_state_of_a_service_has_a_phase() {
        for (active, sub, job, main, expected) in [
            ("inactive", "dead", None, 0, Phase::Down),
            ("failed", "failed", None, 0, Phase::Down),
            ("inactive", "dead", Some(Job::Start), 0, Phase::Queued),
            ("failed", "failed", Some(Job::Start), 0, Phase::Queued),
            ("inactive", "dead", Some(Job::Stop), 0, Phase::Queued), // of a restart only its start is left
            ("inactive", "dead", Some(Job::Other), 0, Phase::Down),
            ("activating", "auto-restart", None, 0, Phase::Idle),
            ("activating", "auto-restart", Some(Job::Start), 0, Phase::Idle), // such a start waits for the pause to end
            ("activating", "auto-restart-queued", Some(Job::Start), 0, Phase::Idle),
            ("failed", "failed-before-auto-restart", None, 0, Phase::Idle),
            ("inactive", "dead-before-auto-restart", None, 0, Phase::Idle),
            ("activating", "condition", Some(Job::Start), 0, Phase::Starting),
            ("activating", "start-pre", Some(Job::Start), 0, Phase::Starting),
            ("activating", "start", Some(Job::Start), 7, Phase::Starting), // Type=notify, not ready
            ("activating", "start", None, 7, Phase::Starting),             // after a Restart= of systemd's own
            ("activating", "start-post", Some(Job::Start), 7, Phase::Starting),
            ("activating", "start", Some(Job::Stop), 7, Phase::Ending),
            ("active", "running", None, 7, Phase::Up),
            ("active", "running", Some(Job::Other), 7, Phase::Up),
            ("active", "running", None, 0, Phase::Up), // systemd does not know which of its processes is the main one
            ("active", "running", Some(Job::Stop), 7, Phase::Ending),
            ("active", "exited", None, 0, Phase::Idle),
            ("reloading", "reload", None, 7, Phase::Up),
            ("refreshing", "refresh", None, 7, Phase::Up),
            ("deactivating", "stop", Some(Job::Stop), 7, Phase::Ending),
            ("deactivating", "stop-sigterm", Some(Job::Stop), 7, Phase::Ending),
            ("deactivating", "stop-sigterm", Some(Job::Start), 7, Phase::Ending), // started again when it has ended
            ("deactivating", "stop-post", None, 0, Phase::Ending),
            ("deactivating", "final-sigterm", None, 0, Phase::Ending),
            ("maintenance", "cleaning", None, 0, Phase::Ending),
        ] {
            assert_eq!(phase(&unit(active, sub, job, main)), expected, "{active} ({sub}) {job:?} {main}");
        }
    }

    #[test]
    fn a_start_without_a_process_is_told_from_a_process_that_ended() {
        for (result, ended, conditions_met, never_run, said) in [
            ("exit-code", Ended::Exit(1), true, false, ": exit-code, exit 1; "),
            ("signal", Ended::Signal(9), true, false, ": signal, signal 9; "),
            ("success", Ended::Exit(0), true, false, " (failed), exit 0; "),
            ("timeout", Ended::Signal(15), true, false, ": timeout, signal 15; "),
            ("exit-code", Ended::Exit(203), true, true, "its program could not be run"),
            ("exit-code", Ended::Exit(217), true, true, "exit 217"), // no such user
            ("start-limit-hit", Ended::Exit(1), true, true, ": start-limit-hit"),
            ("resources", Ended::No, true, true, ": resources; "),
            ("success", Ended::Exit(0), false, true, "a condition of the unit is not met"),
        ] {
            let unit = Unit { result: result.into(), ended, conditions_met, ..unit("failed", "failed", None, 0) };
            assert_eq!(was_never_run(&unit), never_run, "{result} {ended:?}");
            assert!(words(&unit).contains(said), "{}", words(&unit));
        }
    }
}
