//! The main job by systemd, and the way down, with an agent on every host at once.

use tests::{ended::all_must_be, on_both, system::System};

use crate::fleet::Fleet;

on_both! {
    agents_on_three_hosts_upgrade_members_that_are_units;
    #[ignore = "slow: units go up by a minor by default"]
    members_that_are_units_go_down_by_a_minor;
}

async fn agents_on_three_hosts_upgrade_members_that_are_units(system: System) {
    let Some(fleet) = Fleet::of(system).await else { return };
    let before = fleet.pids();
    let planned = fleet.one("plan", 0).await;
    planned.must_be(0, "planned");
    assert!(planned.unadvised_warnings().is_empty(), "{planned}");
    assert_eq!(fleet.pids(), before);

    all_arrive(&fleet).await;
    let after = fleet.pids();
    all_must_be(&fleet.all().await, 0, "nothing_to_do");
    assert_eq!(fleet.pids(), after);
}

async fn members_that_are_units_go_down_by_a_minor(system: System) {
    let usual = "Restart=always\nRestartSec=2";
    let Some(fleet) = Fleet::along(system, ("3.6", "3.5"), 3, usual).await else { return };
    all_arrive(&fleet).await;
}

/// Agents on all hosts at once bring every member there, under load.
async fn all_arrive(fleet: &Fleet) {
    let watched = fleet.begin().await;
    all_must_be(&fleet.all().await, 0, "done");
    fleet.arrived().await;
    watched.end(1).await;
    // What Restart= is for never came to pass.
    let counts: Vec<_> = fleet.hosts.iter().map(|host| fleet.property(host, "NRestarts")).collect();
    assert_eq!(counts, ["0", "0", "0"]);
}
