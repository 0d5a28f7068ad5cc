//! A new binary that fails, units that make it worse, and members that systemd has given up.

use std::{fs, path::Path};

use tests::{
    ended::Ended,
    on_both,
    sick::{self, Illness},
    system::{Build, System},
};

use crate::{
    fleet::{Fleet, HOLD_STOP, UNIT, Words},
    run::{Run, all_end},
};

on_both! {
    a_new_binary_that_ends_is_put_back_though_systemd_starts_it_again_and_again, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: one that systemd starts again and again shows the same"]
    a_new_binary_that_meets_the_start_limit_is_put_back;
    #[ignore = "slow: one that systemd starts again and again is put back by default"]
    a_new_binary_that_hangs_is_put_back;
    #[ignore = "slow: one that ends shows the same"]
    a_new_binary_that_cannot_be_run_is_put_back;
    #[ignore = "slow: one that systemd starts again and again is put back by default"]
    a_release_that_never_says_that_it_is_ready_is_put_back;
    a_member_that_systemd_has_given_up_is_started_again, etcd #[ignore = "slow: the node's row shows the same"];
    a_member_that_ignores_its_stop_is_killed_where_the_playbook_says_so, etcd #[ignore = "slow: the node's row shows the same"];
    a_unit_that_lost_its_data_is_not_begun_anew, etcd #[ignore = "slow: the node's row shows the same"];
}

/// The first host's new release fails like this. The other two hosts have no agent.
async fn upgrade_to_a_sick_one(system: System, illness: Illness, settings: &str) -> Option<(Fleet, Ended)> {
    let fleet = Fleet::with(system, 3, settings).await?;
    let words =
        Words { strategy: vec!["health: { timeout: 5s }".into(), "join_window: 0s".into()], ..Words::default() };
    fleet.write(0, &words);
    let (host, name) = (&fleet.hosts[0], system.name());
    let healthy = Path::new("/opt/healthy");
    host.install(&fleet.to.executable(), healthy.join(name)).expect("installed");
    let real = Build { bin: healthy.into(), ..fleet.to.clone() };
    let folder = tempfile::tempdir().expect("a folder");
    let sick = sick::make(Path::new(env!("CARGO_BIN_EXE_sick-member")), &real, illness, &folder.path().join(name));
    host.install(&sick.expect("made"), Path::new("/opt/new").join(name)).expect("installed");
    let watched = fleet.begin().await;
    let ended = fleet.one("run", 0).await;
    fleet.serves().await;
    watched.end(1).await;
    Some((fleet, ended))
}

/// The member runs its old release as if nothing had been.
async fn is_put_back(fleet: &Fleet, ended: &Ended, why: &str) {
    ended.must_be(1, "put_back");
    assert!(ended.stderr.contains(why), "{ended}");
    assert_eq!(fleet.releases().await, vec![fleet.from.release.to_string(); 3]);
    assert_eq!(fleet.property(&fleet.hosts[0], "ActiveState"), "active");
}

async fn a_new_binary_that_ends_is_put_back_though_systemd_starts_it_again_and_again(system: System) {
    let storm = "Restart=always\nRestartSec=10ms\n[Unit]\nStartLimitIntervalSec=0";
    let Some((fleet, ended)) = upgrade_to_a_sick_one(system, Illness::Exits, storm).await else { return };
    is_put_back(&fleet, &ended, "").await;
    assert!(ended.warnings().contains("is started again 10ms after each end, without a limit"), "{ended}");
}

async fn a_new_binary_that_meets_the_start_limit_is_put_back(system: System) {
    let limit = "Restart=on-failure\nRestartSec=10ms\n[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=1";
    let Some((fleet, ended)) = upgrade_to_a_sick_one(system, Illness::Exits, limit).await else { return };
    is_put_back(&fleet, &ended, "exit 1").await;
}

async fn a_new_binary_that_hangs_is_put_back(system: System) {
    let Some((fleet, ended)) = upgrade_to_a_sick_one(system, Illness::Hangs, "Restart=always").await else { return };
    is_put_back(&fleet, &ended, "").await;
}

