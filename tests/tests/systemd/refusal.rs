//! Units that would fight a step, on the real thing: `agent plan` and `agent run` say what is wrong and what to type,
//! and nothing is touched.

use std::{fs, os::unix::fs::PermissionsExt};

use tests::{ended::Ended, machine::Host, on_both, system::System};

use crate::{
    fleet::{Fleet, UNIT, Words},
    run::Run,
};

on_both! {
    units_that_would_fight_a_step_are_refused, etcd #[ignore = "slow: the node's row shows the same"];
    a_user_who_may_not_order_units_about_is_refused, etcd #[ignore = "slow: the node's row shows the same"];
    a_host_without_a_bus_is_refused, etcd #[ignore = "slow: the node's row shows the same"];
}

const OWN: &str = "/etc/systemd/system/member.service.d/own.conf";

fn systemctl(host: &Host, words: &[&str]) {
    host.must(&[&["systemctl"], words].concat()).expect("systemd does it");
}

/// One host, whose only member may go.
async fn sole(system: System) -> Option<(Fleet, Words)> {
    let fleet = Fleet::with(system, 1, "Restart=always\nRestartSec=2").await?;
    let strategy = vec!["allow_downtime: true".into(), "join_window: 0s".into()];
    let words = Words { strategy, ..Words::default() };
    fleet.write(0, &words);
    Some((fleet, words))
}

/// Both must say so, and the member not notice.
async fn is_refused(fleet: &Fleet, fault: &str, remedy: &str) {
    let before = fleet.property(&fleet.hosts[0], "ExecMainPID");
    for verb in ["plan", "run"] {
        let ended = fleet.one(verb, 0).await;
        ended.must_be(3, "unprepared");
        assert!(ended.message().contains(fault) && ended.message().contains(remedy), "{ended}");
    }
    assert_eq!(fleet.property(&fleet.hosts[0], "ExecMainPID"), before, "{fault}");
}

async fn is_planned(fleet: &Fleet, warning: &str) {
    let ended = fleet.one("plan", 0).await;
    ended.must_be(0, "planned");
    assert!(ended.warnings().contains(warning), "{ended}");
}

async fn units_that_would_fight_a_step_are_refused(system: System) {
    let Some((fleet, words)) = sole(system).await else { return };
    let host = &fleet.hosts[0];
    host.write("/etc/forced.env", "# Of a restore.\nETCD_FORCE_NEW_CLUSTER='true'\n").expect("written");
    for (settings, fault, remedy) in [
        ("[Unit]\nRefuseManualStop=yes", "may not be started and stopped by hand", "RefuseManualStop=no"),
        ("[Unit]\nFailureAction=reboot", "do a reboot of the host", "FailureAction=none"),
        (
            "[Service]\nExecStart=\nExecStart=/bin/sleep infinity",
            "starts /bin/sleep, which does not lead",
            "ExecStart=",
        ),
        ("[Service]\nRootDirectory=/srv", "has a root of its own, /srv", "RootDirectory="),
        ("[Service]\nKillMode=none", "is not ended by a stop", "KillMode=control-group"),
        ("[Service]\nTimeoutStopSec=5", "is killed by systemd 5s after it was told to stop", "TimeoutStopSec=31"),
        ("[Service]\nTimeoutStartSec=90\nRestart=no", "with Restart=no it then stays down", "TimeoutStartSec=infinity"),
        ("[Service]\nType=oneshot\nRestart=no", "has no process that stays", "name the unit"),
        ("[Service]\nType=sometimes\nExecStart=", "cannot be read by systemd", "repair its file"),
        (
            "[Service]\nEnvironment=ETCD_FORCE_NEW_CLUSTER=true",
            "its next start is given `ETCD_FORCE_NEW_CLUSTER`",
            "take that out",
        ),
        (
            "[Service]\nEnvironmentFile=/etc/forced.env",
            "its next start is given `ETCD_FORCE_NEW_CLUSTER`",
            "take that out",
        ),
        (
            "[Service]\nWorkingDirectory=/nowhere",
            "works in /nowhere (WorkingDirectory=), which is no folder",
            "make the folder",
        ),
        ("[Service]\nBindPaths=/srv:/var/lib/member", "is no member's data", "correct that"),
        ("[Service]\nEnvironmentFile=/etc/absent.env", "takes variables from /etc/absent.env", "put the file there"),
        ("[Service]\nUser=nobody", "runs as user `nobody`, who cannot run", "let the user in there"),
        ("[Service]\nUser=whoever", "runs as user `whoever`, whom there is not", "create the user"),
    ] {
        // Where root may go and others not.
        let closed = fs::Permissions::from_mode(if settings.contains("nobody") { 0o700 } else { 0o755 });
        fs::set_permissions(host.path("/opt/member"), closed).expect("changed");
        host.write_unit("member.service.d/own.conf", &format!("{settings}\n")).expect("a drop-in");
        is_refused(&fleet, fault, remedy).await;
    }
    for (settings, warning) in [
        ("[Service]\nTimeoutStartSec=90", "is ended by systemd where it is not ready after 90s"),
        ("[Service]\nRestartSec=10ms\n[Unit]\nStartLimitIntervalSec=0", "without a limit"),
        ("[Unit]\nStartLimitBurst=1", "its second start"),
    ] {
        host.write_unit("member.service.d/own.conf", &format!("{settings}\n")).expect("a drop-in");
        is_planned(&fleet, warning).await;
    }
    // As a person leaves it who has not typed daemon-reload.
    host.write(OWN, "[Service]\nNice=1\n").expect("written");
    is_refused(&fleet, "was changed on disk since systemd read it", "systemctl daemon-reload").await;
    fs::remove_file(host.path(OWN)).expect("removed");
    systemctl(host, &["daemon-reload"]);

    systemctl(host, &["disable", UNIT]);
    is_planned(&fleet, "is not started at boot").await;
    systemctl(host, &["enable", UNIT]);
    others_stand_in_the_way(&fleet, &words).await;
    fleet.one("plan", 0).await.must_be(0, "planned");
    assert_eq!(fleet.releases().await, [fleet.from.release.to_string()]);
}

