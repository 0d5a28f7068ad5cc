//! A token or a password goes to members of this cluster, at addresses that the playbook lists.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Instant,
};

use agent::{
    observe::{ObserveError, Observer},
    playbook::cluster::{Auth, Cluster},
};
use prost::Message as _;
use proto::etcdserverpb::{AuthenticateResponse, WatchResponse};

use super::{
    ANOTHER, CLUSTER, INVALID_ARGUMENT, UNAUTHENTICATED, cluster, header,
    liar::{Heard, Liar, Reply},
    member, well,
};

/// A member with auth on, as etcd from 3.5.28 on: who has no token learns nothing but from a watch that is refused.
fn locked(cluster: u64, id: u64, urls: Vec<String>) -> impl Fn(&Heard) -> Reply + Send + Sync + 'static {
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let inside = well(cluster, id, vec![member(id, &urls)]);
    move |heard| match (heard.method.as_str(), heard.token.as_deref()) {
        ("Auth/Authenticate", _) => {
            let token = format!("token-of-{id}");
            Reply::Says(AuthenticateResponse { header: header(cluster, id), token }.encode_to_vec())
        }
        ("Watch/Watch", None) => {
            let cancel_reason = "etcdserver: user name is empty".to_owned();
            let refused = WatchResponse {
                header: header(cluster, id),
                created: true,
                canceled: true,
                cancel_reason,
                ..Default::default()
            };
            Reply::Says(refused.encode_to_vec())
        }
        (_, None) => Reply::Refuses(INVALID_ARGUMENT, "etcdserver: user name is empty"),
        _ => inside(heard),
    }
}

fn with_user(folder: &tempfile::TempDir, endpoints: &[&str]) -> Observer {
    let password_file = folder.path().join("password");
    fs::write(&password_file, "S3cretPassw0rd\n").unwrap();
    let auth = Some(Auth { user: "root".into(), password_file });
    Observer::connect(&Cluster { auth, ..cluster(endpoints) }).unwrap()
}

/// A member with auth on that is another cluster's from the moment at which it is said to have moved, and does not know
/// the token then.
fn moving() -> (Arc<AtomicBool>, impl Fn(&Heard) -> Reply + Send + Sync + 'static) {
    let moved = Arc::<AtomicBool>::default();
    let (before, after) = (locked(CLUSTER, 1, vec![]), locked(ANOTHER, 1, vec![]));
    let is_moved = moved.clone();
    let answer = move |heard: &Heard| match (is_moved.load(SeqCst), &heard.token) {
        (false, _) => before(heard),
        (true, Some(_)) => Reply::Refuses(UNAUTHENTICATED, "etcdserver: invalid auth token"),
        (true, None) => after(heard),
    };
    (moved, answer)
}

fn heard_no_secret(liar: &Liar) {
    heard_no_secret_since(liar, 0);
}

#[track_caller]
fn heard_no_secret_since(liar: &Liar, place: usize) {
    for heard in liar.heard().split_off(place) {
        assert_ne!(heard.method, "Auth/Authenticate", "{heard:?}");
        assert_eq!(heard.token, None, "{heard:?}");
    }
}

#[tokio::test]
async fn a_member_that_says_who_it_is_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    let one = Liar::new(locked(CLUSTER, 1, vec![])).await;
    let view = with_user(&folder, &[&one.url]).look().await.unwrap();
    assert!(view.members[0].is_ready(), "{view:?}");
    let first = one.heard().iter().position(|heard| heard.method == "Auth/Authenticate").unwrap();
    let before: Vec<_> = one.heard()[..first].iter().map(|heard| heard.method.clone()).collect();
    assert!(before.contains(&"Watch/Watch".to_owned()), "it had not said who it is: {before:?}");
}

#[tokio::test]
async fn an_http_address_that_is_only_advertised_gets_none() {
    let folder = tempfile::tempdir().unwrap();
    let thief = Liar::new(locked(CLUSTER, 1, vec![])).await;
    let one = Liar::new(locked(CLUSTER, 1, vec![thief.url.clone()])).await;
    let observer = with_user(&folder, &[&one.url]);
    for _ in 0..3 {
        assert!(observer.look().await.unwrap().members[0].is_ready());
    }
    heard_no_secret(&thief);
}

#[tokio::test]
async fn a_member_without_an_address_in_the_playbook_is_said_to_lack_one() {
    let folder = tempfile::tempdir().unwrap();
    let two = Liar::new(locked(CLUSTER, 2, vec![])).await;
    let url = two.url.clone();
    let one = Liar::new(move |heard: &Heard| {
        let inside = well(CLUSTER, 1, vec![member(1, &[]), member(2, &[&url])]);
        match heard.token {
            Some(_) => inside(heard),
            None => locked(CLUSTER, 1, vec![])(heard),
        }
    })
    .await;
    let view = with_user(&folder, &[&one.url]).look().await.unwrap();
    let trouble = view.members[1].trouble().unwrap().into_owned();
    assert!(trouble.contains(&two.url) && trouble.contains("add it to `cluster.endpoints`"), "{trouble}");
    heard_no_secret(&two);
}

#[tokio::test]
async fn two_clusters_in_one_playbook_get_none() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (Liar::new(locked(CLUSTER, 1, vec![])).await, Liar::new(locked(ANOTHER, 1, vec![])).await);
    let refused = with_user(&folder, &[&one.url, &other.url]).look().await;
    assert!(matches!(refused, Err(ObserveError::AnotherCluster { .. })), "{refused:?}");
    heard_no_secret(&one);
    heard_no_secret(&other);
}

