//! One of three members answers late, or at many addresses, while another is down: that one is started all the same, and
//! judged by what it says itself.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use proto::etcdserverpb::{MemberListResponse, RangeResponse, StatusResponse};
use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    liar::{Call, Liar, Word},
    on_both,
    ports::Ports,
    rollout::Ends as _,
    system::System,
};

on_both! {
    #[ignore = "slow: a member that is dead is started by default"]
    a_member_is_not_put_back_for_what_was_so_before_it_listened;
    a_member_that_is_dead_is_started_whoever_speaks_in_its_name, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Longer than half of `health.timeout`, and shorter than a call may take.
const LATE: Duration = Duration::from_secs(3);
/// How long answers are late.
const A_WHILE: Duration = Duration::from_secs(5);

/// All that it says is said as this member.
fn poses(call: &Call, id: u64) -> Word {
    match call.method.as_str() {
        "Maintenance/Status" => Word::twisted(move |status: &mut StatusResponse| {
            status.header.iter_mut().for_each(|header| header.member_id = id);
        }),
        "KV/Range" => Word::twisted(move |range: &mut RangeResponse| {
            range.header.iter_mut().for_each(|header| header.member_id = id);
        }),
        _ => Word::Truth,
    }
}

/// A list in which this member is at that address.
fn moves(call: &Call, id: u64, url: &str) -> Word {
    let url = url.to_owned();
    match call.method.as_str() {
        "Cluster/MemberList" => Word::twisted(move |list: &mut MemberListResponse| {
            let moved = list.members.iter_mut().filter(|member| member.id == id);
            moved.for_each(|member| member.client_urls = vec![url.clone()]);
        }),
        _ => Word::Truth,
    }
}

/// Two addresses of one liar say where the dead one is, and one of them that it is that one (I-10).
async fn a_member_that_is_dead_is_started_whoever_speaks_in_its_name(system: System) {
    let leased = Ports::lease(4).expect("ports");
    let ports = leased.numbers.clone();
    let Some(case) = Case::advertised_at(system, &ports[..3]).await else { return };
    let case = case.strategy(&["join_window: 1s", "health: { timeout: 5s }", "on_failure: stop"]);
    let members = case.client(0).members().await.expect("a list");
    let dead = members.iter().find(|member| member.name == case.layout().members[1].name).expect("listed").id;
    let url = format!("http://127.0.0.1:{}", ports[3]);
    let mut doors = Vec::new();
    for (index, port) in ports[..3].iter().enumerate() {
        let url = url.clone();
        let word = move |call: &Call| if index == 0 { moves(call, dead, &url) } else { Word::Truth };
        doors.push(Liar::start(*port, case.member(index).client_port, word).await.expect("it listens"));
    }
    let word = move |call: &Call| match poses(call, dead) {
        Word::Truth => moves(call, dead, &url),
        posing => posing,
    };
    doors.push(Liar::start(ports[3], case.member(0).client_port, word).await.expect("it listens"));
    case.layout().make_leader(case.member(0)).await.expect("it leads");
    case.member(1).end(Signal::KILL).expect("ended");
    let agent = Agent::start("run", &case.write()[1], &[]).expect("started").ends().await;
    assert!(case.member(1).process().is_some(), "it was left down: {agent}");
}

/// The look in which its new binary did not listen yet is drawn out beyond `health.timeout`.
async fn a_member_is_not_put_back_for_what_was_so_before_it_listened(system: System) {
    let leased = Ports::lease(3).expect("ports");
    let Some(case) = Case::advertised_at(system, &leased.numbers).await else { return };
    let case = case.strategy(&["join_window: 1s", "health: { timeout: 4s }"]);
    let since = Arc::<OnceLock<Instant>>::default();
    let before = case.member(1).process().expect("up").pid;
    let mut doors = Vec::new();
    for (index, port) in leased.numbers.iter().enumerate() {
        let (member, since) = (case.member(1).clone(), since.clone());
        let is_another = move || member.process().is_some_and(|process| process.pid != before);
        let word = move |call: &Call| match call.method.as_str() {
            "Maintenance/Status" | "KV/Range" if index == 0 && (since.get().is_some() || is_another()) => {
                match since.get_or_init(Instant::now).elapsed() < A_WHILE {
                    true => Word::Late(LATE),
                    false => Word::Truth,
                }
            }
            _ => Word::Truth,
        };
        doors.push(Liar::start(*port, case.member(index).client_port, word).await.expect("it listens"));
    }
    let rollout = case.begin().await;
    let agent = rollout.one("run", 1).await;
    assert!(since.get().is_some(), "nobody asked the late one meanwhile: {agent}");
    agent.must_be(0, "partial");
    rollout.end(1).await;
}
