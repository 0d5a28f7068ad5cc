//! What never ends, or is much too large, costs bounded time and memory, and a sentence says so.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use super::{
    CLUSTER, UNAVAILABLE, cluster, header,
    liar::{Heard, Liar, Reply},
    member, observer, status, well,
};
use agent::{
    observe::Observer,
    playbook::cluster::Cluster,
    store::{Store, Watch},
};
use prost::Message as _;
use proto::etcdserverpb::{Member, MemberListResponse, StatusResponse, WatchResponse};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

#[tokio::test]
async fn of_thousands_of_urls_a_few_are_asked() {
    // Everywhere on this host: each of the URLs leads here.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let accepting = tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, SeqCst);
        }
    });
    let urls: Vec<_> = (0..12_000).map(|n| format!("http://127.1.{}.{}:{port}", n / 250, n % 250 + 1)).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let one = Liar::new(well(CLUSTER, 1, vec![member(1, &urls)])).await;
    let view = observer(&[&one.url]).look().await.unwrap();
    assert!(view.members[0].is_ready());
    assert!(asked.load(SeqCst) < 20, "{asked:?}");
    assert!(
        view.warnings.iter().any(|warning| warning.contains("m1: it advertises 12000 URLs")),
        "{:?}",
        view.warnings
    );
    accepting.abort();
}

#[tokio::test]
async fn a_membership_of_hundreds_is_not_believed() {
    let many = (1..=300).map(|id| member(id, &[])).collect();
    let one = Liar::new(well(CLUSTER, 1, many)).await;
    let refused = observer(&[&one.url]).look().await.unwrap_err().to_string();
    assert!(refused.contains("it lists 300 members") && refused.contains(&one.url), "{refused}");
}

#[tokio::test]
async fn a_status_of_a_mebibyte_is_a_short_sentence() {
    let inside = well(CLUSTER, 1, vec![member(1, &[])]);
    let one = Liar::new(move |heard: &Heard| match heard.method.as_str() {
        "Maintenance/Status" => {
            let errors = vec!["é".repeat(500_000)];
            Reply::Says(StatusResponse { errors, ..status(CLUSTER, 1) }.encode_to_vec())
        }
        _ => inside(heard),
    })
    .await;
    let view = observer(&[&one.url]).look().await.unwrap();
    let trouble = view.members[0].trouble().unwrap().into_owned();
    assert!(trouble.len() < 400, "{}", trouble.len());
}

#[tokio::test]
async fn the_words_of_a_refusal_are_a_short_sentence() {
    let one = Liar::new(|_: &Heard| Reply::Refuses(UNAVAILABLE, Box::leak("x".repeat(8000).into_boxed_str()))).await;
    let error = observer(&[&one.url]).look().await.unwrap_err().to_string();
    assert!(error.contains(&"x".repeat(300)), "{error}");
    assert!(error.len() < 600, "{}", error.len());
}

#[tokio::test]
async fn a_message_beyond_all_bounds_is_an_error() {
    let inside = well(CLUSTER, 1, vec![member(1, &[])]);
    let one = Liar::new(move |heard: &Heard| match heard.method.as_str() {
        "Cluster/MemberList" => {
            let peer_urls = vec!["x".repeat(2 * 1024 * 1024)];
            let members = vec![Member { peer_urls, ..member(1, &[]) }];
            Reply::Says(MemberListResponse { header: header(CLUSTER, 1), members }.encode_to_vec())
        }
        _ => inside(heard),
    })
    .await;
    let refused = observer(&[&one.url]).look().await.unwrap_err().to_string();
    assert!(refused.contains(&one.url), "{refused}");
}

#[tokio::test]
async fn who_never_ends_an_answer_counts_as_silent() {
    let one = Liar::new(|heard: &Heard| match heard.method.as_str() {
        "Maintenance/Status" => Reply::Endless(status(CLUSTER, 1).encode_to_vec()),
        _ => Reply::Nothing,
    })
    .await;
    let refused = observer(&[&one.url]).look().await.unwrap_err().to_string();
    assert!(refused.contains(&one.url), "{refused}");
}

/// A page that never ends, whatever is asked for.
async fn endless() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 1024];
                // Whoever hangs up has read enough.
                let _ = client.read(&mut request).await;
                let _ = client.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").await;
                while client.write_all(&[b'x'; 64 * 1024]).await.is_ok() {}
            });
        }
    });
    url
}

