//! Whose word counts: a member's own, of this cluster.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use super::{
    ANOTHER, CLUSTER, FAILED_PRECONDITION, INVALID_ARGUMENT, header,
    liar::{Heard, Liar, Reply},
    member, observer, well,
};
use agent::{
    boot_clock,
    observe::{
        access::CALL,
        error::CallError,
        view::{Answer, Member},
    },
    store::{KeepAlive, Lease, NotGranted, Store, TxnAnswer, endpoint::Excluded},
};
use prost::Message as _;
use proto::{
    ClusterId, LeaseId,
    etcdserverpb::{
        LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveResponse, RangeResponse, TxnRequest, TxnResponse,
        kv_client::KvClient, lease_client::LeaseClient,
    },
};
use tokio::net::TcpListener;

/// Some ten thousand years.
const LONG: i64 = 1 << 38;
const TTL: Duration = Duration::from_secs(30);

/// A member that grants and keeps alive for as long as it likes, whatever was asked; `of` is the cluster that says so.
async fn generous(of: u64, kept: i64) -> Liar {
    let inside = well(CLUSTER, 1, vec![member(1, &[])]);
    Liar::new(move |heard: &Heard| match heard.method.as_str() {
        "Lease/LeaseGrant" => {
            let granted = LeaseGrantResponse { header: header(of, 1), id: 7, ttl: LONG, ..Default::default() };
            Reply::Says(granted.encode_to_vec())
        }
        "Lease/LeaseKeepAlive" => {
            Reply::Says(LeaseKeepAliveResponse { header: header(of, 1), id: kept, ttl: LONG }.encode_to_vec())
        }
        "KV/Txn" => {
            Reply::Says(TxnResponse { header: header(of, 1), succeeded: true, ..Default::default() }.encode_to_vec())
        }
        "KV/Range" if of != CLUSTER => {
            Reply::Says(RangeResponse { header: header(of, 1), ..Default::default() }.encode_to_vec())
        }
        _ => inside(heard),
    })
    .await
}

