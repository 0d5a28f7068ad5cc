//! One of three members lies about the cluster as a whole: it says that a Txn was done which nobody else has heard of, or
//! leaves a member out of the membership and makes one up; and it gives itself a name of which honest lists grow too long.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use prost::Message as _;
use proto::{
    etcdserverpb::{
        MemberListResponse, PutRequest, RangeResponse, ResponseHeader, StatusResponse, TxnRequest, TxnResponse,
        request_op::Request, response_op::Response,
    },
    mvccpb::KeyValue,
};
use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    ended::all_must_be,
    liar::{Call, Liar, Word},
    on_both,
    ports::Ports,
    rollout::Ends as _,
    system::System,
};

on_both! {
    a_member_that_is_dead_is_not_hidden_behind_one_that_is_made_up, etcd #[ignore = "slow: the node's row shows the same"];
    a_member_that_is_down_is_not_said_to_be_removed, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: one that is made up hides nobody by default"]
    a_name_that_is_too_long_hides_nobody_who_is_dead;
    #[ignore = "slow: a member that is down is not said to be removed by default"]
    a_name_that_is_too_long_has_nobody_removed;
    an_address_that_nobody_advertises_answers_for_nobody_who_is_dead, etcd #[ignore = "slow: the node's row shows the same"];
    nor_where_one_member_advertises_anothers_address, etcd #[ignore = "slow: the node's row shows the same"];
    nobody_believes_a_record_that_one_member_alone_shows, etcd #[ignore = "slow: the node's row shows the same"];
    one_member_does_not_answer_for_the_agents_of_all_hosts, etcd #[ignore = "slow: the node's row shows the same"];
}

const BATON: &[u8] = b"/baton/baton";
const STEP: &[u8] = b"/baton/step";

/// What one agent was told that stands, by key.
type Told = BTreeMap<Vec<u8>, KeyValue>;

/// Says yes to whoever takes the baton or puts a record, tells nobody of it, and shows each what it was told.
#[derive(Default)]
struct Flatterer {
    told: Mutex<BTreeMap<u64, Told>>,
    /// The connections over which a record was put.
    records: Mutex<BTreeSet<u64>>,
}

impl Flatterer {
    /// To how many agents it said that their records stand.
    fn records(&self) -> usize {
        self.records.lock().expect("whole").len()
    }

    fn word(&self, call: &Call) -> Word {
        if call.method != "KV/Txn" {
            return Word::Truth;
        }
        let Ok(txn) = TxnRequest::decode(call.message.as_slice()) else { return Word::Truth };
        let puts: Vec<_> = txn.success.iter().filter_map(|op| put(op.request.as_ref()?)).collect();
        let mut told = self.told.lock().expect("whole");
        let told = told.entry(call.connection).or_default();
        let deletes = txn.success.iter().any(
            |op| matches!(&op.request, Some(Request::RequestDeleteRange(delete)) if told.contains_key(&delete.key)),
        );
        if !puts.is_empty() || deletes {
            told.remove(STEP);
            let revision = 1_000_000;
            for put in puts {
                if put.key == STEP {
                    self.records.lock().expect("whole").insert(call.connection);
                }
                let (create_revision, mod_revision) = (revision, revision);
                let kv = KeyValue {
                    key: put.key.clone(),
                    value: put.value.clone(),
                    create_revision,
                    mod_revision,
                    version: 1,
                    lease: put.lease,
                };
                told.insert(put.key, kv);
            }
            // Without a cluster id: that is as good as the right one.
            let header = Some(ResponseHeader { revision, ..Default::default() });
            return Word::Says(TxnResponse { header, succeeded: true, ..Default::default() }.encode_to_vec());
        }
        let told = told.clone();
        Word::twisted(move |answer: &mut TxnResponse| {
            let asked = if answer.succeeded { txn.success } else { txn.failure };
            for (op, response) in asked.into_iter().zip(&mut answer.responses) {
                let (Some(Request::RequestRange(range)), Some(Response::ResponseRange(found))) =
                    (op.request, &mut response.response)
                else {
                    continue;
                };
                if let Some(kv) = told.get(&range.key) {
                    (found.kvs, found.count) = (vec![kv.clone()], 1);
                }
            }
        })
    }
}

