//! A host that is gone for good, and the one whose member takes its member's place.

use tests::{machine::Host, system::System, wait};
use tokio::task::block_in_place;

use crate::{
    fleet::{Fleet, LIMIT, PLAYBOOK, UNIT, member, unit},
    run::Run,
};

/// The agent gives its unit who the members are by a file of its own.
const NEWCOMER: &str = "EnvironmentFile=-/var/lib/baton/fleet/nodes/m4.env\nRestart=always\nRestartSec=2";

fn playbook(fleet: &Fleet, host: &Host, replaced: &str) -> String {
    format!(
        "apiVersion: baton/v1\nkind: Replace\nreplace: {{ member: {replaced}, by: m4 }}\n\
         cluster: {{ name: fleet, endpoints: {:?} }}\nnodes:\n  - name: m4\n    binary: /opt/member/current\n    \
         runtime: {{ kind: systemd, unit: {UNIT} }}\n    peer_urls: [\"http://{}:2380\"]\n    \
         data_dir: /var/lib/member\nstrategy: {{ soak: 0s, join_window: 2s }}\n",
        fleet.layout.endpoints(),
        host.address(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_lost_its_power_for_good_is_replaced_by_another() {
    let beside = Fleet::beside_others(System::Etcd, ("3.6", "3.6"), (3, 1), "Restart=always\nRestartSec=2").await;
    let Some((fleet, others)) = beside else { return };
    let (host, newcomer) = (&others[0], member(System::Etcd, &others[0]));
    fleet.install(host);
    // A unit that does not read that file.
    host.write_unit(UNIT, &unit(&newcomer, host, &[], "Restart=always\nRestartSec=2")).expect("a unit");
    let name = fleet.layout.leader().await.expect("a leader").name.clone();
    let dead = fleet.layout.members.iter().position(|member| member.name == name).expect("one of them");
    host.write(PLAYBOOK, playbook(&fleet, host, &name)).expect("written");
    block_in_place(|| fleet.hosts[dead].crash()).expect("no power");

    let ended = Run::start(host, &["agent", "run", PLAYBOOK]).ended().await;
    assert_eq!((ended.exit, ended.reason()), (Some(1), "not_joined"), "{ended}");
    let file = "EnvironmentFile=/var/lib/baton/fleet/nodes/m4.env";
    assert!(ended.message().contains(file) && ended.message().contains("began as member"), "{ended}");
    host.write_unit(UNIT, &unit(&newcomer, host, &[], NEWCOMER)).expect("a unit");
    let ended = Run::start(host, &["agent", "run", PLAYBOOK]).ended().await;
    assert_eq!((ended.exit, ended.reason()), (Some(0), "done"), "{ended}");
    let own = fleet.layout.client(&newcomer).expect("a client");
    let mut listed: Vec<_> =
        own.members().await.expect("a list").into_iter().map(|one| (one.name, one.is_learner)).collect();
    listed.sort();
    let stay = fleet.layout.members.iter().filter(|member| member.name != name).map(|member| member.name.clone());
    let wanted: Vec<_> = stay.chain(["m4".to_owned()]).map(|name| (name, false)).collect();
    assert_eq!(listed, wanted);
    // It is its systemd's from now on: what it was told at its first start it needs no more.
    host.must(&["rm", "/var/lib/baton/fleet/nodes/m4.env"]).expect("done");
    host.must(&["systemctl", "restart", UNIT]).expect("done");
    let serves = wait::until("it to serve", LIMIT, || async { own.get("ready").await.map_err(|s| s.to_string()) });
    serves.await.expect("it serves");
}
