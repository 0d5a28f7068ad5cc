//! More voters, and fewer.

use rustix::process::Signal;
use tests::{
    case::Case,
    cluster::Spec,
    ended::all_must_be,
    newcomers::{aside, data, until_told},
    on_both,
    rollout::{Ends as _, all_end},
    system::System,
};

on_both! {
    three_become_five_and_three_again;
    one_becomes_three, etcd #[ignore = "slow: the node's row shows the same"];
    a_second_newcomer_votes_while_the_first_is_a_learner_yet, etcd #[ignore = "slow: the node's row shows the same"];
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

    // All hosts at once; those that have nothing to do wait until all is done, or come to see it only then.
    let up = case.scale(&["m1", "m2", "m3", "m4", "m5"]).everybody_comes();
    let everybody = newcomers.members.iter().chain(&case.layout().members);
    let ended = all_end(up.start_all(case, everybody)).await;
    let (joined, others) = ended.split_at(newcomers.members.len());
    all_must_be(joined, 0, "done");
    for other in others {
        let is_late = other.said("reason") == "nothing_to_do";
        other.must_be(0, if is_late { "nothing_to_do" } else { "done" });
    }
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m3", "m4", "m5"]));
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    // The same once more changes nothing.
    all_must_be(&all_end([up.start(case, &newcomers.members[0])]).await, 0, "nothing_to_do");

    let down = case.scale(&["m1", "m2", "m3"]).everybody_comes();
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

/// One learner at a time is what members and playbooks take where nobody says otherwise.
async fn a_second_newcomer_votes_while_the_first_is_a_learner_yet(system: System) {
    let two = || "--max-learners=2".to_owned();
    let more = |spec: &mut Spec| spec.flags.push(two());
    let Some(case) = Case::path(system, ("3.6", "3.6"), more).await else { return };
    let mut newcomers = case.newcomers(2);
    // A newcomer of etcd's that lacks it ends at once.
    newcomers.members.iter_mut().for_each(|newcomer| newcomer.flags.push(two()));
    let [first, second] = [&newcomers.members[0], &newcomers.members[1]];
    let up = || case.scale(&["m1", "m2", "m3", "m4", "m5"]);
    let agent = up().start(&case, first);
    until_told(&agent, "newcomer_added").await;
    agent.process().expect("it runs").signal(Signal::KILL).expect("killed");
    agent.ends().await;
    first.end(Signal::KILL).expect("ended");

    assert_eq!(up().start(&case, second).ends().await.exit, Some(3), "there is no place for it");
    up().strategy(&["max_learners: 2"]).start(&case, second).ends().await.must_be(0, "partial");
    let listed = case.listed(&case.client(0)).await;
    assert!(listed.contains(&("m5".to_owned(), true)), "{listed:?}");
    assert_eq!(listed.iter().filter(|(_, votes)| !votes).count(), 1, "{listed:?}");
}