fn put(request: &Request) -> Option<PutRequest> {
    match request {
        Request::RequestPut(put) if put.key == BATON || put.key == STEP => Some(put.clone()),
        _ => None,
    }
}

/// Members with doors before them, and which one has the lowest id: agents used to ask that one before any other.
async fn doors(system: System) -> Option<(Case, Vec<u16>, usize, Ports)> {
    let leased = Ports::lease(3).expect("ports");
    let case = Case::advertised_at(system, &leased.numbers).await?.strategy(&["join_window: 2s"]);
    let members = case.client(0).members().await.expect("a list");
    let lowest = members.iter().min_by_key(|member| member.id).map(|member| member.name.clone()).expect("some");
    let lowest = case.layout().members.iter().position(|member| member.name == lowest).expect("one of them");
    Some((case, leased.numbers.clone(), lowest, leased))
}

/// How long somebody is said to be removed.
const LYING: Duration = Duration::from_secs(3);
/// No member has this id.
const GHOST: u64 = 4242;

/// A list in which `left_out` is somebody else, who is at this address; and it claims to know best.
fn hides(call: &Call, left_out: &str, ghost: &str) -> Word {
    let (left_out, ghost) = (left_out.to_owned(), ghost.to_owned());
    match call.method.as_str() {
        "Cluster/MemberList" => Word::twisted(move |list: &mut MemberListResponse| {
            if let Some(member) = list.members.iter_mut().find(|member| member.name == left_out) {
                (member.id, member.client_urls) = (GHOST, vec![ghost]);
            }
        }),
        "Maintenance/Status" => Word::twisted(|status: &mut StatusResponse| status.raft_applied_index = u64::MAX),
        _ => Word::Truth,
    }
}

/// The one who is not there: all that it says is another's, in its own name.
fn haunts(call: &Call, left_out: &str, ghost: &str) -> Word {
    match call.method.as_str() {
        "Maintenance/Status" | "KV/Range" => poses(call, GHOST),
        _ => hides(call, left_out, ghost),
    }
}

/// What it says is true, and said as another member.
fn poses(call: &Call, id: u64) -> Word {
    let named = move |header: &mut Option<ResponseHeader>| header.iter_mut().for_each(|header| header.member_id = id);
    match call.method.as_str() {
        "Cluster/MemberList" => Word::twisted(move |list: &mut MemberListResponse| named(&mut list.header)),
        "Maintenance/Status" => Word::twisted(move |status: &mut StatusResponse| named(&mut status.header)),
        "KV/Range" => Word::twisted(move |range: &mut RangeResponse| named(&mut range.header)),
        _ => Word::Truth,
    }
}

/// A list of an honest member, in which the liar has this name: each member's name is its own to choose.
fn names(call: &Call, liar: &str) -> Word {
    let liar = liar.to_owned();
    match call.method.as_str() {
        "Cluster/MemberList" => Word::twisted(move |list: &mut MemberListResponse| {
            list.members
                .iter_mut()
                .filter(|member| member.name == "m1")
                .for_each(|member| member.name.clone_from(&liar));
        }),
        _ => Word::Truth,
    }
}

/// More bytes than are believed of a name.
fn long_name() -> String {
    "n".repeat(300)
}

async fn a_member_that_is_dead_is_not_hidden_behind_one_that_is_made_up(system: System) {
    nobody_is_hidden(system, "m1".to_owned()).await;
}

async fn a_name_that_is_too_long_hides_nobody_who_is_dead(system: System) {
    nobody_is_hidden(system, long_name()).await;
}

