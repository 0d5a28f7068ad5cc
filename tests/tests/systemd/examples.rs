//! The units and drop-ins that are shipped for what restarts hosts: systemd reads them without a word, and each starts the guard
//! when a restart is due, and only then.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tests::{
    machine::{Host, hosts_or_skip},
    wait,
};

/// What whoever stands in for the agent writes down: there is no cluster to guard here.
const RAN: &str = "/var/lib/agent-ran";

fn shipped(name: &str) -> String {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/systemd");
    fs::read_to_string(folder.join(name)).expect(name)
}

fn program(host: &Host, name: &str, text: &str) {
    let path = Path::new("/usr/local/bin").join(name);
    host.write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
    host.must(&["chmod", "755", &path.to_string_lossy()]).expect("a program");
}

/// Orders a start, and says which words the agent was given, if it was started.
fn guards_after(host: &Host, unit: &str) -> Option<String> {
    let _ = fs::remove_file(host.path(RAN));
    host.must(&["systemctl", "start", unit]).expect("it starts, or is skipped");
    // What it starts in turn is queued by then.
    let idle = wait::until_blocking("systemd to have no job", wait::GENEROUS, || {
        let jobs = host.must(&["systemctl", "list-jobs", "--no-legend"]).map_err(|error| error.to_string())?;
        if jobs.trim().is_empty() { Ok(()) } else { Err(jobs) }
    });
    idle.expect("no job");
    fs::read_to_string(host.path(RAN)).ok()
}

const GUARDED: &str = "guard /etc/baton/playbook.yaml --wait 6h -- systemctl reboot\n";

#[test]
fn what_is_shipped_starts_the_guard_when_a_restart_is_due() {
    let Some((_network, hosts)) = hosts_or_skip(1) else { return };
    let host = &hosts[0];
    program(host, "agent", &format!("echo \"$@\" >>{RAN}"));
    for unit in ["baton-guard.service", "baton-reboot.service", "baton-adopt.service", "baton-adopt.timer"] {
        host.write_unit(unit, &shipped(unit)).expect("a unit");
    }
    host.write_unit("etcd.service", "[Service]\nExecStart=/bin/true\n").expect("a unit");
    host.write_unit("baton-reboot.timer", &shipped("zincati/baton-reboot.timer")).expect("a unit");
    // What the package would do takes the network, and an hour.
    let apt = "[Service]\nExecStartPre=\nExecStart=\nExecStart=/bin/true\n";
    host.write_unit("apt-daily-upgrade.service.d/nothing.conf", apt).expect("a drop-in");
    let own = shipped("unattended-upgrades/apt-daily-upgrade.conf");
    host.write_unit("apt-daily-upgrade.service.d/baton.conf", &own).expect("a drop-in");
    is_read_without_a_word(host);

    assert_eq!(guards_after(host, "apt-daily-upgrade.service"), None, "nothing asks for a restart");
    host.must(&["touch", "/run/reboot-required"]).expect("a file");
    assert_eq!(guards_after(host, "apt-daily-upgrade.service").as_deref(), Some(GUARDED));

    host.write_unit("baton-reboot.service.d/zincati.conf", &shipped("zincati/baton-reboot.conf")).expect("a drop-in");
    host.must(&["rm", "/run/reboot-required"]).expect("removed");
    is_read_without_a_word(host);
    for (code, expected) in [(0, None), (1, None), (77, Some(GUARDED))] {
        program(host, "rpm-ostree", &format!("test \"$*\" = 'status --pending-exit-77' && exit {code}"));
        assert_eq!(guards_after(host, "baton-reboot.service").as_deref(), expected, "exit {code}");
    }

    // The delay is from chance, up to a minute.
    let at_once = "[Timer]\nRandomizedDelaySec=0\nAccuracySec=1s\n";
    host.write_unit("baton-adopt.timer.d/at-once.conf", at_once).expect("a drop-in");
    host.must(&["systemctl", "start", "baton-adopt.timer"]).expect("it starts");
    let adopts = wait::until_blocking("the timer to start it", wait::GENEROUS, || {
        let ran = fs::read_to_string(host.path(RAN)).unwrap_or_default();
        if ran.contains("adopt /etc/baton/playbook.yaml\n") { Ok(()) } else { Err(ran) }
    });
    adopts.expect("it is started");
    // It would go on.
    host.must(&["systemctl", "stop", "baton-adopt.timer", "baton-adopt.service"]).expect("they stop");

    host.must(&["systemctl", "enable", "--now", "baton-guard.service"]).expect("it ends at once");
    host.must(&["systemctl", "stop", "baton-guard.service"]).expect("it stops");
    let ran = fs::read_to_string(host.path(RAN)).expect("it ran");
    let both = "guard /etc/baton/playbook.yaml --finish\nguard /etc/baton/playbook.yaml --hand-over\n";
    assert!(ran.ends_with(both), "{ran}");
}

fn is_read_without_a_word(host: &Host) {
    let units = [
        "baton-guard.service",
        "baton-adopt.service",
        "baton-adopt.timer",
        "baton-reboot.service",
        "baton-reboot.timer",
        "apt-daily-upgrade.service",
    ];
    let said = host.run(&[&["systemd-analyze", "verify", "--man=no"][..], &units[..]].concat()).expect("it is up");
    let ours = said.stderr.lines().filter(|line| line.contains("baton"));
    assert_eq!((said.code, ours.count()), (Some(0), 0), "{said:?}");
}

/// The words that the package's own program is given, as apt(8) reads them.
#[test]
fn unattended_upgrades_reboots_no_host_itself() {
    let Some((_network, hosts)) = hosts_or_skip(1) else { return };
    let host = &hosts[0];
    let option = "Unattended-Upgrade::Automatic-Reboot";
    host.write("/etc/apt/apt.conf.d/50unattended-upgrades", format!("{option} \"true\";\n")).expect("written");
    host.write("/etc/apt/apt.conf.d/52baton", shipped("unattended-upgrades/52baton")).expect("written");
    let said = host.must(&["apt-config", "dump", option]).expect("it is read");
    assert_eq!(said.trim(), format!("{option} \"false\";"));
}
