//! Playbooks whose `data_dir` is another member's: no process is stopped for that, and no data moved.

use std::{fs, path::Path};

use tests::{
    agent::Agent,
    case::Case,
    newcomers::{Change, aside, data},
    on_both,
    rollout::Ends as _,
    system::System,
    wait,
};

on_both! {
    a_wrong_data_dir_stops_nobody_and_moves_nothing, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Starts `agent run` on a member's host, with this in the place of that all over its playbook.
fn start(case: &Case, change: &Change, member: &tests::cluster::Member, (that, this): (&str, &str)) -> Agent {
    let playbook = change.write(case, &[member]);
    let text = fs::read_to_string(&playbook).expect("a playbook");
    assert!(text.contains(that), "{text}");
    fs::write(&playbook, text.replace(that, this)).expect("written");
    Agent::start("run", &playbook, &[]).expect("started")
}

async fn a_wrong_data_dir_stops_nobody_and_moves_nothing(system: System) {
    let release = system.main_job().0;
    let Some(case) = Case::path(system, (release, release), |_| {}).await else { return };
    let newcomers = case.newcomers(1);
    let newcomer = &newcomers.members[0];
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let (own, other) = (path(&data(newcomer)), path(&data(case.member(0))));
    let before = case.raft_status().await.members;

    // A member's is that of one that was removed: its own process serves, and the folder is not its own.
    let former = case.add_by_hand(newcomer).await;
    case.remove_by_hand("m4").await;
    let has_ended = wait::until("a removed member to end", wait::GENEROUS, || async {
        (!former.is_running()).then_some(()).ok_or_else(|| former.last_words())
    });
    has_ended.await.expect("it ends by itself");
    let same = case.scale(&["m1", "m2", "m3"]);
    let line = |folder: &str| format!("data_dir: {}", tests::playbook::quoted(folder));
    let wrong = (&*line(&path(&data(case.member(1)))), &*line(&own));
    let ended = start(&case, &same, case.member(1), wrong).ends().await;
    ended.must_be(0, "nothing_to_do");
    assert_eq!(case.raft_status().await.members, before);
    assert!(data(newcomer).exists() && aside(newcomer).is_empty(), "{ended}");

    // A newcomer's is that of a member that serves, in its arguments, too.
    let up = case.scale(&["m1", "m2", "m3", "m4", "m5"]);
    let ended = start(&case, &up, newcomer, (&own, &other)).ends().await;
    ended.must_be(3, "newcomer_unfit");
    assert!(ended.message().contains("of m1"), "{ended}");
    let keys = tests::raft_status::keys(case.layout()).await.expect("the keys");
    assert!(!keys.contains_key("run"), "nothing was touched, and no run stands: {keys:?}");
    assert_eq!(case.raft_status().await.members, before);
    assert!([0, 1].into_iter().all(|at| data(case.member(at)).exists() && aside(case.member(at)).is_empty()));
    assert_eq!(case.listed(&case.client(0)).await.len(), 3);
    assert_eq!(case.leftovers().await, Vec::<String>::new());
}
