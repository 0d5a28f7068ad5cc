//! What clients see of hosts that reboot, beside the bare loop: `scripts/bench-guard`. A measurement, and so no test by default.

use std::{env, time::Duration};

use tests::{
    client::Access,
    spread::{median, spread},
    workload::{Load, Workload},
};

use super::{GUARD_UNIT, fleet, guard_as_service, reboot, reboots, until_lock_is};
use crate::fleet::Fleet;

/// How often each way is taken; `BATON_ROUNDS` says otherwise.
const ROUNDS: usize = 3;
/// A way under guard, of the bare loop.
const GOAL: f64 = 1.5;

/// Clients write and read all the time. The longest time between two acknowledged writes, in milliseconds.
async fn longest_gap(fleet: &Fleet, reboots: impl AsyncFnOnce(&Fleet)) -> f64 {
    let workload = Workload::start(&fleet.layout.endpoints(), &Access::default(), &Load::default()).expect("clients");
    workload.more(64).await.expect("clients that get answers");
    reboots(fleet).await;
    workload.more(64).await.expect("clients that get answers");
    let outcome = workload.finish().expect("clients that live");
    let gap = outcome.longest_write_gap;
    let verified = outcome.verify(&fleet.layout.endpoints(), &Access::default()).await.expect("a last look");
    assert!(verified.lost.is_empty(), "lost: {:?}", verified.lost);
    gap.as_secs_f64() * 1e3
}

/// What is typed without Baton: each host in turn, the next once its member serves again. The unit that hands leadership over before
/// any shutdown is switched off.
async fn bare_loop(fleet: &Fleet) {
    for host in &fleet.hosts {
        host.must(&["systemctl", "disable", "--now", GUARD_UNIT]).expect("off");
        host.must(&["systemctl", "--no-block", "reboot"]).expect("it goes");
        reboots(host);
        fleet.serves().await;
        host.must(&["systemctl", "enable", "--now", GUARD_UNIT]).expect("on");
    }
}

async fn one_by_one(fleet: &Fleet) {
    for host in &fleet.hosts {
        guard_as_service(host, &["--", "reboot"]);
        reboots(host);
        until_lock_is(fleet, None).await;
        fleet.serves().await;
    }
}

async fn at_once(fleet: &Fleet) {
    let (boots, _) = reboot::all_at_once(fleet).await;
    assert!(boots.iter().all(|boots| *boots == 1), "{boots:?}");
}

#[ignore = "slow: a measurement (scripts/bench-guard), six minutes"]
#[tokio::test(flavor = "multi_thread")]
async fn what_clients_see_of_hosts_that_reboot() {
    let Some(fleet) = fleet().await else { return };
    let rounds = env::var("BATON_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let mut gaps = [const { Vec::new() }; 3];
    for round in 0..rounds {
        // A member that starts reads all that it has, and the disk and processor that it takes are what clients feel most: the more
        // has been written, the longer. So no way is always the first.
        for at in 0..gaps.len() {
            let way = (round + at) % gaps.len();
            // Whoever led before, a round begins alike.
            fleet.layout.make_leader(&fleet.layout.members[0]).await.expect("it leads");
            tokio::time::sleep(Duration::from_secs(2)).await;
            gaps[way].push(match way {
                0 => longest_gap(&fleet, bare_loop).await,
                1 => longest_gap(&fleet, one_by_one).await,
                _ => longest_gap(&fleet, at_once).await,
            });
        }
    }
    println!("{rounds} rounds of three hosts each; longest time between two acknowledged writes, ms, median (min–max)");
    let of_bare = median(gaps[0].clone());
    for (way, gaps) in ["bare loop", "under guard, in turn", "under guard, all at once"].into_iter().zip(gaps) {
        println!("{way}, round by round: {gaps:?}");
        let ratio = median(gaps.clone()) / of_bare;
        let verdict = if ratio <= GOAL { "reached" } else { "missed" };
        println!("| {way} | {} | {ratio:.2} (goal {GOAL}: {verdict}) |", spread(gaps));
    }
}
