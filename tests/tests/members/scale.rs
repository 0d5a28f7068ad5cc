//! More voters, and fewer.

use tests::{
    case::Case,
    ended::all_must_be,
    newcomers::{aside, data},
    on_both,
    rollout::all_end,
    system::System,
};

on_both! {
    three_become_five_and_three_again;
    one_becomes_three, etcd #[ignore = "slow: the node's row shows the same"];
}

fn voters(names: &[&str]) -> Vec<(String, bool)> {
    names.iter().map(|name| ((*name).to_owned(), true)).collect()
}

async fn three_become_five_and_three_again(system: System) {
    let release = system.main_job().0;
    let Some(case) = Case::path(system, (release, release), |_| {}).await else { return };
    let newcomers = case.newcomers(2);
    let rollout = case.begin().await;
    let case = &*rollout;

    // All hosts at once; those that have nothing to do wait until all is done.
    let up = case.scale(&["m1", "m2", "m3", "m4", "m5"]);
    let everybody = case.layout().members.iter().chain(&newcomers.members);
    all_must_be(&all_end(up.start_all(case, everybody)).await, 0, "done");
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m3", "m4", "m5"]));
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    // The same once more changes nothing.
    all_must_be(&all_end([up.start(case, &newcomers.members[0])]).await, 0, "nothing_to_do");

    let down = case.scale(&["m1", "m2", "m3"]);
    all_must_be(&all_end(down.start_all(case, &newcomers.members)).await, 0, "done");
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m3"]));
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    for member in &newcomers.members {
        assert!(!member.is_running() && !data(member).exists(), "{} is stopped for good", member.name);
        assert_eq!(aside(member).len(), 1, "its data is kept");
    }
    rollout.end(0).await;
}

async fn one_becomes_three(system: System) {
    let release = system.main_job().0;
    let Some(case) = Case::path(system, (release, release), |spec| spec.size = 1).await else { return };
    let newcomers = case.newcomers(2);
    let up = case.scale(&["m1", "m2", "m3"]);
    // One host after the other.
    let first = all_end([up.start(&case, &newcomers.members[0])]).await;
    all_must_be(&first, 0, "partial");
    assert!(first[0].message().contains("m3"), "{}", first[0]);
    all_must_be(&all_end([up.start(&case, &newcomers.members[1])]).await, 0, "done");
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m3"]));

    let down = case.scale(&["m1"]);
    let refused = all_end([down.start(&case, &newcomers.members[0])]).await;
    all_must_be(&refused, 3, "target_refused");
    let down = down.strategy(&["allow_downtime: true"]);
    all_must_be(&all_end(down.start_all(&case, &newcomers.members)).await, 0, "done");
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1"]));
}
