//! The same behind TLS on both ports, by a user of etcd's.

use tests::{case::Case, ended::all_must_be, on_both, roles::Shell, rollout::all_end, system::System};

on_both! {
    the_leader_is_replaced_behind_tls, etcd #[ignore = "slow: with a user, too, it is shown by default"];
}

async fn the_leader_is_replaced_behind_tls(system: System) {
    let release = system.main_job().1;
    let Some(case) = Case::path(system, (release, release), |spec| spec.tls = true).await else { return };
    replaced(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_is_replaced_by_a_user_behind_tls() {
    let path = ("3.6", "3.6");
    let Some(mut case) = Case::path(System::Etcd, path, |spec| spec.tls = true).await else { return };
    let shell = Shell::of(case.layout(), &case.from);
    shell.makes_users();
    case.cluster.layout.user = Some(("root".into(), shell.password("root")));
    case.upgrade.cluster = vec![shell.auth("baton")];
    replaced(case).await;
}

async fn replaced(case: Case) {
    let newcomers = case.newcomers(1);
    let leader = case.leader().await;
    let name = case.member(leader).name.clone();
    let rollout = case.begin().await;
    let case = &*rollout;
    let newcomer = &newcomers.members[0];
    let change = case.replace(&name, &newcomer.name);
    all_must_be(&all_end(change.start_all(case, [case.member(leader), newcomer])).await, 0, "done");
    let listed = case.listed(&case.client((leader + 1) % 3)).await;
    assert!(listed.contains(&("m4".to_owned(), true)) && listed.len() == 3, "{listed:?}");
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    rollout.end(1).await;
}
