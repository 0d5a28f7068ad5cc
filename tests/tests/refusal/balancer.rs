//! All members behind one address of a balancer: nobody can be spoken to by itself.

use tests::{balancer::Balancer, on_both, ports::Ports, system::System};

use crate::{case, is_refused, untouched};

on_both! {
    members_behind_one_address, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn members_behind_one_address(system: System) {
    let port = Ports::lease(1).expect("a port");
    let url = format!("http://127.0.0.1:{}", port.numbers[0]);
    // A flag given twice counts as it was given last.
    let advertise = format!("--advertise-client-urls={url}");
    let Some(mut case) = case(system, |spec| spec.flags.push(advertise)).await else { return };
    let members = case.layout().members.iter().map(|member| member.client_port).collect();
    let _balancer = Balancer::start(port.numbers[0], members).await.expect("it listens");
    case.upgrade.endpoints = vec![url.clone()];
    let rollout = case.begin().await;
    // Whoever answers, it is one voice, and no majority of leaders' names.
    is_refused(&rollout, 0..3, (3, "no_leader"), &[&url, "this one needs an address of its own"]).await;
    untouched(rollout).await;
}
