//! A run that stands, and others who want something else of the members: another playbook, or a person.

use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    ended::{Ended, all_must_be},
    newcomers::until_told,
    on_both,
    rollout::{Ends as _, LIMIT, all_end},
    system::System,
    wait,
};

on_both! {
    another_scaling_takes_the_place_of_one_that_stands, etcd #[ignore = "slow: the node's row shows the same"];
    a_voter_that_a_person_added_goes_once_it_is_accepted, etcd #[ignore = "slow: the node's row shows the same"];
    one_replacement_waits_for_another, etcd #[ignore = "slow: the node's row shows the same"];
    an_upgrade_waits_for_a_replacement_in_hand, etcd #[ignore = "slow: the node's row shows the same"];
}

fn voters(names: &[&str]) -> Vec<(String, bool)> {
    names.iter().map(|name| ((*name).to_owned(), true)).collect()
}

/// It must have ended so, and named this.
#[track_caller]
fn must_name(ended: &Ended, exit: i32, reason: &str, name: &str) {
    ended.must_be(exit, reason);
    assert!(ended.message().contains(name), "expected `{name}`: {ended}");
}

async fn another_scaling_takes_the_place_of_one_that_stands(system: System) {
    let release = system.main_job().0;
    let Some(case) = Case::path(system, (release, release), |_| {}).await else { return };
    let newcomers = case.newcomers(1);
    let newcomer = &newcomers.members[0];
    let (up, down) = (case.scale(&["m1", "m2", "m3", "m4", "m5"]), case.scale(&["m1", "m2", "m3"]));

    // While one is on its way nobody else would know of it.
    let killed = up.start(&case, newcomer);
    until_told(&killed, "newcomer_added").await;
    killed.process().expect("it runs").signal(Signal::KILL).expect("killed");
    killed.ends().await;
    let before = case.keys().await.remove("run");
    let refused = down.start_with(&case, newcomer, "run", &["--replace"]).ends().await;
    must_name(&refused, 3, "unprepared", "m4 is on its way");
    assert_eq!(case.keys().await.remove("run"), before);

    // It votes now, and the fifth has no host.
    up.start(&case, newcomer).ends().await.must_be(0, "partial");
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m3", "m4"]));
    down.start(&case, newcomer).ends().await.must_be(6, "other_run");
    down.start_with(&case, newcomer, "run", &["--replace"]).ends().await.must_be(0, "done");
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m3"]));
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    assert!(!newcomer.is_running());
}

async fn a_voter_that_a_person_added_goes_once_it_is_accepted(system: System) {
    let release = system.main_job().0;
    let Some(case) = Case::path(system, (release, release), |spec| spec.size = 1).await else { return };
    let newcomers = case.newcomers(3);
    let [first, second, persons] = &newcomers.members[..] else { unreachable!("three were wanted") };
    let up = case.scale(&["m1", "m2", "m3"]);
    up.start(&case, first).ends().await.must_be(0, "partial");
    let persons = case.add_by_hand(persons).await;

    must_name(&up.start(&case, second).ends().await, 3, "foreign_change", "m4");
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m4"]));
    let resumed = up.start_with(&case, second, "resume", &[]).ends().await;
    must_name(&resumed, 0, "partial", "m4");
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m3", "m4"]));
    // Its own host does it.
    all_end([up.start(&case, &persons)]).await.iter().for_each(|ended| ended.must_be(0, "done"));
    assert_eq!(case.listed(&case.client(0)).await, voters(&["m1", "m2", "m3"]));
    assert!(!persons.is_running());
    assert_eq!(case.leftovers().await, Vec::<String>::new());
}

/// Until it says that it waits for another run.
async fn until_it_waits(agent: &Agent) {
    let waits = wait::until("the later run to wait", LIMIT, || async {
        let events = agent.events().map_err(|error| error.to_string())?;
        let is_it = |waits: &String| waits.starts_with("another run to end");
        let waits = events.iter().any(|event| event.waiting_for.as_ref().is_some_and(is_it));
        waits.then_some(()).ok_or_else(|| agent.log())
    });
    waits.await.expect("it waits");
}

/// Of two replacements the second begins once the newcomer of the first votes (L-16).
async fn one_replacement_waits_for_another(system: System) {
    let release = system.main_job().0;
    let Some(case) = Case::path(system, (release, release), |_| {}).await else { return };
    let newcomers = case.newcomers(2);
    let (first, second) = (case.replace("m1", "m4").everybody_comes(), case.replace("m2", "m5").everybody_comes());
    let mut agents = first.start_all(&case, [&newcomers.members[0], case.member(0)]);
    until_told(&agents[0], "member_started").await;
    newcomers.members[0].process().expect("it runs").signal(Signal::STOP).expect("stopped");

    let later = second.start_all(&case, [&newcomers.members[1], case.member(1)]);
    for agent in &later {
        until_it_waits(agent).await;
    }
    // Who waits can be told to end, and holds nothing.
    later[0].process().expect("it runs").signal(Signal::INT).expect("told");
    let mut later = later.into_iter();
    later.next().expect("the newcomer's").ends().await.must_be(10, "interrupted");
    let names = |listed: Vec<(String, bool)>| listed.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let listed = names(case.listed(&case.client(2)).await);
    assert!(!listed.contains(&"m5".to_owned()), "{listed:?}");

    newcomers.members[0].process().expect("it runs").signal(Signal::CONT).expect("goes on");
    agents.extend(later.chain([second.start(&case, &newcomers.members[1])]));
    all_must_be(&all_end(agents).await, 0, "done");
    assert_eq!(case.listed(&case.client(2)).await, voters(&["m3", "m4", "m5"]));
    assert_eq!(case.leftovers().await, Vec::<String>::new());
}

/// Its agent takes no part meanwhile: the replacement must not wait for it in turn.
async fn an_upgrade_waits_for_a_replacement_in_hand(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let newcomers = case.newcomers(1);
    let change = case.replace("m1", "m4").everybody_comes();
    let newcomer = &newcomers.members[0];
    let agents = change.start_all(&case, [newcomer, case.member(0)]);
    until_told(&agents[0], "member_started").await;
    // Whatever it is by now, the replacement waits for it.
    newcomer.process().expect("it runs").signal(Signal::STOP).expect("stopped");

    let upgrade = Agent::start("run", &case.write_one(1, &case.upgrade), &[]).expect("started");
    until_it_waits(&upgrade).await;
    assert_eq!(case.client(1).versions().await.expect("it answers").server, case.from.release.to_string());

    newcomer.process().expect("it runs").signal(Signal::CONT).expect("goes on");
    all_must_be(&all_end(agents).await, 0, "done");
    upgrade.ends().await.must_be(0, "partial");
    assert_eq!(case.client(1).versions().await.expect("it answers").server, case.to.release.to_string());
}
