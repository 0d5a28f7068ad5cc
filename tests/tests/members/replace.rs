//! One member for another.

use std::fs;

use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    cluster::Member,
    ended::all_must_be,
    newcomers::{aside, data, place},
    on_both,
    playbook::Upgrade,
    rollout::all_end,
    system::System,
    wait,
};

on_both! {
    the_leader_is_replaced, etcd #[ignore = "slow: the node's row shows the same"];
    a_dead_member_is_replaced_without_its_host;
    a_host_that_lost_its_disk_brings_its_member_back, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: one of three comes back by default"]
    one_of_five_that_lost_its_disk_comes_back;
    a_step_ends_whose_member_has_lost_its_data, etcd #[ignore = "slow: the node's row shows the same"];
    a_member_comes_back_in_the_middle_of_an_upgrade, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn with_three(system: System) -> Option<Case> {
    with(system, 3).await
}

async fn with(system: System, size: usize) -> Option<Case> {
    let release = system.main_job().1;
    Case::path(system, (release, release), |spec| spec.size = size).await
}

async fn the_leader_is_replaced(system: System) {
    let Some(case) = with_three(system).await else { return };
    leader_is_replaced(case).await;
}

pub async fn leader_is_replaced(case: Case) {
    let newcomers = case.newcomers(1);
    let leader = case.leader().await;
    let name = case.member(leader).name.clone();
    let rollout = case.begin().await;
    let case = &*rollout;
    let newcomer = &newcomers.members[0];
    let change = case.replace(&name, &newcomer.name).everybody_comes();
    let ended = all_end(change.start_all(case, [case.member(leader), newcomer])).await;
    all_must_be(&ended, 0, "done");
    let old = &ended[0].events;
    assert!(old.iter().any(|event| event.event == "handed_over"), "leadership is passed on first: {}", ended[0]);
    let listed = case.listed(&case.client((leader + 1) % 3)).await;
    assert!(listed.contains(&("m4".to_owned(), true)) && listed.len() == 3, "{listed:?}");
    assert!(!case.member(leader).is_running() && aside(case.member(leader)).len() == 1);
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    rollout.end(1).await;
}

async fn a_dead_member_is_replaced_without_its_host(system: System) {
    let Some(case) = with_three(system).await else { return };
    let newcomers = case.newcomers(1);
    let dead = (case.leader().await + 1) % 3;
    let name = case.member(dead).name.clone();
    let rollout = case.begin().await;
    let case = &*rollout;
    case.member(dead).end(Signal::KILL).expect("ended");
    let change = case.replace(&name, "m4");
    let ended = all_end([change.start(case, &newcomers.members[0])]).await;
    all_must_be(&ended, 0, "done");
    let listed = case.listed(&case.client((dead + 1) % 3)).await;
    assert!(listed.iter().all(|(other, votes)| *other != name && *votes) && listed.len() == 3, "{listed:?}");
    // Its host comes back: what runs there is no member, and is stopped for good.
    case.member(dead).start().expect("started");
    all_must_be(&all_end([change.start(case, case.member(dead))]).await, 0, "nothing_to_do");
    assert!(!case.member(dead).is_running() && aside(case.member(dead)).len() == 1);
    rollout.end(1).await;
}

/// With four of five there etcd takes a learner beside the dead, since 3.5.30 and 3.6.11.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_one_of_five_goes_once_its_replacement_has_caught_up() {
    let Some(case) = Case::path(System::Etcd, ("3.6", "3.6"), |spec| spec.size = 5).await else { return };
    let newcomers = case.newcomers(1);
    let dead = (case.leader().await + 1) % 5;
    let name = case.member(dead).name.clone();
    let rollout = case.begin().await;
    let case = &*rollout;
    case.member(dead).end(Signal::KILL).expect("ended");
    let ended = all_end([case.replace(&name, "m6").start(case, &newcomers.members[0])]).await;
    all_must_be(&ended, 0, "done");
    let at = |event: &str| ended[0].events.iter().position(|one| one.event == event);
    let order = ["newcomer_added", "member_started", "member_removed", "member_promoted"].map(at);
    assert!(order.is_sorted() && order[0].is_some(), "{order:?}: {}", ended[0]);
    rollout.end(1).await;
}