async fn a_new_binary_that_cannot_be_run_is_put_back(system: System) {
    // It may be executed until the member's own start.
    let settings = "Restart=no\nEnvironmentFile=-/etc/member.env\nNoExecPaths=/opt/member/releases\nExecPaths=/opt/member/releases/original";
    let Some(fleet) = Fleet::with(system, 3, settings).await else { return };
    fleet.write(0, &Words { strategy: vec!["join_window: 0s".into()], ..Words::default() });
    let ended = fleet.one("run", 0).await;
    is_put_back(&fleet, &ended, "its program could not be run").await;
}

/// It serves, and systemd would kill it in the end for want of a word.
async fn a_release_that_never_says_that_it_is_ready_is_put_back(system: System) {
    let settings = "Restart=always\nEnvironmentFile=-/etc/member.env";
    let Some(fleet) = Fleet::with(system, 3, settings).await else { return };
    let host = &fleet.hosts[0];
    host.write("/etc/baton/mute.env", "NOTIFY_SOCKET=/run/nobody\n").expect("written");
    host.write("/etc/member.env", "").expect("written");
    let files = format!("files: [{{ path: /etc/member.env, source: mute.env, for: \">={}\" }}]", fleet.to.release);
    let strategy = vec!["health: { timeout: 5s }".into(), "join_window: 0s".into()];
    fleet.write(0, &Words { node: vec![files], strategy });
    let ended = fleet.one("run", 0).await;
    is_put_back(&fleet, &ended, "systemd still starts member.service").await;
}

async fn a_member_that_systemd_has_given_up_is_started_again(system: System) {
    let limit = "Restart=no\n[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=2";
    let Some(fleet) = Fleet::with(system, 3, limit).await else { return };
    let host = &fleet.hosts[0];
    for _ in 0..3 {
        let _ = host.run(&["systemctl", "restart", UNIT]);
    }
    assert_eq!(fleet.property(host, "Result"), "start-limit-hit");
    let runs: Vec<Run> = (0..3).map(|index| fleet.start("run", index)).collect();
    all_end(runs).await.iter().for_each(|ended| ended.must_be(0, "done"));
    fleet.arrived().await;
}

async fn a_member_that_ignores_its_stop_is_killed_where_the_playbook_says_so(system: System) {
    // What a stop sends is nothing to the member.
    let Some(fleet) = Fleet::with(system, 3, "Restart=always\nKillSignal=SIGWINCH\nTimeoutStopSec=3").await else {
        return;
    };
    let node = |kill: bool| Words { node: vec![format!("stop: {{ timeout: 1s, kill: {kill} }}")], ..Words::default() };
    (0..3).for_each(|index| fleet.write(index, &node(false)));
    let ended = fleet.one("run", 0).await;
    ended.must_be(1, "step_failed");
    assert!(
        ended.message().contains("still runs 1s after member.service was told to stop; systemd kills it 3s"),
        "{ended}"
    );

    (0..3).for_each(|index| fleet.write(index, &node(true)));
    let runs: Vec<Run> = (0..3).map(|index| fleet.start("run", index)).collect();
    all_end(runs).await.iter().for_each(|ended| ended.must_succeed());
    fleet.arrived().await;
}

/// Where its data lies its playbook does not say, and its unit does.
async fn a_unit_that_lost_its_data_is_not_begun_anew(system: System) {
    let Some(fleet) = Fleet::of(system).await else { return };
    fleet.write(0, &Words { strategy: vec!["join_window: 0s".into()], ..Words::default() });
    let host = &fleet.hosts[0];
    host.write(HOLD_STOP, "").expect("written");
    let run = fleet.start("run", 0);
    fleet.until_it_is(host, "stop-post").await;
    host.must(&["rm", "-rf", "/var/lib/member"]).expect("gone");
    fs::remove_file(host.path(HOLD_STOP)).expect("removed");
    run.ended().await.must_be(1, "data_gone");
    assert_eq!(fleet.property(host, "ActiveState"), "inactive");
}
