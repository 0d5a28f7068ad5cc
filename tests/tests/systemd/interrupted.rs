//! The agent dies, or its host does, while a unit is stopped or started; then the same command.

use std::{fs, thread};

use rustix::process::Signal;
use tests::{on_both, system::System};

use crate::{
    fleet::{Fleet, HOLD_START, HOLD_STOP},
    run::all_end,
};

on_both! {
    #[ignore = "slow: a host that crashes while its unit stops shows more"]
    an_agent_killed_while_its_unit_stops;
    #[ignore = "slow: more than a minute; a host that crashes while its unit stops shows more by default"]
    an_agent_killed_while_its_unit_starts;
    #[ignore = "slow: a host that crashes there shows more"]
    a_host_rebooted_while_its_unit_stops;
    #[ignore = "slow: a host that crashes there shows more"]
    a_host_rebooted_while_its_unit_starts;
    a_host_that_crashes_while_its_unit_stops, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: one that crashes while its unit stops shows the same"]
    a_host_that_crashes_while_its_unit_starts;
}

#[derive(Clone, Copy)]
enum Blow {
    Kill,
    Reboot,
    Crash,
}

/// The first host's step is held where the file holds it, its agent or the host ended, and the same command given again.
async fn is_finished_after(system: System, blow: Blow, (hold, sub): (&str, &str)) {
    let Some(fleet) = Fleet::of(system).await else { return };
    let (host, watched) = (&fleet.hosts[0], fleet.begin().await);
    host.write(hold, "").expect("written");
    let first = fleet.start("run", 0);
    let others = [fleet.start("run", 1), fleet.start("run", 2)];
    fleet.until_it_is(host, sub).await;
    let let_go = || fs::remove_file(host.path(hold)).expect("removed");
    match blow {
        Blow::Kill => {
            first.signal(Signal::KILL);
            assert_eq!(first.ended().await.signal, Some(9));
            let_go();
        }
        Blow::Crash => {
            host.crash().expect("a crash");
            drop(first);
            let_go();
            host.boot().expect("a boot");
        }
        // In order, systemd waits for what the unit does last.
        Blow::Reboot => {
            thread::scope(|scope| {
                let off = scope.spawn(|| host.power_off().expect("down in order"));
                let_go();
                off.join().expect("down in order");
            });
            drop(first);
            host.boot().expect("a boot");
        }
    }
    fleet.one("run", 0).await.must_succeed();
    all_end(others).await.iter().for_each(|other| other.must_succeed());
    fleet.arrived().await;
    watched.end(1).await;
}

const STOPPING: (&str, &str) = (HOLD_STOP, "stop-post");
const STARTING: (&str, &str) = (HOLD_START, "start-pre");

async fn an_agent_killed_while_its_unit_stops(system: System) {
    is_finished_after(system, Blow::Kill, STOPPING).await;
}

async fn an_agent_killed_while_its_unit_starts(system: System) {
    is_finished_after(system, Blow::Kill, STARTING).await;
}

async fn a_host_rebooted_while_its_unit_stops(system: System) {
    is_finished_after(system, Blow::Reboot, STOPPING).await;
}

async fn a_host_rebooted_while_its_unit_starts(system: System) {
    is_finished_after(system, Blow::Reboot, STARTING).await;
}

async fn a_host_that_crashes_while_its_unit_stops(system: System) {
    is_finished_after(system, Blow::Crash, STOPPING).await;
}

async fn a_host_that_crashes_while_its_unit_starts(system: System) {
    is_finished_after(system, Blow::Crash, STARTING).await;
}
