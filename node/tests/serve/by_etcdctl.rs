//! Real `etcdctl` gets from a member what it gets from etcd.

use node::state::{Form, Restore, State};
use proto::etcdserverpb::AlarmType;
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
};

use crate::{
    etcdctl::{self, Etcdctl},
    quota::raise,
    real::PATIENCE,
    served::{self, Served},
};

/// Runs a scenario with each release's `etcdctl`, on a member of its own.
async fn with_each(scenario: impl AsyncFn(&Served, &Etcdctl)) {
    for folder in etcdctl::folders() {
        let served = Served::start().await;
        scenario(&served, &Etcdctl::new(&folder, &served.url)).await;
    }
}

async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("no line").unwrap().expect("it ended")
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_put_got_and_deleted() {
    with_each(async |_, etcdctl| {
        assert_eq!(etcdctl.run(&["put", "a", "1"]).await, "OK\n");
        assert_eq!(etcdctl.run(&["put", "b", "2", "--prev-kv"]).await, "OK\n");
        assert_eq!(etcdctl.run(&["get", "a"]).await, "a\n1\n");
        assert_eq!(etcdctl.run(&["get", "", "--prefix", "--keys-only"]).await, "a\n\nb\n\n");
        assert_eq!(etcdctl.run(&["get", "a", "--consistency=s", "--print-value-only"]).await, "1\n");
        assert_eq!(etcdctl.run(&["del", "a", "c"]).await, "2\n");
        assert_eq!(etcdctl.run(&["get", "a", "--rev=2"]).await, "a\n1\n");
        assert!(etcdctl.fail(&["get", "a", "--rev=99"]).await.contains("required revision is a future revision"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_compares_and_chooses() {
    with_each(async |_, etcdctl| {
        etcdctl.run(&["put", "a", "1"]).await;
        let said = etcdctl.tell(&["txn"], "value(\"a\") = \"1\"\n\nput b 2\nget a\n\nput b 3\n\n").await;
        assert_eq!(said, "SUCCESS\n\nOK\n\na\n1\n");
        let said = etcdctl.tell(&["txn"], "mod(\"a\") = \"99\"\n\nput b 4\n\nget b\n\n").await;
        assert_eq!(said, "FAILURE\n\nb\n2\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_told_what_happened_and_what_happens() {
    with_each(async |_, etcdctl| {
        etcdctl.run(&["put", "a", "1"]).await;
        let mut watch = etcdctl.start(&["watch", "a", "--rev=2", "--prev-kv"]);
        let mut lines = lines(&mut watch);
        for expected in ["PUT", "a", "1"] {
            assert_eq!(line(&mut lines).await, expected);
        }
        etcdctl.run(&["put", "a", "2"]).await;
        for expected in ["PUT", "a", "1", "a", "2"] {
            assert_eq!(line(&mut lines).await, expected);
        }
        etcdctl.run(&["del", "a"]).await;
        for expected in ["DELETE", "a", "2", "a", ""] {
            assert_eq!(line(&mut lines).await, expected);
        }
    })
    .await;
}

/// What it prints, a line at a time.
fn lines(child: &mut Child) -> Lines<BufReader<ChildStdout>> {
    BufReader::new(child.stdout.take().unwrap()).lines()
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_granted_kept_alive_and_revoked() {
    with_each(async |_, etcdctl| {
        let granted = etcdctl.run(&["lease", "grant", "60"]).await;
        let id = granted.split_whitespace().nth(1).unwrap();
        assert!(granted.ends_with("granted with TTL(60s)\n"), "{granted}");
        etcdctl.run(&["put", "a", "1", "--lease", id]).await;
        let left = etcdctl.run(&["lease", "timetolive", id, "--keys"]).await;
        assert!(left.contains("granted with TTL(60s)") && left.contains("attached keys([a])"), "{left}");
        assert!(etcdctl.run(&["lease", "list"]).await.contains(id));
        let kept = etcdctl.run(&["lease", "keep-alive", "--once", id]).await;
        assert_eq!(kept, format!("lease {id} keepalived with TTL(60)\n"));
        etcdctl.run(&["lease", "revoke", id]).await;
        assert_eq!(etcdctl.run(&["get", "a"]).await, "");
        assert!(etcdctl.run(&["lease", "timetolive", id]).await.contains("already expired"));
        assert!(etcdctl.run(&["lease", "keep-alive", id]).await.contains("expired or revoked"));
        assert!(etcdctl.fail(&["lease", "revoke", id]).await.contains("requested lease not found"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_member_says_who_and_how_it_is() {
    with_each(async |served, etcdctl| {
        etcdctl.run(&["put", "a", "1"]).await;
        let id = format!("{:x}", served::ID.0);
        let members = etcdctl.run(&["member", "list"]).await;
        assert_eq!(members, format!("{id}, started, m1, http://127.0.0.1:2380, {}, false\n", served.url));
        let status = etcdctl.run(&["endpoint", "status"]).await;
        let fields: Vec<_> = status.trim().split(", ").collect();
        assert_eq!((fields[0], fields[1], fields[2]), (&*served.url, &*id, "3.6.0"), "{status}");
        let health = etcdctl.run(&["endpoint", "health"]).await;
        assert!(health.contains("is healthy: successfully committed proposal"), "{health}");
        let hash = etcdctl.run(&["endpoint", "hashkv"]).await;
        let expected = served.member.read(|state| state.keys.hash_kv(0)).unwrap().hash;
        assert!(hash.contains(&format!(", {expected}")), "{hash}, not {expected}");
        assert_eq!(etcdctl.run(&["alarm", "list"]).await, "");
        assert!(etcdctl.run(&["defrag"]).await.contains("Finished defragmenting etcd member"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_is_listed_and_disarmed() {
    with_each(async |served, etcdctl| {
        raise(served, AlarmType::Nospace).await;
        let alarm = format!("memberID:{} alarm:NOSPACE \n", served::ID.0);
        assert_eq!(etcdctl.run(&["alarm", "list"]).await, alarm);
        assert!(etcdctl.fail(&["put", "a", "1"]).await.contains("database space exceeded"));
        assert!(etcdctl.fail(&["endpoint", "health"]).await.contains("unhealthy"));
        assert_eq!(etcdctl.run(&["alarm", "disarm"]).await, alarm);
        assert_eq!(etcdctl.run(&["alarm", "list"]).await, "");
        assert_eq!(etcdctl.run(&["put", "a", "1"]).await, "OK\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_compacted() {
    with_each(async |_, etcdctl| {
        for value in ["1", "2", "3"] {
            etcdctl.run(&["put", "a", value]).await;
        }
        assert_eq!(etcdctl.run(&["compact", "3", "--physical"]).await, "compacted revision 3\n");
        assert!(etcdctl.fail(&["get", "a", "--rev=2"]).await.contains("required revision has been compacted"));
        assert!(etcdctl.fail(&["compact", "3"]).await.contains("required revision has been compacted"));
        assert!(etcdctl.fail(&["watch", "a", "--rev=1"]).await.contains("required revision has been compacted"));
        assert_eq!(etcdctl.run(&["get", "a", "--rev=3"]).await, "a\n2\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_saved_whole() {
    with_each(async |served, etcdctl| {
        // More than one piece.
        let value = "v".repeat(700_000);
        for key in ["a", "b", "c"] {
            etcdctl.tell(&["put", key], &value).await;
        }
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("saved");
        etcdctl.run(&["snapshot", "save", path.to_str().unwrap()]).await;
        let saved = std::fs::read(path).unwrap();
        let mut restore = Restore::default();
        // In the form of the cluster's version.
        let form = |state: &State| Form { storage: state.cluster.version.unwrap(), ..Form::FIRST };
        let state: Vec<u8> = served.member.read(|state| state.snapshot(form(state)).flatten().collect());
        let (content, rest) = saved.split_at(state.len());
        restore.push(content).unwrap();
        assert!(restore.finish().unwrap() == served.member.read(State::clone));
        let fill = rest.len() - 32;
        assert!((state.len() + fill).is_multiple_of(512) && rest[..fill].iter().all(|byte| *byte == 0));
        assert_eq!(rest[fill..], Sha256::digest(&saved[..saved.len() - 32])[..]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_moved_by_the_leader() {
    with_each(async |_, etcdctl| {
        let id = format!("{:x}", served::ID.0);
        let moved = etcdctl.run(&["move-leader", &id]).await;
        assert_eq!(moved, format!("Leadership transferred from {id} to {id}\n"));
    })
    .await;
}

/// One holder at a time: the second waits until the first one has gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_held_by_one_at_a_time() {
    with_each(async |_, etcdctl| {
        let mut first = etcdctl.start(&["lock", "l"]);
        let mut held = lines(&mut first);
        let key = line(&mut held).await;
        assert!(key.starts_with("l/"), "{key}");
        let mut second = etcdctl.start(&["lock", "l"]);
        let mut waits = lines(&mut second);
        // It stands in the queue once it has a key of its own.
        while etcdctl.run(&["get", "l/", "--prefix", "--keys-only"]).await.split_whitespace().count() < 2 {}
        assert_eq!(etcdctl.run(&["del", &key]).await, "1\n");
        let next = line(&mut waits).await;
        assert!(next.starts_with("l/") && next != key, "{next}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_is_elected_and_observed() {
    with_each(async |_, etcdctl| {
        let mut candidate = etcdctl.start(&["elect", "e", "first"]);
        let mut said = lines(&mut candidate);
        assert!(line(&mut said).await.starts_with("e/"));
        assert_eq!(line(&mut said).await, "first");
        let mut observer = etcdctl.start(&["elect", "e", "--listen"]);
        let mut seen = lines(&mut observer);
        assert!(line(&mut seen).await.starts_with("e/"));
        assert_eq!(line(&mut seen).await, "first");
    })
    .await;
}
