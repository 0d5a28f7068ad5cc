use super::*;
use crate::host::runtime::systemd::unit::Job;

/// As a packager's unit for etcd, with what the rules would warn of seen to.
fn sound() -> Unit {
    Unit {
        name: "etcd.service".into(),
        active: "active".into(),
        sub: "running".into(),
        main: Some(7),
        conditions_met: true,
        is_startable: true,
        file_state: "enabled".into(),
        files: vec!["/etc/systemd/system/etcd.service".into()],
        start_limit: Some((5, Duration::from_secs(10))),
        kind: "notify".into(),
        restart: "always".into(),
        restart_pause: Duration::from_millis(100),
        stop_limit_time: Some(Duration::from_secs(90)),
        kill_mode: "control-group".into(),
        kills: true,
        program: Some("/opt/etcd/current".into()),
        arguments: Vec::new(),
        user: Some("etcd".into()),
        ..Unit::default()
    }
}

fn wanted() -> Wanted {
    Wanted {
        binary: Some("/opt/etcd/current".into()),
        is_led_through: true,
        files: vec!["/etc/etcd/etcd.yaml".into()],
        health: Duration::from_secs(120),
        stop: Duration::from_secs(30),
        kill: false,
    }
}

type Change = fn(&mut Unit, &mut Wanted);

fn changed(change: Change) -> (Unit, Wanted) {
    let (mut unit, mut wanted) = (sound(), wanted());
    change(&mut unit, &mut wanted);
    (unit, wanted)
}

#[test]
fn what_fights_a_step_is_refused_with_what_to_type() {
    let cases: [(Change, &str, &str); 23] = [
        (|u, _| u.load = Load::NotFound, "is not there", "systemctl daemon-reload"),
        (|u, _| u.load = Load::Masked, "is masked", "systemctl unmask etcd.service"),
        (|u, _| u.load = Load::Wrong("no ExecStart=".into()), "cannot be read by systemd: no ExecStart=", "repair"),
        (|u, _| u.is_outdated = true, "was changed on disk", "type `systemctl daemon-reload`"),
        (|u, _| u.is_transient = true, "is a transient unit", "write a unit file"),
        (|u, _| u.is_startable = false, "may not be started and stopped", "RefuseManualStop=no"),
        (|u, _| u.kind = "oneshot".into(), "has no process that stays", "name the unit"),
        (|u, _| u.program = None, "has no process that stays", "name the unit"),
        (|u, _| u.main = None, "does not know its main process", "PIDFile="),
        (|u, _| u.root = Some("/srv/root".into()), "has a root of its own, /srv/root", "RootDirectory="),
        (|_, w| w.is_led_through = false, "starts /opt/etcd/current, which does not lead", "in [Service], ExecStart="),
        (|_, w| w.files.push("/etc/systemd/system/etcd.service".into()), "is made of /etc/sys", "EnvironmentFile="),
        (
            |_, w| w.files.push("/run/systemd/system/etcd.service.d/a.conf".into()),
            "is made of /run",
            "EnvironmentFile=",
        ),
        (
            |u, w| {
                u.files = vec!["/lib/systemd/system/etcd.service".into()];
                w.files.push("/usr/lib/systemd/system/etcd.service".into());
            },
            "is made of /usr/lib",
            "EnvironmentFile=",
        ),
        (
            |u, w| {
                u.name = "etcd@1.service".into();
                w.files.push("/etc/systemd/system/etcd@.service.d/a.conf".into());
            },
            "is made of /etc/sys",
            "EnvironmentFile=",
        ),
        (|u, _| u.kill_mode = "none".into(), "would run on", "KillMode=control-group"),
        (
            |u, _| u.stop_limit_time = Some(Duration::from_secs(10)),
            "is killed by systemd 10s after",
            "TimeoutStopSec=31",
        ),
        (
            |u, _| {
                u.start_limit_time = Some(Duration::from_secs(90));
                u.restart = "no".into();
            },
            "not ready after 90s, as without a quorum, and `health.timeout` is 120s; with Restart=no it then stays down",
            "TimeoutStartSec=infinity",
        ),
        (
            |u, _| {
                u.start_limit_time = Some(Duration::from_secs(90));
                u.restart = "on-abort".into();
            },
            "stays down",
            "TimeoutStartSec=infinity",
        ),
        (|u, _| u.kept_up_by = vec!["keeper.service".into()], "is started again by keeper.service", "Upholds="),
        (|u, _| u.stopped_along = vec!["api.service".into()], "takes api.service down", "Wants=etcd.service"),
        (
            |u, _| u.host_actions = vec![("FailureAction", "reboot".into())],
            "a reboot of the host",
            "FailureAction=none",
        ),
        (|u, _| u.host_actions = vec![("StartLimitAction", "poweroff".into())], "poweroff", "StartLimitAction=none"),
    ];
    refuse(&sound(), &wanted()).unwrap();
    for (change, fault, remedy) in cases {
        let (unit, wanted) = changed(change);
        let found = refuse(&unit, &wanted).unwrap_err();
        assert!(found.fault.contains(fault) && found.remedy.contains(remedy), "{found}");
        assert!(found.to_string().starts_with(&format!("{} ", unit.name)), "{found}");
    }
}

#[test]
fn what_only_makes_a_failure_longer_is_warned_of() {
    let cases: [(Change, &str); 6] = [
        (
            |u, w| {
                u.stop_limit_time = Some(Duration::from_secs(10));
                w.kill = true;
            },
            "is killed by systemd 10s after",
        ),
        (|u, _| u.start_limit_time = Some(Duration::from_secs(90)), "started anew, again and again"),
        (|u, _| u.start_limit = None, "is started again 100ms after each end, without a limit"),
        (|u, _| u.start_limit = Some((1, Duration::from_secs(10))), "its second start in 10s"),
        (|u, _| u.triggers = vec!["etcd.socket".into()], "may be started by etcd.socket"),
        (|u, _| u.file_state = "disabled".into(), "is not started at boot"),
    ];
    assert_eq!(warn(&sound(), &wanted()), []);
    for (change, fault) in cases {
        let (unit, wanted) = changed(change);
        refuse(&unit, &wanted).unwrap();
        let found = warn(&unit, &wanted);
        assert!(found.len() == 1 && found[0].fault.contains(fault), "{found:?}");
    }
}

#[test]
fn what_looks_alike_and_harms_nobody_is_let_pass() {
    let cases: [Change; 10] = [
        |u, _| u.start_limit_time = Some(Duration::from_secs(120)),
        |u, _| {
            u.kind = "exec".into(); // started as soon as it runs
            u.start_limit_time = Some(Duration::from_secs(5));
        },
        |u, _| u.stop_limit_time = None,
        |u, _| {
            u.stop_limit_time = Some(Duration::from_secs(1));
            u.kills = false;
        },
        |u, _| {
            u.start_limit = None;
            u.restart = "no".into();
        },
        |u, _| {
            u.start_limit = None;
            u.restart_pause = Duration::from_secs(5);
        },
        |_, w| {
            w.binary = None; // a restart switches none
            w.is_led_through = false;
        },
        |u, _| {
            u.active = "inactive".into();
            u.sub = "dead".into();
            u.main = None;
        },
        |u, _| u.job = Some(Job::Other),
        |u, _| u.file_state = "static".into(),
    ];
    for (at, change) in cases.into_iter().enumerate() {
        let (unit, wanted) = changed(change);
        refuse(&unit, &wanted).unwrap();
        assert_eq!(warn(&unit, &wanted), [], "case {at}");
    }
}
