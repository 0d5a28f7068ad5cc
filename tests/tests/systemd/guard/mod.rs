//! `agent guard` and the unit that goes with it: hosts that reboot in turn, late, at once, and with nobody's leave; and what is
//! left of a guarded command when its guard, or its host, is gone.
//!
//! With etcd alone: of a member a guard wants what every etcd has. Judged by what the cluster and the hosts show.

mod command;
mod gap;
mod reboot;

use std::{fs, path::Path, time::Duration};

use serde_json::Value;
use tests::{machine::Host, system::System, wait};
use tokio::task::block_in_place;

use crate::{
    fleet::{Fleet, LIMIT, UNIT},
    run::Run,
};

/// The shipped unit's own path.
const PLAYBOOK: &str = "/etc/baton/playbook.yaml";
const GUARD_UNIT: &str = "baton-guard.service";
const LOCK: &str = "/baton/step";

/// Three hosts with members of one release, and the shipped unit.
async fn fleet() -> Option<Fleet> {
    let fleet = Fleet::along(System::Etcd, ("3.6", "3.6"), 3, "Restart=always\nRestartSec=2").await?;
    for index in 0..fleet.hosts.len() {
        let host = &fleet.hosts[index];
        host.write(PLAYBOOK, playbook(&fleet, index)).expect("written");
        host.write_unit(GUARD_UNIT, &shipped()).expect("a unit");
        host.must(&["systemctl", "enable", "--now", GUARD_UNIT]).expect("a unit that is enabled, and ends at once");
    }
    Some(fleet)
}

/// The file as it is shipped, for the members' unit.
fn shipped() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/systemd").join(GUARD_UNIT);
    fs::read_to_string(file).expect("it is shipped").replace("etcd.service", UNIT)
}

fn playbook(fleet: &Fleet, index: usize) -> String {
    format!(
        "apiVersion: baton/v1\nkind: Restart\nrestart: {{ id: none }}\ncluster: {{ name: fleet, endpoints: {:?} }}\n\
         nodes: [{{ name: {}, runtime: {{ kind: systemd, unit: {UNIT} }} }}]\nstrategy: {{ soak: 0s }}\n",
        fleet.layout.endpoints(),
        fleet.layout.members[index].name,
    )
}

/// `agent guard` by hand, with more words.
fn guard(host: &Host, words: &[&str]) -> Run {
    Run::begin(host, &[&["agent", "guard", PLAYBOOK, "--output", "json"], words].concat())
}

/// `agent guard` as a service of the host's own, as a timer starts one: it gets the signals of a shutdown when others do.
fn guard_as_service(host: &Host, words: &[&str]) {
    let run = ["systemd-run", "--quiet", "--collect", "--unit=guarded", "agent", "guard", PLAYBOOK];
    host.must(&[&run[..], words].concat()).expect("a service");
}

/// The host whose lock stands, `None` where nobody answers.
async fn lock(fleet: &Fleet) -> Option<Option<String>> {
    for index in 0..fleet.hosts.len() {
        let client = fleet.client(index);
        if let Ok(Ok(found)) = tokio::time::timeout(Duration::from_secs(1), client.get(LOCK)).await {
            return Some(found.map(|found| {
                let lock: Value = serde_json::from_slice(&found.value).expect("a lock");
                lock["host_name"].as_str().expect("a host").to_owned()
            }));
        }
    }
    None
}

/// Waits until this host's lock stands, or none does.
async fn until_lock_is(fleet: &Fleet, wanted: Option<&str>) {
    let what = format!("the lock to be {wanted:?}");
    let is = wait::until(&what, LIMIT, || async {
        match lock(fleet).await {
            Some(found) if found.as_deref() == wanted => Ok(()),
            found => Err(format!("it is {found:?}")),
        }
    });
    let is = is.await;
    assert!(is.is_ok(), "{is:?}: {}", fleet.hosts.iter().map(last_words).collect::<String>());
}

/// With this the host's journal outlives its boot.
fn keep_journal(host: &Host) {
    host.must(&["mkdir", "-p", "/var/log/journal"]).expect("a folder");
    host.must(&["journalctl", "--flush"]).expect("a journal on disk");
}

/// What these units, and systemd of them, said in the boot before.
fn said_before(host: &Host, units: &[&str]) -> String {
    let units: Vec<_> = units.iter().flat_map(|unit| ["-u", unit]).collect();
    host.must(&[&["journalctl", "-b", "-1", "--no-pager", "-o", "cat"], &units[..]].concat()).expect("a journal")
}

/// What the agents of a host said last.
fn last_words(host: &Host) -> String {
    let said = host.run(&["journalctl", "-u", GUARD_UNIT, "-u", "guarded", "-n", "12", "--no-pager", "-o", "cat"]);
    format!("\n{}: {}", host.name, said.map_or_else(|error| error.to_string(), |said| said.stdout))
}

fn boot_id(host: &Host) -> String {
    host.must(&["cat", "/proc/sys/kernel/random/boot_id"]).expect("it is up")
}

/// Once the host has gone down, up again.
fn reboots(host: &Host) {
    block_in_place(|| {
        host.went_down(LIMIT).expect("down");
        host.boot().expect("a boot");
    });
}

/// What the host's unit is: it is active from its ExecStart= on.
async fn until_unit_is(host: &Host, wanted: &str) {
    let what = format!("{GUARD_UNIT} of {} to be {wanted}", host.name);
    let is = wait::until(&what, LIMIT, || async {
        let show = ["systemctl", "show", "-p", "ActiveState", "--value", GUARD_UNIT];
        match host.run(&show).map(|said| said.stdout.trim().to_owned()) {
            Ok(state) if state == wanted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    let is = is.await;
    assert!(is.is_ok(), "{is:?}: {}", last_words(host));
}