/// The agent waits, so the connection is idle; it ends, and the address is another cluster's from then on.
#[tokio::test]
async fn an_address_that_moves_to_another_cluster_between_two_looks_gets_none() {
    let folder = tempfile::tempdir().unwrap();
    let (moved, answer) = moving();
    let one = Liar::new(answer).await;
    let observer = with_user(&folder, &[&one.url]);
    assert!(observer.look().await.unwrap().members[0].is_ready());
    one.hangs_up().await;
    moved.store(true, SeqCst);
    let before = one.heard().len();
    for _ in 0..3 {
        let refused = observer.look().await.unwrap_err();
        assert!(refused.to_string().contains("belongs to cluster"), "{refused}");
    }
    assert!(one.heard().len() > before, "nobody asked");
    heard_no_secret_since(&one, before);
}

/// As behind a proxy that keeps the client's connection: the token is gone with the first call, and with it no password.
#[tokio::test]
async fn a_refusal_of_the_token_by_another_cluster_gets_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let (moved, answer) = moving();
    let one = Liar::new(answer).await;
    let observer = with_user(&folder, &[&one.url]);
    assert!(observer.look().await.unwrap().members[0].is_ready());
    moved.store(true, SeqCst);
    let before = one.calls("Auth/Authenticate");
    for _ in 0..3 {
        observer.look().await.unwrap_err();
    }
    assert_eq!(one.calls("Auth/Authenticate"), before);
}

#[tokio::test]
async fn a_connection_that_was_closed_is_made_anew_with_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let one = Liar::new(locked(CLUSTER, 1, vec![])).await;
    let observer = with_user(&folder, &[&one.url]);
    for _ in 0..5 {
        assert!(observer.look().await.unwrap().members[0].is_ready());
        one.hangs_up().await;
    }
    assert_eq!(one.calls("Auth/Authenticate"), 1);
}

/// The word of one: the next may take the user.
#[tokio::test]
async fn a_user_whom_one_member_refuses_logs_in_at_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let refuses = |id: u64, urls: Vec<String>| {
        let inside = locked(CLUSTER, id, urls);
        move |heard: &Heard| match heard.method.as_str() {
            "Auth/Authenticate" => Reply::Refuses(INVALID_ARGUMENT, "etcdserver: authentication failed"),
            _ => inside(heard),
        }
    };
    let (one, two) = (Liar::new(refuses(1, vec![])).await, Liar::new(locked(CLUSTER, 2, vec![])).await);
    with_user(&folder, &[&one.url, &two.url]).is_administrator().await.unwrap_err();
    assert_eq!((one.calls("Auth/Authenticate"), two.calls("Auth/Authenticate")), (1, 1));
    let other = Liar::new(refuses(2, vec![])).await;
    let refused = with_user(&folder, &[&one.url, &other.url]).look().await.unwrap_err();
    assert!(matches!(refused, ObserveError::Auth { .. }), "{refused}");
    for url in [&one.url, &other.url] {
        assert!(refused.to_string().contains(url), "{refused}");
    }
}

#[tokio::test]
async fn a_learner_that_cannot_say_who_it_is_gets_a_token_and_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let learner = Liar::new(|heard: &Heard| match (heard.method.as_str(), heard.token.as_deref()) {
        ("Watch/Watch", _) => Reply::Refuses(9, "etcdserver: rpc not supported for learner"),
        ("Maintenance/Status", Some(_)) => well(CLUSTER, 2, vec![])(heard),
        ("Maintenance/Status", None) => Reply::Refuses(INVALID_ARGUMENT, "etcdserver: user name is empty"),
        _ => Reply::Refuses(9, "etcdserver: rpc not supported for learner"),
    })
    .await;
    let url = learner.url.clone();
    let one = Liar::new(move |heard: &Heard| {
        let mut second = member(2, &[&url]);
        second.is_learner = true;
        match heard.token {
            Some(_) => well(CLUSTER, 1, vec![member(1, &[]), second])(heard),
            None => locked(CLUSTER, 1, vec![])(heard),
        }
    })
    .await;
    let view = with_user(&folder, &[&one.url, &learner.url]).look().await.unwrap();
    assert!(view.members[1].is_ready(), "{view:?}");
    assert_eq!(learner.calls("Auth/Authenticate"), 0);
}

/// A password is dear to check: members that refuse it are not asked at every look.
#[tokio::test]
async fn a_user_who_is_refused_is_not_tried_at_every_look() {
    let folder = tempfile::tempdir().unwrap();
    let inside = locked(CLUSTER, 1, vec![]);
    let one = Liar::new(move |heard: &Heard| match heard.method.as_str() {
        "Auth/Authenticate" => {
            Reply::Refuses(INVALID_ARGUMENT, "etcdserver: authentication failed, invalid user ID or password")
        }
        _ => inside(heard),
    })
    .await;
    let (observer, began) = (with_user(&folder, &[&one.url]), Instant::now());
    for _ in 0..50 {
        let refused = observer.look().await;
        assert!(matches!(refused, Err(ObserveError::Auth { .. })), "{refused:?}");
    }
    let (logins, seconds) = (one.calls("Auth/Authenticate"), began.elapsed().as_secs() as usize);
    assert!(logins <= 1 + seconds, "{logins} logins in {seconds} s");
}