async fn a_host_that_lost_its_disk_brings_its_member_back(system: System) {
    brings_its_member_back(system, 3).await;
}

/// Here etcd takes a learner beside the dead member; the address is that one's, and so it goes first all the same.
async fn one_of_five_that_lost_its_disk_comes_back(system: System) {
    brings_its_member_back(system, 5).await;
}

async fn brings_its_member_back(system: System, size: usize) {
    let Some(case) = with(system, size).await else { return };
    let lost = (case.leader().await + 1) % size;
    let member = case.member(lost).as_newcomer();
    let rollout = case.begin().await;
    let case = &*rollout;
    let change = case.replace(&member.name, &member.name);
    // While it is there it is not replaced by itself.
    all_must_be(&all_end([change.start(case, case.member(lost))]).await, 3, "target_refused");
    loses_its_data(case.member(lost));
    is_not_begun_anew(case, case.member(lost)).await;
    let before = case.client((lost + 1) % size).members().await.expect("a list");
    let ended = all_end([change.start(case, &member)]).await;
    all_must_be(&ended, 0, "done");
    let after = case.client((lost + 1) % size).members().await.expect("a list");
    let id = |listed: &[proto::etcdserverpb::Member]| {
        listed.iter().find(|one| one.name == member.name).map(|one| one.id).expect("it is listed")
    };
    assert_ne!(id(&before), id(&after), "an id without its data is burnt");
    assert!(after.iter().all(|one| !one.is_learner) && after.len() == size, "{after:?}");

    // An agent has begun it now, and nobody does once more.
    loses_its_data(&member);
    is_not_begun_anew(case, &member).await;
    all_must_be(&all_end([change.start(case, &member)]).await, 0, "done");
    rollout.end(1).await;
}

/// What is left of it would keep a newcomer from its first start.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_lies_elsewhere_is_put_aside_with_its_data() {
    let Some(case) = with_three(System::Etcd).await else { return };
    let mut newcomers = case.newcomers(1);
    let member = &mut newcomers.members[0];
    let log = member.dir.join("log");
    member.flags.push(format!("--wal-dir={}", log.display()));
    let (m1, m4) = (case.member(0).as_newcomer(), &*member);
    let change = |going: &Member, coming: &Member| {
        let change = case.replace(&going.name, &coming.name).everybody_comes();
        all_end(change.start_all(&case, [going, coming]))
    };
    all_must_be(&change(case.member(0), m4).await, 0, "done");

    // Its log is enough: it goes on where it was.
    loses_its_data(m4);
    all_must_be(&all_end([case.replace("m4", "m4").start(&case, m4)]).await, 3, "target_refused");
    all_must_be(&change(m4, &m1).await, 0, "done");
    let entries = fs::read_dir(&m4.dir).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let names: Vec<_> = entries.filter_map(|name| name.into_string().ok()).collect();
    assert!(!log.exists() && names.iter().any(|name| name.starts_with("log.archived-")), "{names:?}");
    all_must_be(&change(&m1, m4).await, 0, "done");
}

/// No run of another kind starts it, whoever began it: it would come back under an id that has voted, and have forgotten that.
async fn is_not_begun_anew(case: &Case, member: &Member) {
    for verb in ["plan", "run"] {
        let refused = all_end([restart(case, verb, member, &[])]).await;
        all_must_be(&refused, 3, "data_gone");
        assert!(refused[0].said("left").contains(&by_itself(member)), "{}", refused[0]);
    }
    // What a command restarts would begin anew as well.
    let change = case.replace(&member.name, &member.name);
    for more in [&["--check"][..], &["--", "/bin/true"]] {
        all_must_be(&all_end([change.start_with(case, member, "guard", more)]).await, 3, "data_gone");
    }
    assert!(!member.is_running() && !data(member).exists(), "nothing was begun");
}

/// As a supervisor tries it again and again: etcd leaves a database without a log.
async fn is_started_in_vain(member: &Member) {
    member.start().expect("started");
    let ends = wait::until("it to end", wait::GENEROUS, || async {
        match (member.is_running(), data(member).join("member/snap/db").exists()) {
            (false, true) => Ok(()),
            (runs, has_begun) => Err(format!("it runs: {runs}; it has a database: {has_begun}")),
        }
    });
    ends.await.expect("it ends");
}