/// Until this has been called so often; the tests' deadline is the runner's.
async fn until_called(liar: &Liar, method: &str, times: usize) {
    while liar.calls(method) < times {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_lives_no_longer_than_was_asked_for() {
    let one = generous(CLUSTER, 7).await;
    let observer = observer(&[&one.url]);
    observer.look().await.unwrap();
    let store = Store::new(&observer, Arc::default());
    let lease = store.grant(LeaseId(7), TTL).await.unwrap();
    assert_eq!(lease.ttl, TTL);
    let kept = KeepAlive::start(observer.access(), lease, Arc::new(Excluded::default())).unwrap();
    until_called(&one, "Lease/LeaseKeepAlive", 2).await;
    assert!(kept.ttl() <= TTL && kept.remaining() <= TTL, "{:?} {:?}", kept.ttl(), kept.remaining());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_lease_or_another_cluster_keeps_nothing_alive() {
    for (of, id) in [(CLUSTER, 8), (ANOTHER, 7)] {
        let one = generous(of, id).await;
        let observer = observer(&[&one.url]);
        observer.look().await.unwrap();
        let asked_at = boot_clock::now();
        let lease = Lease { id: LeaseId(7), ttl: Duration::from_secs(2), asked_at };
        let kept = KeepAlive::start(observer.access(), lease, Arc::new(Excluded::default())).unwrap();
        while boot_clock::now() < asked_at + lease.ttl {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(one.calls("Lease/LeaseKeepAlive") > 0);
        assert_eq!(kept.remaining(), Duration::ZERO, "{of:x} {id}");
    }
}

#[tokio::test]
async fn what_another_cluster_says_of_keys_and_leases_is_not_known() {
    let one = generous(ANOTHER, 7).await;
    let observer = observer(&[&one.url]);
    observer.meet().await.unwrap();
    let store = Store::new(&observer, Arc::default());
    let (read, txn, grant) = tokio::join!(store.read(), store.txn(&[], &[]), store.grant(LeaseId(7), TTL));
    assert!(read.is_err(), "{read:?}");
    assert!(matches!(txn, TxnAnswer::Unknown(_)), "{txn:?}");
    assert!(matches!(grant, Err(NotGranted::Unknown(_))), "{grant:?}");
}

/// A refusal names no cluster. Whoever came to the address since the last answer says first which one is his.
#[tokio::test]
async fn what_another_cluster_refuses_is_not_known() {
    let moved = Arc::<AtomicBool>::default();
    let (own, other) = (well(CLUSTER, 1, vec![member(1, &[])]), well(ANOTHER, 1, vec![member(1, &[])]));
    let is_moved = moved.clone();
    let one = Liar::new(move |heard: &Heard| match (is_moved.load(SeqCst), heard.method.as_str()) {
        (false, _) => own(heard),
        (true, "Lease/LeaseGrant") => Reply::Refuses(FAILED_PRECONDITION, "etcdserver: lease already exists"),
        (true, "KV/Txn") => Reply::Refuses(INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request"),
        (true, _) => other(heard),
    })
    .await;
    let observer = observer(&[&one.url]);
    observer.look().await.unwrap();
    one.hangs_up().await;
    moved.store(true, SeqCst);
    let address = observer.access().directory().routes(None).remove(0);
    let told = observer.access().tell(&address, CALL, TxnRequest::default(), |channel, request| async move {
        KvClient::new(channel).txn(request).await
    });
    let told = told.await;
    assert!(matches!(told, Err(CallError::Foreign(_) | CallError::Broken(_))), "{told:?}");
    let asked = observer.access().ask(&address, LeaseGrantRequest::default(), |channel, request| async move {
        LeaseClient::new(channel).lease_grant(request).await
    });
    let asked = asked.await;
    assert!(matches!(asked, Err(CallError::Foreign(_))), "{asked:?}");
}

#[tokio::test]
async fn nobody_is_asked_whom_another_cluster_names() {
    let third = Liar::new(well(ANOTHER, 3, vec![])).await;
    let stranger = Liar::new(well(ANOTHER, 2, vec![member(2, &[]), member(3, &[&third.url])])).await;
    let one = Liar::new(well(CLUSTER, 1, vec![member(1, &[&stranger.url])])).await;
    let view = observer(&[&one.url]).look().await.unwrap();
    assert_eq!(view.members.len(), 1);
    assert!(!stranger.heard().is_empty());
    assert_eq!(third.heard().len(), 0);
}

/// I-5: what a member is, is believed only from itself.
#[tokio::test]
async fn a_members_address_does_not_speak_for_another_that_is_down() {
    // Bound, and nobody listens.
    let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", gone.local_addr().unwrap());
    // Member 2 is down, and member 3 answers for it at its own address.
    let three = Liar::new(well(CLUSTER, 2, vec![])).await;
    let list = vec![member(1, &[]), member(2, &[&gone]), member(3, &[&three.url])];
    let one = Liar::new(well(CLUSTER, 1, list)).await;
    let view = observer(&[&one.url]).look().await.unwrap();
    assert!(view.members[0].is_ready(), "{view:?}");
    assert!(matches!(view.members[1].answer, Answer::Silent { .. }), "{view:?}");
    assert!(matches!(&view.members[2].answer, Answer::Silent { reason } if reason.contains("is answered by member 2")));
}

/// A port where nobody has listened yet, and its URL.
async fn port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// Member 1 advertises what others advertise, and nothing of its own: nobody else has an address of its own by that. It
/// answers at two addresses of the playbook, at one of them as member 2 or 3, whose process is dead or hangs.
#[tokio::test]
async fn who_advertises_others_addresses_does_not_speak_for_one_that_is_dead() {
    for (dead, shared) in [(2, vec![3]), (2, vec![2, 3]), (3, vec![2, 3])] {
        let ports = [port().await, port().await];
        let urls = ports.each_ref().map(|(_, url)| url.clone());
        let shared: Vec<_> = shared.iter().map(|id| &*urls[id - 2]).collect();
        let list = vec![member(1, &shared), member(2, &[&urls[0]]), member(3, &[&urls[1]])];
        let one = Liar::new(well(CLUSTER, 1, list.clone())).await;
        let second = Liar::new(well(CLUSTER, dead, list.clone())).await;
        // Nobody takes the connections to the dead one's.
        let (alive, _silent): (Vec<_>, Vec<_>) = (2..).zip(ports).partition(|(id, _)| *id != dead);
        let alive = alive.into_iter().map(|(id, (listener, _))| Liar::at(listener, well(CLUSTER, id, list.clone())));
        let _alive: Vec<_> = alive.collect();
        let view = observer(&[&one.url, &second.url, &urls[0], &urls[1]]).look().await.unwrap();
        let ready: Vec<_> = view.members.iter().filter(|member| member.is_ready()).map(|member| member.id.0).collect();
        // Where it answers itself nobody advertises either.
        assert_eq!(ready, [5 - dead], "{dead} {shared:?} {view:?}");
        let why = view.members.iter().find(|member| member.id.0 == dead).unwrap().trouble().unwrap();
        assert!(why.contains(&format!("{} answers as this member, which does not advertise it", second.url)), "{why}");
    }
}

/// Nobody is left then who is reached as it advertises.
#[tokio::test]
async fn who_was_reached_as_it_advertises_is_not_reached_otherwise_once_it_is_dead() {
    let ((listener, url), is_dead) = (port().await, Arc::<AtomicBool>::default());
    // Without a third one it would be everybody's.
    let list = vec![member(1, &[&url]), member(2, &[&url]), member(3, &["http://127.0.0.1:1"])];
    let two = Liar::at(listener, well(CLUSTER, 2, list.clone()));
    let (was, is) = (well(CLUSTER, 1, list.clone()), well(CLUSTER, 2, list));
    let dead = is_dead.clone();
    let one = Liar::new(move |heard: &Heard| if dead.load(SeqCst) { is(heard) } else { was(heard) }).await;
    let observer = observer(&[&one.url, &url]);
    assert!(observer.look().await.unwrap().members[1].is_ready());
    two.hangs_up().await;
    drop(two);
    is_dead.store(true, SeqCst);
    let view = observer.look().await.unwrap();
    assert!(!view.members[1].is_ready(), "{view:?}");
}

#[tokio::test]
async fn who_says_another_name_at_each_question_is_not_ready() {
    let asked = AtomicU64::new(0);
    let shifty = Liar::new(move |heard: &Heard| {
        let id = 1 + asked.fetch_add(1, SeqCst) % 2;
        well(CLUSTER, id, vec![member(1, &[]), member(2, &[])])(heard)
    })
    .await;
    match observer(&[&shifty.url]).look().await {
        Ok(view) => assert!(!view.members.iter().all(Member::is_ready), "{view:?}"),
        Err(error) => assert!(error.to_string().contains(&shifty.url), "{error}"),
    }
}

/// Before a run begins it is refused; within one the cluster is known, and the stranger counts as silent.
#[tokio::test]
async fn an_endpoint_of_another_cluster_blinds_no_look_once_the_cluster_is_known() {
    let stranger = Liar::new(well(ANOTHER, 9, vec![member(9, &[])])).await;
    let one = Liar::new(well(CLUSTER, 1, vec![member(1, &[])])).await;
    let observer = observer(&[&stranger.url, &one.url]);
    assert!(observer.look().await.is_err());
    observer.access().directory().settle(ClusterId(CLUSTER));
    let view = observer.look().await.unwrap();
    assert!(view.members[0].is_ready(), "{view:?}");
    assert!(view.warnings[0].contains(&stranger.url) && view.warnings[0].contains("cluster d"), "{:?}", view.warnings);
}
