//! Hosts that reboot, under guard and without.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use tests::{machine::Host, wait};
use tokio::{runtime::Handle, task::block_in_place};

use super::{
    GUARD_UNIT, boot_id, fleet, guard, guard_as_service, keep_journal, last_words, lock, reboots, said_before,
    until_lock_is, until_unit_is,
};
use crate::fleet::{Fleet, LIMIT, UNIT};

#[ignore = "slow: three boots; three hosts at once do the same by default"]
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_reboots_under_guard_holds_the_lock_until_it_is_back() {
    let Some(fleet) = fleet().await else { return };
    let watched = fleet.begin().await;
    for (index, host) in fleet.hosts.iter().enumerate() {
        let (before, member) = (boot_id(host), &fleet.layout.members[index]);
        keep_journal(host);
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
        // Whoever started it is told of no failure, though the shutdown ended the guard, too.
        let said = said_before(host, &["guarded"]);
        assert!(said.contains("the command has ended, and this host goes down") && !said.contains("error"), "{said}");
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
    assert_eq!(all_at_once(&fleet).await, (vec![1, 1, 1], 1));
    watched.end(1).await;
}

/// Each host reboots under guard, as soon as the others let it; how often each one booted, and how many were down at once.
pub(super) async fn all_at_once(fleet: &Fleet) -> (Vec<usize>, usize) {
    let before: Vec<_> = fleet.hosts.iter().map(boot_id).collect();
    let (is_over, runtime) = (AtomicBool::new(false), Handle::current());
    let done = block_in_place(|| {
        thread::scope(|scope| {
            let keepers: Vec<_> = fleet.hosts.iter().map(|host| scope.spawn(|| keep_up(host, &is_over))).collect();
            let watcher = scope.spawn(|| most_down(&fleet.hosts, &is_over));
            let ends = thread::Builder::new().spawn_scoped(scope, || {
                fleet.hosts.iter().for_each(|host| guard_as_service(host, &["--wait", "10m", "--", "reboot"]));
                runtime.block_on(all_are_another_boot(fleet, &before))
            });
            let ended = ends.expect("a thread").join();
            is_over.store(true, Ordering::Relaxed);
            let boots: Vec<_> = keepers.into_iter().map(|keeper| keeper.join().expect("it boots")).collect();
            ended.expect("all reboot");
            (boots, watcher.join().expect("it looks"))
        })
    });
    until_lock_is(fleet, None).await;
    fleet.serves().await;
    done
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
        let rebooted = rebooted.await;
        assert!(rebooted.is_ok(), "{rebooted:?}: {}", fleet.hosts.iter().map(last_words).collect::<String>());
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

#[ignore = "slow: two minutes until it begins"]
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
            // Other tests want this machine, too.
            tokio::time::sleep(Duration::from_millis(500)).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_host_reboots_without_a_guard_hands_over_before_it_is_stopped() {
    let Some(fleet) = fleet().await else { return };
    let (host, member) = (&fleet.hosts[0], &fleet.layout.members[0]);
    keep_journal(host);
    fleet.layout.make_leader(member).await.expect("it leads");
    let watched = fleet.begin().await;
    host.must(&["systemctl", "--no-block", "reboot"]).expect("it goes");
    reboots(host);
    let said = said_before(host, &[GUARD_UNIT, UNIT]);
    let (before, after) = said.split_once(&format!("Stopping {UNIT}")).unwrap_or_else(|| panic!("{said}"));
    let leader = &fleet.layout.leader().await.expect("a leader").name;
    let handed = |line: &str| line.starts_with("m1 (") && line.contains(&format!(" passed leadership to {leader} ("));
    assert!(before.lines().any(handed) && !after.contains("passed leadership"), "{leader} leads: {said}");
    assert_eq!(lock(&fleet).await, Some(None), "nobody asked for it");
    until_unit_is(host, "active").await;
    watched.end(1).await;
}