fn loses_its_data(member: &Member) {
    member.end(Signal::KILL).expect("ended");
    fs::remove_dir_all(data(member)).expect("emptied");
}

/// What is told to bring it back.
fn by_itself(member: &Member) -> String {
    format!("`member: {name}` and `by: {name}`", name = member.name)
}

/// This verb of a restart of this member, with these hooks.
fn restart(case: &Case, verb: &str, member: &Member, hooks: &[String]) -> Agent {
    let id = if hooks.is_empty() { "again" } else { "with hooks" };
    let restart = Upgrade { restart: Some(id.into()), node: place, ..Upgrade::new(case.layout(), &case.from) };
    let extra =
        hooks.iter().flat_map(|hook| ["hooks:".to_owned(), "  before_node:".to_owned(), format!("    - {hook}")]);
    let restart = Upgrade { extra: extra.collect(), ..restart };
    Agent::start(verb, &restart.write_host(case.layout(), &[member]).expect("written"), &[]).expect("started")
}

/// Nobody can bring the step to its end as it was meant. So it ends, and its lock keeps nobody from what helps.
async fn a_step_ends_whose_member_has_lost_its_data(system: System) {
    let Some(case) = with_three(system).await else { return };
    let lost = (case.leader().await + 1) % 3;
    let member = case.member(lost).as_newcomer();
    let rollout = case.begin().await;
    let case = &*rollout;
    let change = case.replace(&member.name, &member.name);
    loses_its_data(case.member(lost));
    if system == System::Etcd {
        is_started_in_vain(case.member(lost)).await;
    }
    all_must_be(&all_end([change.start(case, &member)]).await, 0, "done");

    let folder = data(&member).display().to_string();
    let pid = member.process().expect("it runs").pid.to_string();
    let script = "kill -KILL \"$0\"; rm -r \"$1\"";
    let guard = change.start_with(case, &member, "guard", &["--", "/bin/sh", "-c", script, &pid, &folder]);
    let ended = all_end([guard]).await;
    all_must_be(&ended, 1, "data_gone");
    assert!(ended[0].said("left").contains(&by_itself(&member)), "{}", ended[0]);
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    all_must_be(&all_end([change.start(case, &member)]).await, 0, "done");

    let hook = format!("[\"/bin/rm\", \"-r\", \"{folder}\"]");
    // It serves until somebody stops it, which the agent does not.
    let ended = all_end([restart(case, "run", &member, &[hook])]).await;
    all_must_be(&ended, 1, "step_failed");
    assert!(ended[0].message().contains("the data of ") && member.is_running(), "{}", ended[0]);
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    member.end(Signal::KILL).expect("ended");
    let ended = all_end([change.start_with(case, &member, "run", &["--replace"])]).await;
    all_must_be(&ended, 0, "done");
    rollout.end(1).await;
}

/// The upgrade cannot end without it, and of another release than a voter has it would be refused.
async fn a_member_comes_back_in_the_middle_of_an_upgrade(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let leader = case.leader().await;
    let (first, lost) = ((leader + 1) % 3, (leader + 2) % 3);
    let member = case.member(lost).as_newcomer();
    let rollout = case.begin().await;
    let case = &*rollout;
    all_must_be(&rollout.run([first]).await, 0, "partial");
    loses_its_data(case.member(lost));
    let change = case.replace(&member.name, &member.name);
    all_must_be(&all_end([change.start(case, &member)]).await, 6, "other_run");
    let ended = all_end([change.start_with(case, &member, "run", &["--replace"])]).await;
    all_must_be(&ended, 0, "done");
    let upgrade = Upgrade { node: place, ..Upgrade::new(case.layout(), &case.to) };
    let playbook = upgrade.write_host(case.layout(), &[&member]).expect("written");
    let last = Agent::start("run", &playbook, &[]).expect("started");
    all_must_be(&all_end([rollout.start(leader), last]).await, 0, "done");
    rollout.end(1).await;
}