async fn nobody_is_hidden(system: System, liar: String) {
    let leased = Ports::lease(4).expect("ports");
    let ports = leased.numbers.clone();
    let Some(case) = Case::advertised_at(system, &ports[..3]).await else { return };
    let case = case.strategy(&["join_window: 1s", "health: { timeout: 5s }", "stall_timeout: 6s", "on_failure: stop"]);
    let url = format!("http://127.0.0.1:{}", ports[3]);
    let mut doors = Vec::new();
    for (index, port) in ports[..3].iter().enumerate() {
        let (url, liar) = (url.clone(), liar.clone());
        let word = move |call: &Call| if index == 0 { hides(call, "m3", &url) } else { names(call, &liar) };
        doors.push(Liar::start(*port, case.member(index).client_port, word).await.expect("it listens"));
    }
    let haunted = url.clone();
    let word = move |call: &Call| haunts(call, "m3", &haunted);
    doors.push(Liar::start(ports[3], case.member(0).client_port, word).await.expect("it listens"));
    case.layout().make_leader(case.member(0)).await.expect("it leads");
    case.member(2).end(Signal::KILL).expect("ended");
    let before = case.member(1).process().expect("up").pid;
    let agent = Agent::start("run", &case.write()[1], &[]).expect("started").ends().await;
    assert_eq!(case.member(1).process().map(|process| process.pid), Some(before), "{agent}");
    // A slow machine may see that m3 is not ready before it has waited long enough.
    let ended = (agent.exit, agent.said("reason"));
    assert!(matches!(ended, (Some(6), "stalled") | (Some(3), "member_not_ready")), "{ended:?}: {agent}");
    let words = format!("{}, {url} does not list it", case.upgrade.endpoints[0]);
    assert!(agent.warnings().contains("m3: members do not agree") && agent.warnings().contains(&words), "{agent}");
}

/// An endpoint of the playbook that leads to a member which advertises another: a name written otherwise, or what it
/// advertised before.
async fn an_address_that_nobody_advertises_answers_for_nobody_who_is_dead(system: System) {
    let Some(case) = Case::of(system).await else { return };
    nobody_is_impersonated(case, "member_not_ready").await;
}

/// Then nobody but the one who is dead has an address that it alone advertises.
async fn nor_where_one_member_advertises_anothers_address(system: System) {
    let leased = Ports::lease(2).expect("ports");
    let [second, third] = leased.numbers[..] else { return };
    let Some(mut case) = Case::advertised_at(system, &[third, second, third]).await else { return };
    let mut doors = Vec::new();
    for (index, port) in [(1, second), (2, third)] {
        let honest = |_: &Call| Word::Truth;
        doors.push(Liar::start(port, case.member(index).client_port, honest).await.expect("it listens"));
    }
    case.upgrade.endpoints =
        [case.member(0).client_port, second, third].map(|port| format!("http://127.0.0.1:{port}")).into();
    // The liar is reached no more, either.
    nobody_is_impersonated(case, "no_leader").await;
}

/// An endpoint of m1 answers as m2, which is dead: m3 goes on.
async fn nobody_is_impersonated(case: Case, reason: &str) {
    let mut case = case.strategy(&["join_window: 1s"]);
    let leased = Ports::lease(1).expect("a port");
    let members = case.client(0).members().await.expect("a list");
    let dead = members.iter().find(|member| member.name == case.layout().members[1].name).expect("listed").id;
    let word = move |call: &Call| poses(call, dead);
    let _door = Liar::start(leased.numbers[0], case.member(0).client_port, word).await.expect("it listens");
    let url = format!("http://127.0.0.1:{}", leased.numbers[0]);
    case.upgrade.endpoints.insert(0, url.clone());
    case.layout().make_leader(case.member(0)).await.expect("it leads");
    case.member(1).end(Signal::KILL).expect("ended");
    let before = case.member(2).process().expect("up").pid;
    let agent = Agent::start("run", &case.write()[2], &[]).expect("started").ends().await;
    assert_eq!(case.member(2).process().map(|process| process.pid), Some(before), "{agent}");
    agent.must_be(3, reason);
    let words = format!("{url} answers as this member, which does not advertise it");
    assert!(agent.message().contains(&words), "{agent}");
}

