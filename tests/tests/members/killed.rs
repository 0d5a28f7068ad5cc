//! Agents that are killed wherever they are, and typed again.

use tests::{
    agent::Agent,
    case::Case,
    newcomers::{Change, data},
    on_both,
    rollout::{Ends as _, LIMIT, all_end},
    system::System,
    wait,
};

on_both! {
    agents_that_are_killed_go_on;
    #[ignore = "slow: a replacement for each happening of one, three minutes"]
    an_agent_that_is_killed_anywhere_goes_on;
}

/// A replacement has fewer happenings than this.
const MOST: usize = 40;

/// Kills it once it has told so many happenings; whether it was still there.
async fn killed_after(agent: Agent, happenings: usize) -> bool {
    let at = wait::until("it to come so far, or to an end", LIMIT, || async {
        let told = agent.events().map_or(0, |events| events.len());
        (told >= happenings || !agent.is_at_work()).then_some(told >= happenings).ok_or_else(|| agent.log())
    });
    let has_come = at.await.expect("it comes so far");
    if let Ok(process) = agent.process() {
        let _ = process.signal(rustix::process::Signal::KILL);
    }
    agent.ends().await;
    has_come
}

/// Once the newcomer is added, once the leaver is about to go, and once the newcomer votes.
async fn agents_that_are_killed_go_on(system: System) {
    let turns = killed_at(system, &[6, 9, 14]).await;
    assert_eq!(turns, Some(3));
}

async fn an_agent_that_is_killed_anywhere_goes_on(system: System) {
    let turns = killed_at(system, &(2..MOST).collect::<Vec<_>>()).await;
    assert!(turns.is_none_or(|turns| turns > 8), "{turns:?}");
}

/// Both hosts' agents, of which one is killed, until none of its happenings is left; how often it was there to be killed.
async fn killed_at(system: System, all: &[usize]) -> Option<usize> {
    let release = system.main_job().0;
    let case = Case::path(system, (release, release), |_| {}).await?;
    let mut newcomers = case.newcomers(1);
    let mut going = case.member(2).clone();
    let mut coming = newcomers.members.remove(0);
    let mut turns = 0;
    for happenings in all.iter().copied() {
        let change: Change = case.replace(&going.name, &coming.name);
        let is_first = happenings % 2 == 0;
        let (killed, other) = if is_first { (&coming, &going) } else { (&going, &coming) };
        let beside = change.start(&case, other);
        let was_there = killed_after(change.start(&case, killed), happenings / 2 + 1).await;
        let again = change.start(&case, killed);
        let ended = all_end([beside, again]).await;
        // The one that was not killed may have ended for want of the other.
        let last = all_end(change.start_all(&case, [killed, other])).await;
        assert!(last.iter().all(|one| one.exit == Some(0)), "{} {}\n{}{}", ended[0], ended[1], last[0], last[1]);
        let listed = case.listed(&case.client(0)).await;
        let is_there = |name: &str| listed.contains(&(name.to_owned(), true));
        assert!(listed.len() == 3 && is_there(&coming.name), "after {happenings} happenings: {listed:?}");
        assert_eq!(case.leftovers().await, Vec::<String>::new());
        assert!(!going.is_running() && !data(&going).exists(), "{} is stopped for good", going.name);
        turns += usize::from(was_there);
        // Whoever comes back begins anew.
        (going, coming) = (coming, going.as_newcomer());
        if !was_there {
            break;
        }
    }
    println!("counted: {system}: killed at {turns} happenings");
    Some(turns)
}
