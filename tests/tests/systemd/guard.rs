//! `agent guard` and the unit that goes with it: hosts that reboot in turn, late, at once, and with nobody's leave; and what is
//! left of a guarded command when its guard, or its host, is gone.
//!
//! With etcd alone: of a member a guard wants what every etcd has. Judged by what the cluster and the hosts show.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;
use tests::{machine::Host, system::System, wait};
use tokio::{runtime::Handle, task::block_in_place};

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
    if let Err(error) = is.await {
        panic!("{error}: {}", fleet.hosts.iter().map(last_words).collect::<String>());
    }
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
    is.await.unwrap_or_else(|error| panic!("{error}: {}", last_words(host)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_reboots_under_guard_holds_the_lock_until_it_is_back() {
    let Some(fleet) = fleet().await else { return };
    let watched = fleet.begin().await;
    for (index, host) in fleet.hosts.iter().enumerate() {
        let (before, member) = (boot_id(host), &fleet.layout.members[index]);
        fleet.layout.make_leader(member).await.expect("it leads");
        guard_as_service(host, &["--", "reboot"]);
        until_lock_is(&fleet, Some(&host.name)).await;
        assert_ne!(fleet.layout.leader().await.expect("a leader").name, member.name, "it hands over first");
        block_in_place(|| host.went_down(LIMIT)).expect("down");
        until_lock_is(&fleet, Some(&host.name)).await;
        block_in_place(|| host.boot()).expect("a boot");
        until_unit_is(host, "active").await;
        until_lock_is(&fleet, None).await;
        assert_ne!(boot_id(host), before);
        fleet.serves().await;
    }
    watched.end(1).await;
}

/// Boots what has gone down, until told.
fn keep_up(host: &Host, is_over: &AtomicBool) -> usize {
    let mut boots = 0;
    while !is_over.load(Ordering::Relaxed) {
        if host.went_down(Duration::ZERO).is_ok() {
            host.boot().expect("a boot");
            boots += 1;
        }
        thread::sleep(Duration::from_millis(20));
    }
    boots
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hosts_that_want_to_reboot_at_once_go_one_after_the_other() {
    let Some(fleet) = fleet().await else { return };
    let watched = fleet.begin().await;
    let before: Vec<_> = fleet.hosts.iter().map(boot_id).collect();
    let (is_over, runtime) = (AtomicBool::new(false), Handle::current());
    let (boots, most) = block_in_place(|| {
        thread::scope(|scope| {
            let keepers: Vec<_> = fleet.hosts.iter().map(|host| scope.spawn(|| keep_up(host, &is_over))).collect();
            let watcher = scope.spawn(|| most_down(&fleet.hosts, &is_over));
            let ends = thread::Builder::new().spawn_scoped(scope, || {
                fleet.hosts.iter().for_each(|host| guard_as_service(host, &["--wait", "10m", "--", "reboot"]));
                runtime.block_on(all_are_another_boot(&fleet, &before))
            });
            let ended = ends.expect("a thread").join();
            is_over.store(true, Ordering::Relaxed);
            let boots: Vec<_> = keepers.into_iter().map(|keeper| keeper.join().expect("it boots")).collect();
            ended.expect("all reboot");
            (boots, watcher.join().expect("it looks"))
        })
    });
    assert_eq!((boots, most), (vec![1, 1, 1], 1));
    until_lock_is(&fleet, None).await;
    fleet.serves().await;
    watched.end(1).await;
}

/// Waits until each host has booted and ended its step.
async fn all_are_another_boot(fleet: &Fleet, before: &[String]) {
    for (host, before) in fleet.hosts.iter().zip(before) {
        let what = format!("{} to reboot", host.name);
        let rebooted = wait::until(&what, LIMIT, || async {
            match host.run(&["cat", "/proc/sys/kernel/random/boot_id"]) {
                Ok(said) if said.code == Some(0) && said.stdout != *before => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
        if let Err(error) = rebooted.await {
            panic!("{error}: {}", fleet.hosts.iter().map(last_words).collect::<String>());
        }
    }
    until_lock_is(fleet, None).await;
}

/// How many were seen down at once, as two looks in a row have it: one look at all of them takes its time.
fn most_down(hosts: &[Host], is_over: &AtomicBool) -> usize {
    let mut most = 0;
    while !is_over.load(Ordering::Relaxed) {
        let down: Vec<_> = hosts.iter().filter(|host| !host.is_up()).collect();
        most = most.max(match down.len() {
            0 | 1 => down.len(),
            _ => down.into_iter().filter(|host| !host.is_up()).count().max(1),
        });
        thread::sleep(Duration::from_millis(5));
    }
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_that_begins_late_keeps_the_lock_meanwhile() {
    let Some(fleet) = fleet().await else { return };
    let watched = fleet.begin().await;
    // Nothing of systemd's own shows the first; the second is scheduled. logind schedules by the minute.
    let late = ["systemd-run", "--quiet", "--on-active=30", "systemctl", "reboot"];
    for (host, words) in [
        (&fleet.hosts[0], &[&["--reboot", "--"], &late[..]].concat()[..]),
        (&fleet.hosts[1], &["--", "shutdown", "-r", "+1"]),
    ] {
        let before = boot_id(host);
        guard_as_service(host, words);
        until_lock_is(&fleet, Some(&host.name)).await;
        let (mut looks, mut is_up) = (0, true);
        while is_up {
            let found = lock(&fleet).await.flatten();
            is_up = host.is_up();
            assert_eq!(found.as_deref(), Some(&*host.name), "it is up: {is_up}: {}", last_words(host));
            let asked = guard(&fleet.hosts[2], &["--check"]).ended().await;
            match is_up && host.is_up() {
                true => asked.must_be(6, "not_yet"),
                false => break,
            }
            looks += 1;
        }
        println!("{}: {looks} looks before it went down", host.name);
        assert!(looks > 10, "it began at once");
        reboots(host);
        until_lock_is(&fleet, None).await;
        assert_ne!(boot_id(host), before);
        fleet.serves().await;
    }
    watched.end(1).await;
}

/// While this file is there, a guarded command of these tests runs.
const HOLD: &str = "/var/lib/hold-command";
/// It says that it has begun by this file.
const BEGAN: &str = "/var/lib/command-began";
/// Such a command.
const HELD: [&str; 4] =
    ["--", "sh", "-c", "touch /var/lib/command-began; while [ -e /var/lib/hold-command ]; do sleep 0.1; done"];

/// Waits until the host's command has begun under its lock.
async fn until_it_began(fleet: &Fleet, host: &Host) {
    until_lock_is(fleet, Some(&host.name)).await;
    let began = wait::until("the command to begin", LIMIT, || async {
        if host.path(BEGAN).exists() { Ok(()) } else { Err(last_words(host)) }
    });
    began.await.expect("it begins");
    fs::remove_file(host.path(BEGAN)).expect("removed");
}

/// Looks again and again: the host's lock stands, and another host would wait.
async fn lock_stands(fleet: &Fleet, host: &Host, other: &Host) {
    for _ in 0..3 {
        guard(other, &["--check"]).ended().await.must_be(6, "not_yet");
        assert_eq!(lock(fleet).await.flatten().as_deref(), Some(&*host.name));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_is_ended_leaves_the_lock_to_its_command() {
    let Some(fleet) = fleet().await else { return };
    let (host, other) = (&fleet.hosts[0], &fleet.hosts[1]);
    let watched = fleet.begin().await;
    let (once, twice, killed) = (&[Signal::TERM][..], &[Signal::TERM, Signal::TERM][..], &[Signal::KILL][..]);
    for signals in [once, twice, killed] {
        host.write(HOLD, "").expect("written");
        let first = guard(host, &HELD);
        until_it_began(&fleet, host).await;
        for signal in signals {
            first.signal(*signal);
            lock_stands(&fleet, host, other).await;
        }
        // The next agent finds the command at work, and waits for it, too.
        let next = (signals != once).then(|| guard(host, &["--finish"]));
        lock_stands(&fleet, host, other).await;
        fs::remove_file(host.path(HOLD)).expect("removed");
        let ended = first.ended().await;
        match next {
            Some(next) => {
                assert_ne!(ended.exit, Some(0), "{ended}");
                next.ended().await.must_be(0, "guarded");
            }
            None => ended.must_be(0, "guarded"),
        }
        until_lock_is(&fleet, None).await;
    }
    // The members ran all the time.
    watched.end(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_power_cut_in_the_middle_of_a_command_the_unit_ends_its_step() {
    let Some(fleet) = fleet().await else { return };
    let watched = fleet.begin().await;
    let (host, other) = (&fleet.hosts[0], &fleet.hosts[1]);
    host.write(HOLD, "").expect("written");
    guard_as_service(host, &HELD);
    until_it_began(&fleet, host).await;
    block_in_place(|| host.crash()).expect("a crash");
    lock_stands(&fleet, host, other).await;
    block_in_place(|| host.boot()).expect("a boot");
    until_lock_is(&fleet, None).await;
    until_unit_is(host, "active").await;
    fleet.serves().await;

    // All of them at once: nobody finds a quorum at first.
    guard_as_service(host, &HELD);
    until_it_began(&fleet, host).await;
    block_in_place(|| {
        fleet.hosts.iter().for_each(|host| host.crash().expect("a crash"));
        thread::scope(|scope| {
            fleet.hosts.iter().for_each(|host| drop(scope.spawn(|| host.boot().expect("a boot"))));
        });
    });
    until_lock_is(&fleet, None).await;
    for host in &fleet.hosts {
        until_unit_is(host, "active").await;
    }
    fleet.serves().await;
    watched.end(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_host_reboots_without_a_guard_hands_over_before_it_is_stopped() {
    let Some(fleet) = fleet().await else { return };
    let (host, member) = (&fleet.hosts[0], &fleet.layout.members[0]);
    // With this folder the journal outlives the boot.
    host.must(&["mkdir", "-p", "/var/log/journal"]).expect("a folder");
    host.must(&["journalctl", "--flush"]).expect("a journal on disk");
    fleet.layout.make_leader(member).await.expect("it leads");
    let watched = fleet.begin().await;
    host.must(&["systemctl", "--no-block", "reboot"]).expect("it goes");
    reboots(host);
    let units = ["-u", GUARD_UNIT, "-u", UNIT];
    let said =
        host.must(&[&["journalctl", "-b", "-1", "--no-pager", "-o", "cat"], &units[..]].concat()).expect("a journal");
    let (before, after) = said.split_once(&format!("Stopping {UNIT}")).unwrap_or_else(|| panic!("{said}"));
    let leader = &fleet.layout.leader().await.expect("a leader").name;
    let handed = |line: &str| line.starts_with("m1 (") && line.contains(&format!(" passed leadership to {leader} ("));
    assert!(before.lines().any(handed) && !after.contains("passed leadership"), "{leader} leads: {said}");
    assert_eq!(lock(&fleet).await, Some(None), "nobody asked for it");
    until_unit_is(host, "active").await;
    watched.end(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_would_cost_the_quorum_is_not_run() {
    let Some(fleet) = fleet().await else { return };
    let host = &fleet.hosts[0];
    block_in_place(|| fleet.hosts[2].power_off()).expect("off");
    let ran = "/var/lib/ran";
    for words in [&["--check"][..], &["--", "touch", ran], &["--reboot", "--", "touch", ran]] {
        let ended = guard(host, words).ended().await;
        assert_eq!(ended.exit, Some(3), "{ended}");
        assert!(ended.message().contains("m3"), "{ended}");
        assert_eq!(lock(&fleet).await, Some(None));
    }
    assert!(!host.path(ran).exists());
    block_in_place(|| fleet.hosts[2].boot()).expect("a boot");
    fleet.serves().await;
    guard(host, &["--check"]).ended().await.must_be(0, "may_go");
    guard(host, &["--", "touch", ran]).ended().await.must_be(0, "guarded");
    assert!(host.path(ran).exists());
}
