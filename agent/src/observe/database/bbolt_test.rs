use std::io::{Read as _, Write as _};

use flate2::read::GzDecoder;
use tempfile::tempfile;

use super::*;

/// What `etcdctl snapshot save` made of a member of 3.5.30: itself, a learner that never started, one that was removed, 120 keys, and
/// authentication on.
fn golden() -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(&include_bytes!("golden/3.5.30.db.gz")[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn names(bucket: Option<Vec<Pair>>) -> Vec<String> {
    bucket.unwrap().into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

#[test]
fn buckets_are_read_as_etcd_wrote_them() {
    let database = Database::open(file(&golden())).unwrap();
    assert_eq!(names(database.bucket("members").unwrap()), ["2e1259d415f2a040", "9105d21341c012a0"]);
    assert_eq!(names(database.bucket("members_removed").unwrap()), ["1ed658980058315f"]);
    assert_eq!(names(database.bucket("auth").unwrap()), ["authEnabled", "authRevision"]);
    // Over several pages, in order.
    let keys = database.bucket("key").unwrap().unwrap();
    assert_eq!(keys.len(), 120);
    assert!(keys.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(database.bucket("none").unwrap().is_none());
    assert_eq!(database.last_key("key").unwrap().as_ref(), keys.last().map(|(key, _)| key));
    assert_eq!(database.last_key("members").unwrap(), Some(b"9105d21341c012a0".to_vec()), "within the top");
    assert!(database.last_key("none").unwrap().is_none());
    // The first revision is nobody's.
    assert_eq!(super::super::content::revision(file(&golden())), Some(proto::Revision(121)));
}

#[test]
fn the_newer_first_page_counts_and_either_one_will_do() {
    let (newest, page) = (golden(), 4096);
    let transaction = |bytes: &[u8], at: usize| u64_at(bytes, at + PAGE_HEAD + 48).unwrap();
    let [first, second] = [transaction(&newest, 0), transaction(&newest, page)];
    assert_ne!(first, second);
    for lost in [0, page] {
        let mut bytes = newest.clone();
        bytes[lost + PAGE_HEAD..lost + PAGE_HEAD + META].fill(0);
        let database = Database::open(file(&bytes)).unwrap();
        assert_eq!(names(database.bucket("members").unwrap()).len(), 2, "without that at {lost}");
    }
    let mut bytes = newest;
    [0, page].iter().for_each(|at| bytes[at + PAGE_HEAD] ^= 1);
    assert!(matches!(Database::open(file(&bytes)), Err(Unread::NoDatabase)));
}

#[test]
fn what_is_no_database_says_so() {
    for bytes in [&b""[..], b"{}", &[0; 70_000]] {
        assert!(matches!(Database::open(file(bytes)), Err(Unread::NoDatabase)));
    }
    let whole = golden();
    let cut = &whole[..whole.len() / 2];
    assert!(matches!(Database::open(file(cut)), Err(Unread::Damaged { .. })), "shorter than it says");
}

/// Each byte of the pages that are walked, with each of a few values: an answer or an error, and neither a panic nor an endless walk.
#[test]
fn no_damage_is_the_readers_end() {
    let whole = golden();
    let mut read = 0;
    for at in (0..whole.len()).filter(|at| at % 4096 < 256) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let Ok(database) = Database::open(file(&bytes)) else { continue };
            for bucket in ["members", "key", "auth"] {
                read += usize::from(database.bucket(bucket).is_ok());
                let _ = database.last_key(bucket);
            }
        }
    }
    assert!(read > 1000, "the damage is not all at one place: {read}");
}

/// A branch that leads to itself, as only a liar writes it.
#[test]
fn a_circle_comes_to_its_end() {
    let mut bytes = golden();
    let database = Database::open(file(&bytes)).unwrap();
    let at = usize::try_from(database.root * database.page_size).unwrap();
    bytes[at + 8..at + 10].copy_from_slice(&BRANCH.to_le_bytes());
    bytes[at + 10..at + 12].copy_from_slice(&1_u16.to_le_bytes());
    bytes[at + PAGE_HEAD + 8..at + PAGE_HEAD + 16].copy_from_slice(&database.root.to_le_bytes());
    let database = Database::open(file(&bytes)).unwrap();
    assert!(matches!(database.bucket("members"), Err(Unread::TooMuch)));
}

#[test]
fn the_members_and_authentication_are_understood() {
    let content = super::super::content::Content::read(file(&golden())).unwrap();
    let roles: Vec<_> = content.members.values().copied().collect();
    assert_eq!(roles, [crate::observe::view::Role::Voter, crate::observe::view::Role::Learner]);
    assert!(content.auth_is_on);
}

#[test]
fn what_a_cluster_is_made_from_says_who_was_where() {
    let origin = super::super::origin::Origin::read(file(&golden())).unwrap();
    assert!(origin.auth_is_on);
    assert_eq!((origin.members.len(), origin.voters().count()), (2, 1));
    let voter = origin.voters().next().unwrap();
    assert!(voter.id != 0 && !voter.peer_urls.is_empty() && !voter.client_urls.is_empty(), "{voter:?}");
}
