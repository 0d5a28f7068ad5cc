//! Real members of both systems, scraped by a real Prometheus: a run, a member that goes down, and a learner that nobody promotes.
//! Each alert fires in the state that it is for, and none in a healthy cluster; each query of the dashboard answers something.

use std::{cell::RefCell, fs, path::Path, time::Duration};

use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    cluster::Member,
    ended::all_must_be,
    etcdctl::Etcdctl,
    on_both,
    ports::Ports,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

use crate::{
    dashboard::queries,
    prometheus::{Prometheus, is_fine, programs_or_skip, shipped},
    textfile::{Exporter, is_left_for_everybody, status},
};

on_both! {
    alerts_fire_in_the_state_that_they_are_for, node #[ignore = "slow: etcd's row shows the same"];
}

/// Longer than any agent waits here.
const RUN: Duration = Duration::from_secs(300);

/// The rules that are shipped. Those about members wait for a few looks, not for half a minute: how long each waits is in
/// rules.test.yml.
fn rules() -> String {
    let rules = fs::read_to_string(shipped("rules.yml")).expect("they are there");
    let (members, runs) = rules.split_once("- name: baton-runs").expect("a group");
    let shorter = |line: &str| match line.trim_start().starts_with("for: ") {
        true => "        for: 3s".to_owned(),
        false => line.to_owned(),
    };
    let members = members.split('\n').map(shorter).collect::<Vec<_>>().join("\n");
    format!("{members}- name: baton-runs{runs}")
}

fn addresses(members: &[&Member]) -> Vec<String> {
    members.iter().map(|member| format!("127.0.0.1:{}", member.client_port)).collect()
}

async fn alerts_fire_in_the_state_that_they_are_for(system: System) {
    let Some(programs) = programs_or_skip() else { return };
    let Some(etcd) = build_or_skip(System::Etcd, "3.5") else { return };
    let Some(case) = Case::path(system, ("3.5", "3.6"), |spec| spec.tls = false).await else { return };
    let playbooks = case.write();
    let members: Vec<&Member> = case.layout().members.iter().collect();
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("baton.prom");

    let prometheus = Prometheus::up(&programs, &rules()).await;
    let (asked, written) = (playbooks[0].clone(), file.clone());
    let by_status = Exporter::serve(move || status(&asked)).await;
    let by_file = Exporter::serve(move || fs::read_to_string(&written).unwrap_or_default()).await;
    let agents = vec![by_status.address.clone(), by_file.address.clone()];
    let scrape = |members: &[&Member]| {
        prometheus.scrape(&[("etcd", "local", addresses(members)), ("node", "local", agents.clone())]);
    };
    scrape(&members);

    let metrics_file = file.to_string_lossy();
    let first = Agent::start("run", &playbooks[0], &["--metrics-file", &metrics_file]).expect("started");
    let second = Agent::start("run", &playbooks[1], &[]).expect("started");
    // They wait for the third: a run that is in hand for as long as it is looked at.
    every_query_answers(&prometheus).await;
    prometheus.wait_for(&["BatonRunInProgress"], &[]).await;
    is_page(&programs, home.path(), &status(&playbooks[0]));
    let third = Agent::start("run", &playbooks[2], &[]).expect("started");
    let mut ended = Vec::new();
    for agent in [first, second, third] {
        ended.push(agent.ended(RUN).await.expect("it ends"));
    }
    all_must_be(&ended, 0, "done");
    let over = ["run_in_progress{cluster=\"local\"} 0", "run_state{cluster=\"local\",state=\"done\"} 1"];
    let over: Vec<_> = over.iter().map(|line| format!("baton_{line}")).collect();
    is_left_for_everybody(&programs, &file, &over.iter().map(String::as_str).collect::<Vec<_>>());
    is_healthy(&prometheus).await;

    members[2].end(Signal::KILL).expect("killed");
    prometheus.wait_for(&["BatonQuorumOneFailureAway", "BatonMemberNotSeen"], &["BatonMembersDiffer"]).await;
    members[2].start().expect("started");
    is_healthy(&prometheus).await;

    let etcdctl = Etcdctl::new(&etcd, None);
    let ports = Ports::lease(2).expect("ports");
    let learner = newcomer(&case, &etcdctl, (ports.numbers[0], ports.numbers[1])).await;
    let not_started = ["BatonLearnerNotStarted", "BatonMembersDiffer", "BatonMemberNotSeen"];
    prometheus.wait_for(&not_started, &["BatonLearnerNotPromoted", "BatonQuorumOneFailureAway"]).await;
    learner.start().expect("started");
    let with_learner = [members[0], members[1], members[2], &learner];
    scrape(&with_learner);
    prometheus.wait_for(&["BatonLearnerNotPromoted"], &not_started).await;
    let endpoints = case.layout().endpoints();
    wait::until("the learner to be promoted", GENEROUS, || async {
        let id = learner_id(&case).await?;
        let output = etcdctl.output(&endpoints, &["member", "promote", &id]).await;
        if output.status.success() { Ok(()) } else { Err(format!("{output:?}")) }
    })
    .await
    .expect("it is");
    is_healthy(&prometheus).await;
}