async fn others_stand_in_the_way(fleet: &Fleet, words: &Words) {
    let host = &fleet.hosts[0];
    for (setting, fault, remedy) in [
        ("Upholds", "is started again by other.service", "Upholds="),
        ("Requires", "takes other.service down", "Wants=member.service"),
    ] {
        let other = format!("[Unit]\n{setting}={UNIT}\n[Service]\nExecStart=/bin/sleep infinity\n");
        host.write_unit("other.service", &other).expect("a unit");
        systemctl(host, &["restart", "other.service"]);
        is_refused(fleet, fault, remedy).await;
    }
    systemctl(host, &["stop", "other.service"]);
    fs::remove_file(host.path("/etc/systemd/system/other.service")).expect("removed");
    systemctl(host, &["daemon-reload"]);

    let files = vec![format!("files: [{{ path: {OWN}, source: /etc/hostname }}]")];
    fleet.write(0, &Words { node: files, ..words.clone() });
    is_refused(fleet, "is made of", "EnvironmentFile=").await;

    systemctl(host, &["mask", "--runtime", "masked.service"]);
    for (unit, fault) in [("absent.service", "is not there"), ("masked.service", "is masked")] {
        host.write(crate::fleet::PLAYBOOK, fleet.playbook(0, unit, words)).expect("written");
        is_refused(fleet, fault, if unit == "absent.service" { "daemon-reload" } else { "systemctl unmask" }).await;
    }
    host.must(&["systemd-run", "--unit=passing", "sleep", "infinity"]).expect("a transient unit");
    host.write(crate::fleet::PLAYBOOK, fleet.playbook(0, "passing.service", words)).expect("written");
    is_refused(fleet, "is a transient unit", "write a unit file").await;
    fleet.write(0, words);
}

/// `agent VERB` as nobody, who has all that it needs but the right to order units about.
async fn as_nobody(fleet: &Fleet, verb: &str) -> Ended {
    let argv = ["runuser", "-u", "nobody", "--", "agent", verb, crate::fleet::PLAYBOOK];
    Run::start(&fleet.hosts[0], &argv).ended().await
}

async fn a_user_who_may_not_order_units_about_is_refused(system: System) {
    let Some((fleet, _)) = sole(system).await else { return };
    let host = &fleet.hosts[0];
    host.must(&["mkdir", "-p", "/var/lib/baton"]).expect("a folder");
    host.must(&["chown", "-R", "nobody", "/opt/member", "/var/lib/baton"]).expect("it is theirs");
    for verb in ["plan", "run"] {
        let ended = as_nobody(&fleet, verb).await;
        ended.must_be(3, "unprepared");
        let said = "user `nobody` may not start member.service; run the agent as root, or let the user do so by polkit";
        assert!(ended.message().contains(said), "{ended}");
    }
}

async fn a_host_without_a_bus_is_refused(system: System) {
    let Some((fleet, _)) = sole(system).await else { return };
    let host = &fleet.hosts[0];
    systemctl(host, &["stop", "dbus.socket", "dbus.service"]);
    for verb in ["plan", "run"] {
        let ended = fleet.one(verb, 0).await;
        ended.must_be(3, "unprepared");
        assert!(ended.message().contains("systemd cannot be reached over the system bus"), "{ended}");
    }
    systemctl(host, &["start", "dbus.socket"]);
    fleet.one("run", 0).await.must_be(0, "done");
}
