//! A newcomer that does not become a member leaves nothing behind.

use tests::{
    agent::Agent,
    case::Case,
    cluster::Member,
    ended::all_must_be,
    newcomers::{data, until_told},
    on_both,
    ports::Ports,
    rollout::{Ends as _, all_end},
    system::System,
    wait::{self, GENEROUS},
};

on_both! {
    a_newcomer_that_does_not_start_is_taken_back, etcd #[ignore = "slow: the node's row shows the same"];
    a_newcomer_whose_host_is_gone_is_abandoned, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn with_three(system: System) -> Option<Case> {
    let release = system.main_job().0;
    Case::path(system, (release, release), |_| {}).await
}

async fn a_newcomer_that_does_not_start_is_taken_back(system: System) {
    let Some(case) = with_three(system).await else { return };
    let mut newcomers = case.newcomers(2);
    let up = case.scale(&["m1", "m2", "m3", "m4", "m5"]);
    let good = newcomers.members[0].flags.clone();
    // Its arguments are right, and its address is taken.
    newcomers.members[0].flags.push(format!("--listen-client-urls={}", case.member(0).client_url));
    let ended = all_end([up.start(&case, &newcomers.members[0])]).await;
    all_must_be(&ended, 1, "not_joined");
    assert_eq!(case.listed(&case.client(0)).await.len(), 3, "it is listed no more: {}", ended[0]);
    assert_eq!(case.leftovers().await, Vec::<String>::new());
    assert!(!newcomers.members[0].is_running());

    newcomers.members[0].flags = good;
    all_must_be(&all_end(up.start_all(&case, &newcomers.members)).await, 0, "done");
    assert_eq!(case.listed(&case.client(0)).await.len(), 5);
}

/// etcd sends a learner that calls the leader itself whatever it lacks, wherever that listens; as a voter it would keep all later ones out.
#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_that_nobody_reaches_is_not_promoted() {
    let elsewhere = Ports::lease(1).expect("a port");
    let flag = format!("--listen-peer-urls=http://127.0.0.1:{}", elsewhere.numbers[0]);
    is_not_promoted(|newcomer, _| newcomer.flags.push(flag), "nobody answers there").await;
}

/// By another name, so that it cannot be seen in its arguments.
#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_whose_peer_url_leads_to_its_client_port_is_not_promoted() {
    let flag = |newcomer: &Member| format!("--initial-advertise-peer-urls=http://localhost:{}", newcomer.client_port);
    let mistyped = |newcomer: &mut Member, _: &Member| {
        let flag = flag(newcomer);
        newcomer.flags.retain(|flag| !flag.starts_with("--initial-advertise-peer-urls="));
        newcomer.flags.push(flag);
    };
    is_not_promoted(mistyped, "what answers there is no peer port").await;
}

/// Where another member answers, and where nobody says a word.
#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_whose_peer_url_leads_to_somebody_else_is_not_promoted() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = mute.local_addr().expect("its own").port();
    let at = |newcomer: &mut Member, port: u16| {
        newcomer.flags.retain(|flag| !flag.starts_with("--initial-advertise-peer-urls="));
        newcomer.flags.push(format!("--initial-advertise-peer-urls=http://localhost:{port}"));
    };
    is_not_promoted(|newcomer, _| at(newcomer, port), "a connection is taken there, and nothing").await;
    is_not_promoted(|newcomer, other| at(newcomer, other.peer_port), "it leads where another member is reached").await;
}

async fn is_not_promoted(mistyped: impl FnOnce(&mut Member, &Member), words: &str) {
    let Some(case) = with_three(System::Etcd).await else { return };
    let mut newcomers = case.newcomers(1);
    mistyped(&mut newcomers.members[0], case.member(1));
    let words = format!("its peer URL is {}, and as this host sees it, {words}", newcomers.members[0].peer_url());
    let change = case.replace("m1", "m4").everybody_comes();
    let agents = change.start_all(&case, [case.member(0), &newcomers.members[0]]);
    let is_told = wait::until("it to be told", GENEROUS, || {
        let logs: Vec<_> = agents.iter().map(Agent::log).collect();
        std::future::ready(logs.iter().any(|log| log.contains(&words)).then_some(()).ok_or_else(|| logs.join("\n")))
    });
    is_told.await.expect("told");
    let listed = case.listed(&case.client(0)).await;
    assert!(!listed.contains(&("m4".to_owned(), true)) && listed.contains(&("m1".to_owned(), true)), "{listed:?}");
    for agent in &agents {
        agent.process().expect("it runs").signal(rustix::process::Signal::TERM).expect("told to end");
    }
    all_must_be(&all_end(agents).await, 10, "interrupted");
}

async fn a_newcomer_whose_host_is_gone_is_abandoned(system: System) {
    let Some(case) = with_three(system).await else { return };
    let newcomers = case.newcomers(2);
    let up = case.scale(&["m1", "m2", "m3", "m4", "m5"]);
    let gone = up.start(&case, &newcomers.members[0]);
    until_told(&gone, "newcomer_added").await;
    gone.process().expect("it runs").signal(rustix::process::Signal::KILL).expect("killed");
    gone.ends().await;
    let _ = newcomers.members[0].end(rustix::process::Signal::KILL);

    let playbook = up.write(&case, &[&newcomers.members[1]]);
    let abandoned = Agent::start("abandon", &playbook, &["m4", "--yes"]).expect("started").ends().await;
    abandoned.must_be(0, "abandoned");
    let listed = case.listed(&case.client(0)).await;
    assert!(listed.iter().all(|(name, _)| name != "m4" && !name.is_empty()), "{listed:?}");
    assert_eq!(case.leftovers().await.iter().filter(|key| key.contains("newcomers")).count(), 0);

    // It comes back after all, and its old data is put aside.
    all_must_be(&all_end(up.start_all(&case, &newcomers.members)).await, 0, "done");
    assert_eq!(case.listed(&case.client(0)).await.len(), 5);
    assert!(data(&newcomers.members[0]).exists());
}