/// One that answers late, and each time with one more address, is not followed for minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_ends_though_ever_more_addresses_come_late() {
    const LATE: Duration = Duration::from_secs(3);
    let mut chain = Vec::new();
    for _ in 0..12 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        chain.push((listener, url));
    }
    let urls: Vec<_> = chain.iter().map(|(_, url)| url.clone()).collect();
    let liars: Vec<_> = chain
        .into_iter()
        .enumerate()
        .map(|(at, (listener, own))| {
            let next = urls.get(at + 1).unwrap_or(&own);
            let said = well(CLUSTER, 2, vec![member(1, &[]), member(2, &[&own, next])]);
            Liar::at(listener, move |heard: &Heard| match said(heard) {
                Reply::Says(message) => Reply::Late(LATE, message),
                other => other,
            })
        })
        .collect();
    let one = Liar::new(well(CLUSTER, 1, vec![member(1, &[]), member(2, &[&urls[0]])])).await;
    let view = observer(&[&one.url]).look().await.unwrap();
    assert_eq!(view.members.len(), 2, "{view:?}");
    assert_ne!(liars[0].calls("Maintenance/Status"), 0);
    assert_eq!(liars[11].calls("Maintenance/Status"), 0, "it was followed to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_never_ends_is_named_and_left() {
    let one = Liar::new(well(CLUSTER, 1, vec![member(1, &[])])).await;
    let http = BTreeMap::from([("m1".to_owned(), endless().await)]);
    let observer = Observer::connect(&Cluster { http, ..cluster(&[&one.url]) }).unwrap();
    let view = observer.look().await.unwrap();
    assert!(view.members[0].is_ready(), "{view:?}");
    let warning = &view.warnings[0];
    assert!(warning.starts_with("m1: its http://") && warning.contains("/version does not end within"), "{warning}");
}

/// The word is a hint to look, and each look costs something: one that comes a thousand times a moment is given less
/// often, and the stream is left to wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_without_end_takes_no_processor() {
    let inside = well(CLUSTER, 1, vec![member(1, &[])]);
    let one = Liar::new(move |heard: &Heard| match heard.method.as_str() {
        "Watch/Watch" => Reply::Endless(
            WatchResponse { header: header(CLUSTER, 1), created: true, ..Default::default() }.encode_to_vec(),
        ),
        _ => inside(heard),
    })
    .await;
    let observer = observer(&[&one.url]);
    observer.look().await.unwrap();
    let changes = Watch::of(&Store::new(&observer, Arc::default()));
    while one.calls("Watch/Watch") == 0 {
        changes.changed().await;
    }
    changes.changed().await;
    // Never sooner than so many gaps; later costs nothing.
    let began = Instant::now();
    for _ in 0..10 {
        changes.changed().await;
    }
    assert!(began.elapsed() > Duration::from_millis(50), "{:?}", began.elapsed());
}

/// A newcomer's port is open before anybody answers there, and a look need not wait for that; for a voter it does.
#[tokio::test(flavor = "multi_thread")]
async fn once_every_voter_has_been_heard_nobody_is_waited_for_long() {
    const LATE: Duration = Duration::from_secs(3);
    let silent = Liar::new(|_: &Heard| Reply::Nothing).await;
    let listeners = [bound().await, bound().await];
    let [one, two] = [0, 1].map(|at: usize| format!("http://{}", listeners[at].local_addr().unwrap()));
    let learner = Member { is_learner: true, ..member(3, &[&silent.url]) };
    let listed = vec![member(1, &[&one]), member(2, &[&two]), learner];
    let [first, second] = listeners;
    let quick = Liar::at(first, well(CLUSTER, 1, listed.clone()));
    let said = well(CLUSTER, 2, listed);
    let slow = Liar::at(second, move |heard: &Heard| match said(heard) {
        Reply::Says(message) if heard.method == "Maintenance/Status" => Reply::Late(LATE, message),
        reply => reply,
    });
    let view = observer(&[&quick.url]).look().await.unwrap();
    assert!(view.members[1].reached.as_ref() == Some(&slow.url), "{:?}", view.members[1]);
    let trouble = view.members[2].trouble().unwrap().into_owned();
    assert!(trouble.contains("no answer within 1 s"), "{trouble}");
}

async fn bound() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap()
}
