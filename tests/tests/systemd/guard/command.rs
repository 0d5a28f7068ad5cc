//! Guarded commands whose guard or host is gone before they end, and one that is not run.

use std::{fs, path::Path, thread};

use rustix::process::Signal;
use tests::{machine::Host, wait};
use tokio::task::block_in_place;

use super::{fleet, guard, guard_as_service, last_words, lock, until_lock_is, until_unit_is};
use crate::fleet::{Fleet, LIMIT};

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
#[ignore = "slow: a minute and a half; a power cut in the middle of a command is met by default"]
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
    assert_eq!(kured_runs(host, &["touch", ran]), Some(3));
    assert!(!host.path(ran).exists());
    block_in_place(|| fleet.hosts[2].boot()).expect("a boot");
    fleet.serves().await;
    guard(host, &["--check"]).ended().await.must_be(0, "may_go");
    guard(host, &["--", "touch", ran]).ended().await.must_be(0, "guarded");
    assert!(host.path(ran).exists());
    assert_eq!(kured_runs(host, &["touch", "/var/lib/kured-ran"]), Some(0));
    assert!(host.path("/var/lib/kured-ran").exists());
}

/// How the command ends that is shipped for kured, run as kured runs it, with another command and no patience.
fn kured_runs(host: &Host, command: &[&str]) -> Option<i32> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/systemd/kured/kured.yaml");
    let text = fs::read_to_string(file).expect("it is shipped");
    let flag = text.lines().find_map(|line| line.trim().strip_prefix("- --reboot-command=")).expect("a flag");
    let typed = flag.replace(" --wait 1h", "");
    let (guard, _) = typed.split_once(" systemctl reboot").expect("a reboot");
    let entered = ["nsenter", "-m/proc/1/ns/mnt", "--"].into_iter().chain(guard.split(' '));
    host.run(&entered.chain(command.iter().copied()).collect::<Vec<_>>()).expect("it is up").code
}