/// A page that Prometheus' own tool takes.
fn is_page(programs: &Path, home: &Path, page: &str) {
    let file = home.join("page");
    fs::write(&file, page).expect("written");
    is_fine(&programs.join("promtool"), &["check", "metrics"], Some(&file));
}

/// Each query of the dashboard has answered something, once.
async fn every_query_answers(prometheus: &Prometheus) {
    let open = RefCell::new(queries());
    wait::until("every query of the dashboard to answer", RUN, || async {
        let mut silent = Vec::new();
        for (panel, query) in open.take() {
            if prometheus.query(&query).await?.is_empty() {
                silent.push((panel, query));
            }
        }
        let said = format!("{silent:?}");
        let is_done = silent.is_empty();
        open.replace(silent);
        if is_done { Ok(()) } else { Err(said) }
    })
    .await
    .expect("they do");
}

/// For some looks nothing fires or is about to, but what silences others; and all that is scraped is there.
async fn is_healthy(prometheus: &Prometheus) {
    wait::until("no alert", GENEROUS, || async {
        let alerts = prometheus.query("max_over_time(ALERTS{alertname!=\"BatonRunLately\"}[5s])").await?;
        let down = prometheus.query("up == 0").await?;
        if alerts.is_empty() && down.is_empty() { Ok(()) } else { Err(format!("{alerts:?}; down: {down:?}")) }
    })
    .await
    .expect("there is none");
}

/// One that was added as a learner, laid out, and not started.
async fn newcomer(case: &Case, etcdctl: &Etcdctl, (client_port, peer_port): (u16, u16)) -> Member {
    let (name, dir) = ("m4".to_owned(), case.layout().dir.join("m4"));
    let [client_url, peer_url] = [client_port, peer_port].map(|port| format!("http://127.0.0.1:{port}"));
    let arguments = ["member", "add", "m4", "--learner", &format!("--peer-urls={peer_url}")];
    let endpoints = case.layout().endpoints();
    // etcd adds nobody before each member has been connected for five seconds.
    let said = wait::until("the cluster to count as healthy", GENEROUS, || async {
        let output = etcdctl.output(&endpoints, &arguments).await;
        let [said, why] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success() || why.contains("unhealthy cluster"), "{why}");
        if output.status.success() { Ok(said) } else { Err(why) }
    })
    .await
    .expect("it does");
    let list =
        said.lines().find_map(|line| line.strip_prefix("ETCD_INITIAL_CLUSTER=")).expect("it says how to start it");
    let flags = vec![
        format!("--name={name}"),
        format!("--data-dir={}", dir.join("data").display()),
        format!("--listen-client-urls={client_url}"),
        format!("--advertise-client-urls={client_url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster={}", list.trim_matches('"')),
        "--initial-cluster-state=existing".into(),
    ];
    let learner = Member { name, system: case.to.system, dir, client_url, client_port, peer_port, flags };
    fs::create_dir_all(&learner.dir).expect("made");
    learner.install(&case.to).expect("installed");
    learner
}

/// As etcdctl takes it.
async fn learner_id(case: &Case) -> Result<String, String> {
    let members = case.client(0).members().await.map_err(|status| status.to_string())?;
    let learner = members.iter().find(|member| member.is_learner).ok_or("there is none")?;
    Ok(format!("{:x}", learner.id))
}