async fn a_member_that_is_down_is_not_said_to_be_removed(system: System) {
    nobody_is_removed(system, "m1".to_owned()).await;
}

async fn a_name_that_is_too_long_has_nobody_removed(system: System) {
    nobody_is_removed(system, long_name()).await;
}

/// The lie is told for a while, and begins when the member's process is another; its host ends its step all the same.
async fn nobody_is_removed(system: System, liar: String) {
    let leased = Ports::lease(3).expect("ports");
    let Some(case) = Case::advertised_at(system, &leased.numbers).await else { return };
    let case = case.strategy(&["join_window: 1s"]);
    let since = Arc::<OnceLock<Instant>>::default();
    let before = case.member(1).process().expect("up").pid;
    let mut doors = Vec::new();
    for (index, port) in leased.numbers.iter().enumerate() {
        let (member, since, liar) = (case.member(1).clone(), since.clone(), liar.clone());
        let is_another = move || member.process().is_none_or(|process| process.pid != before);
        let word = move |call: &Call| match (since.get().is_some() || is_another(), index) {
            (true, _) if since.get_or_init(Instant::now).elapsed() > LYING => Word::Truth,
            (true, 0) => hides(call, "m2", "http://127.0.0.1:1"),
            (true, _) => names(call, &liar),
            (false, _) => Word::Truth,
        };
        doors.push(Liar::start(*port, case.member(index).client_port, word).await.expect("it listens"));
    }
    let rollout = case.begin().await;
    let agent = rollout.one("run", 1).await;
    assert!(since.get().is_some(), "nobody asked the liar meanwhile: {agent}");
    agent.must_be(0, "partial");
    rollout.end(1).await;
}

/// Puts honest doors before all members but this one, whose door lies.
async fn at_work(case: &Case, ports: &[u16], liar: usize, lie: &Arc<Flatterer>) -> Vec<Liar> {
    let mut doors = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let lie = (index == liar).then(|| lie.clone());
        let word = move |call: &Call| lie.as_ref().map_or(Word::Truth, |lie| lie.word(call));
        doors.push(Liar::start(*port, case.member(index).client_port, word).await.expect("it listens"));
    }
    doors
}

async fn one_member_does_not_answer_for_the_agents_of_all_hosts(system: System) {
    let Some((case, ports, lowest, _leased)) = doors(system).await else { return };
    let liar = Arc::new(Flatterer::default());
    let _doors = at_work(&case, &ports, lowest, &liar).await;
    let rollout = case.begin().await;
    // The host of the liar takes no part, so the others end without it.
    let ended = rollout.run((0..3).filter(|host| *host != lowest)).await;
    all_must_be(&ended, 0, "partial");
    assert_eq!(liar.records(), 0, "a record was put through the liar alone");
    rollout.end(1).await;
}

/// Even a host's own member is not believed alone.
async fn nobody_believes_a_record_that_one_member_alone_shows(system: System) {
    // On a busy machine the agent may put its record through another member, which answers sooner: that shows nothing.
    let mut tries = 3;
    loop {
        let Some((case, ports, lowest, _leased)) = doors(system).await else { return };
        let liar = Arc::new(Flatterer::default());
        let _doors = at_work(&case, &ports, lowest, &liar).await;
        let rollout = case.begin().await;
        let agent = rollout.start(lowest).ends().await;
        rollout.end(1).await;
        if liar.records() > 0 {
            assert!(agent.warnings().contains("another member does not show it"), "{agent}");
            return agent.must_be(0, "partial");
        }
        tries -= 1;
        assert!(tries > 0, "no record was put through the liar: {agent}");
    }
}
