use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use consensus::{Applier, Snapshots};
use proto::{
    ClusterVersion, LeaseId, LogIndex, MemberId, Release, Revision,
    etcdserverpb::{
        CompactionRequest, DeleteRangeRequest, LeaseCheckpoint, LeaseCheckpointRequest, LeaseGrantRequest, PutRequest,
    },
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;
use crate::{
    cluster::{
        Cluster,
        gate::Gate,
        member::{Member, Starts},
    },
    config::Config,
    features::FEATURES,
    identity::{Identity, IdentityError, founders},
    machine::{Machine, Proposals},
    state::{Form, ProposalId, State},
};

/// A saved file as it was first written. Never written anew.
fn golden() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/saved-1.bin");
    fs::read(path).unwrap()
}

/// Of a cluster with everything: deleted and compacted keys, a lease with less left, a member that has started, a gate, an alarm.
fn state() -> State {
    let mut state = State { applied: LogIndex(77), ..State::default() };
    let keys = &mut state.keys;
    keys.lease_grant(&LeaseGrantRequest { id: 7, ttl: 600 }).unwrap();
    let checkpoint = LeaseCheckpoint { id: 7, remaining_ttl: 5 };
    keys.lease_checkpoint(&LeaseCheckpointRequest { checkpoints: vec![checkpoint] });
    for (key, value, lease) in [("a", "1", 0), ("a", "2", 0), ("b", "3", 7), ("c", "4", 0), ("a", "5", 0)] {
        let (key, value) = (key.into(), value.into());
        keys.put(PutRequest { key, value, lease, ..PutRequest::default() }).unwrap();
    }
    keys.delete_range(&DeleteRangeRequest { key: b"c".to_vec(), ..DeleteRangeRequest::default() });
    keys.compact(&CompactionRequest { revision: 4, physical: false }).unwrap();
    let member = MemberId(0xabc);
    state.cluster = Cluster {
        version: Some(ClusterVersion { major: 3, minor: 6 }),
        members: [(member, Member { name: "old".into(), starts: Starts(9), ..Member::default() })].into(),
        gate: Gate::Decided([("ClusterLeaseCheckpoint".to_owned(), true)].into_iter().collect()),
        inputs: LogIndex(70),
        downgrade: Some(ClusterVersion { major: 3, minor: 5 }),
        behind: Some(LogIndex(71)),
        ..Cluster::default()
    };
    state.sessions.admit(ProposalId { member, starts: Starts(9), number: 3 }, 3);
    state.alarms.insert((member, 1));
    state
}

/// As `serve` sends it.
fn saved(state: &State) -> Vec<u8> {
    let mut bytes: Vec<u8> = state.snapshot(Form::FIRST).flatten().collect();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    let digest = Sha256::digest(&bytes);
    [&bytes[..], &digest].concat()
}

fn write(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("saved");
    fs::write(&path, bytes).unwrap();
    path
}

fn release() -> Release {
    Release::new(3, 6, 0)
}

/// What `node snapshot restore` reads, for this member of two.
fn restoring(file: &Path, data_dir: &Path, name: &str, more: &[&str]) -> Restoring {
    let number = if name == "m1" { 2380 } else { 2480 };
    let flags = [
        "restore".to_owned(),
        file.display().to_string(),
        format!("--data-dir={}", data_dir.display()),
        format!("--name={name}"),
        "--initial-cluster=m1=http://127.0.0.1:2380,m2=http://127.0.0.1:2480".into(),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{number}"),
    ];
    match Command::read(flags.into_iter().chain(more.iter().map(ToString::to_string))).unwrap() {
        Command::Restore(restoring) => *restoring,
        other => panic!("{other:?}"),
    }
}

/// Starts from a data directory as a member does, as far as it goes without others.
fn started(data_dir: &Path, config: &Config) -> (Result<Identity, IdentityError>, State) {
    let folder = disk::real(data_dir).unwrap();
    let (log, snapshots) = (folder.folder("wal").unwrap(), folder.folder("snap").unwrap());
    let identity = Identity::load(&*folder, &*log, config, release(), None);
    let machine = Machine::new(release(), FEATURES, Proposals::new(MemberId(1), Starts(1)));
    let applier = Applier::open(Arc::new(machine.clone()), Snapshots::open(snapshots).unwrap()).unwrap();
    assert_eq!(applier.applied(), 1);
    let wal = wal::Wal::open_in(log, wal::Options::default()).unwrap();
    let log = wal.state().unwrap();
    assert_eq!((log.purged, log.last.map(|id| id.index.0)), (log.last, Some(1)), "the log goes on behind the snapshot");
    assert!(wal.vote().unwrap().is_some());
    (identity, machine.frozen())
}

#[test]
fn a_file_that_was_saved_once_is_read_by_every_later_release() {
    let folder = tempfile::tempdir().unwrap();
    let read = read(&write(&folder, &golden()), HashCheck::Done).unwrap();
    assert!(read.state == state());
    let status = Status::of(&read);
    assert_eq!(status.text(Format::Simple), "8d306eda, 7, 2, 512 B, 3.6.0\n");
    let below = State { cluster: Cluster::default(), ..state() };
    let read = super::read(&write(&folder, &saved(&below)), HashCheck::Done).unwrap();
    assert_eq!(Status::of(&read).version, "", "below 3.6 there is no storage version");
}

#[test]
fn a_flipped_bit_and_a_cut_are_found_wherever_they_are() {
    let (folder, golden) = (tempfile::tempdir().unwrap(), golden());
    for at in 0..golden.len() {
        let mut damaged = golden.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = read(&write(&folder, &damaged), HashCheck::Done).unwrap_err();
        assert!(matches!(error, FileError::WrongHash { .. }), "byte {at}: {error}");
    }
    for length in 0..golden.len() {
        let error = read(&write(&folder, &golden[..length]), HashCheck::Done).unwrap_err();
        let is_cut = matches!(error, FileError::NoHash { .. } | FileError::WrongHash { .. });
        assert!(is_cut, "cut off at {length}: {error}");
    }
}

#[test]
fn what_is_no_snapshot_is_said_to_be_none_and_what_it_is_where_that_shows() {
    let folder = tempfile::tempdir().unwrap();
    let mut bbolt = vec![0; 8192];
    bbolt[16..20].copy_from_slice(&0xed0c_daed_u32.to_le_bytes());
    let with_hash = |bytes: &[u8]| [bytes, &Sha256::digest(bytes)].concat();
    for (bytes, words) in [
        (
            with_hash(&bbolt),
            "is a snapshot of etcd (a bbolt database), and not of this node: `etcdutl snapshot` reads it",
        ),
        (bbolt.clone(), "is a snapshot of etcd"),
        (Vec::new(), "does not end in a hash: it is cut off, or no snapshot"),
        (b"name: m1\n".to_vec(), "does not end in a hash"),
        (with_hash(&[7; 1024]), "is not a snapshot that this node can read: "),
        (with_hash(&[0; 512]), "is not a snapshot that this node can read: "),
    ] {
        let error = read(&write(&folder, &bytes), HashCheck::Done).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    let error = read(folder.path(), HashCheck::Done).unwrap_err().to_string();
    assert!(error.contains("expected a file that `etcdctl snapshot save` has written"), "{error}");
    let error = read(&folder.path().join("none"), HashCheck::Done).unwrap_err().to_string();
    assert!(error.contains("cannot read ") && error.contains("none: No such file"), "{error}");
}

/// etcd needs it for a copy of a database; here it is for a file whose end went with a copy.
#[test]
fn without_the_hash_check_the_state_s_own_checksums_count() {
    let folder = tempfile::tempdir().unwrap();
    let golden = golden();
    let content = &golden[..golden.len() - 32];
    let unfilled: Vec<u8> = state().snapshot(Form::FIRST).flatten().collect();
    let wrong = [content, &[9; 32]].concat();
    for bytes in [content, &unfilled, &wrong] {
        assert!(read(&write(&folder, bytes), HashCheck::Skipped).unwrap().state == state());
        assert!(read(&write(&folder, bytes), HashCheck::Done).is_err());
    }
    for at in 0..unfilled.len() {
        let mut damaged = unfilled.clone();
        damaged[at] ^= 1 << (at % 8);
        // A bit that says nothing may be another one, such as of a flag that is set.
        let found = read(&write(&folder, &damaged), HashCheck::Skipped);
        assert!(found.is_err() || found.is_ok_and(|found| found.state == state()), "byte {at}");
        assert!(read(&write(&folder, &unfilled[..at]), HashCheck::Skipped).is_err(), "cut off at {at}");
    }
    for behind in [&[0; 512][..], &[0, 1]] {
        let error = read(&write(&folder, &[&unfilled, behind].concat()), HashCheck::Skipped).unwrap_err().to_string();
        assert!(error.contains("something behind its end"), "{error}");
    }
}

#[test]
fn a_new_cluster_has_the_keys_and_nothing_of_the_old_members() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &golden());
    let mut found = Vec::new();
    for name in ["m1", "m2"] {
        let data_dir = folder.path().join(name);
        let asked = restoring(&file, &data_dir, name, &[]);
        let made = restore(&asked, &release()).unwrap();
        let (identity, state) = started(&data_dir, &asked.config);
        let identity = identity.unwrap();
        assert_eq!((identity.cluster, identity.member, identity.starts), (made.cluster, made.member, Starts(1)));
        assert_eq!((made.revision, made.leases), (7, 1));
        found.push((made, identity.incarnation, state, asked.config));
    }
    let [(one, incarnation, state, config), (two, other_incarnation, same, _)] = &found[..] else { panic!("two") };
    assert!(state == same, "all begin with the same state");
    assert!(incarnation.is_some() && incarnation != other_incarnation);
    assert_eq!((one.cluster, one.member == two.member), (two.cluster, false));
    let before = super::tests::state();
    let lease = |state: &State| state.keys.leases().get(LeaseId(7)).unwrap().remaining_s();
    assert_eq!((lease(&before), lease(state)), (5, 600), "a lease has its whole time again");
    let mut keys = before.keys.clone();
    keys.forget_lease_checkpoints();
    assert!(state.keys == keys);
    assert_eq!((state.applied, &state.sessions), (LogIndex(1), &Default::default()));
    assert_eq!(state.alarms, before.alarms, "as with etcd");
    let members = founders(config).into_iter();
    let members = members.map(|(id, name, peer_urls)| (id, Member { name, peer_urls, ..Member::default() })).collect();
    let cluster = Cluster {
        id: one.cluster,
        version: before.cluster.version,
        members,
        inputs: LogIndex(1),
        ..Cluster::default()
    };
    assert_eq!(state.cluster, cluster);
    let names = |path: &Path| {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&folder.path().join("m1")), ["identity", "snap", "wal"]);
    assert_eq!(names(folder.path()), ["m1", "m2", "saved"], "nothing else stays");
}

/// N-7: members that began with different states are strangers.
#[test]
fn another_file_or_another_way_to_restore_it_makes_another_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &golden());
    let made = |file: &Path, more: &[&str]| {
        let data_dir = folder.path().join("data");
        let asked = restoring(file, &data_dir, "m1", more);
        let made = restore(&asked, &release()).unwrap();
        assert_eq!(started(&data_dir, &asked.config).0.unwrap().cluster, made.cluster);
        fs::remove_dir_all(data_dir).unwrap();
        made
    };
    let first = made(&file, &[]);
    assert_eq!(made(&file, &[]), first, "as often as it is done");
    let mut later = state();
    later.applied = LogIndex(78);
    let other = folder.path().join("other");
    fs::write(&other, saved(&later)).unwrap();
    let bumped = made(&file, &["--bump-revision=1000", "--mark-compacted"]);
    let fresh = folder.path().join("fresh");
    let config = restoring(&file, &fresh, "m1", &[]).config;
    let data_dir = disk::real(&fresh).unwrap();
    let empty = Identity::load(&*data_dir, &*data_dir.folder("wal").unwrap(), &config, release(), None).unwrap();
    let mut clusters = vec![
        first.cluster,
        made(&other, &[]).cluster,
        bumped.cluster,
        made(&file, &["--initial-cluster-token=b"]).cluster,
        empty.cluster,
    ];
    assert_eq!((bumped.member, empty.member), (first.member, first.member));
    clusters.sort();
    clusters.dedup();
    assert_eq!(clusters.len(), 5);
}

#[test]
fn a_bumped_revision_is_compacted_and_its_keys_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data_dir) = (write(&folder, &golden()), folder.path().join("data"));
    let asked = restoring(&file, &data_dir, "m1", &["--bump-revision=1000", "--mark-compacted"]);
    assert_eq!(restore(&asked, &release()).unwrap().revision, 1_007);
    let (_, mut state) = started(&data_dir, &asked.config);
    assert_eq!((state.keys.revision(), state.keys.compacted()), (Revision(1_007), Revision(1_007)));
    let get = |state: &State, revision| {
        let request = proto::etcdserverpb::RangeRequest { key: b"a".to_vec(), revision, ..Default::default() };
        state.keys.range(&request).map(|found| found.kvs[0].mod_revision)
    };
    assert_eq!(get(&state, 0), Ok(6), "a key stays at its revision");
    assert_eq!(get(&state, 1_006), Err(crate::api_error::ApiError::Compacted));
    state.keys.put(PutRequest { key: b"a".to_vec(), ..PutRequest::default() }).unwrap();
    assert_eq!(get(&state, 0), Ok(1_008));

    fs::remove_dir_all(&data_dir).unwrap();
    for by in [u64::MAX, i64::MAX as u64, (i64::MAX / 2) as u64] {
        let asked = restoring(&file, &data_dir, "m1", &[&format!("--bump-revision={by}"), "--mark-compacted"]);
        let error = restore(&asked, &release()).unwrap_err();
        assert!(matches!(error, RestoreError::Bump { revision: 7, .. }), "{error}");
    }
    assert!(!data_dir.exists());
}

#[test]
fn what_is_there_is_not_touched_and_what_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data_dir) = (write(&folder, &golden()), folder.path().join("data"));
    let asked = restoring(&file, &data_dir, "m1", &[]);
    fs::create_dir(&data_dir).unwrap();
    fs::write(data_dir.join("identity"), "precious").unwrap();
    let error = restore(&asked, &release()).unwrap_err();
    assert!(
        error.to_string().ends_with("data: it is not empty. Name another one, or move what is in it away"),
        "{error}"
    );
    assert_eq!(fs::read(data_dir.join("identity")).unwrap(), b"precious");
    fs::remove_dir_all(&data_dir).unwrap();

    let error = restore(&asked, &Release::new(3, 5, 0)).unwrap_err();
    assert!(
        error.to_string().contains("of version 3.6, above 3.5.0 that this is: restore it with release 3.6"),
        "{error}"
    );
    let left = || fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left(), 1);
    // Somebody is faster: it is found at the end, too.
    let aside = folder.path().join("data.restoring");
    let place = data_dir::Place::of(&data_dir).unwrap().begin().unwrap();
    assert!(matches!(restore(&asked, &release()).unwrap_err(), RestoreError::Busy { .. }));
    assert!(aside.exists(), "what another one writes is not removed");
    fs::create_dir_all(data_dir.join("wal")).unwrap();
    assert!(matches!(place.finish().unwrap_err(), RestoreError::NotEmpty { .. }));
    assert!(!aside.exists());
    fs::remove_dir_all(&data_dir).unwrap();
    // What a person has put there is not ours to clear.
    fs::create_dir_all(aside.join("wal")).unwrap();
    fs::write(aside.join("wal/0.wal"), "half").unwrap();
    let error = restore(&asked, &release()).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "data.restoring is in the way, and nothing in it says that `node snapshot restore` made it. Move it away"
        ),
        "{error}"
    );
    assert_eq!(fs::read(aside.join("wal/0.wal")).unwrap(), b"half");
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&aside, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &aside).unwrap();
    fs::write(elsewhere.join("unfinished-restore"), "").unwrap();
    assert!(matches!(restore(&asked, &release()).unwrap_err(), RestoreError::InTheWay { .. }));
    assert!(elsewhere.join("wal/0.wal").exists());
    fs::remove_file(&aside).unwrap();
    if rustix::process::geteuid().is_root() {
        // Of another user of this machine.
        std::os::unix::fs::chown(&elsewhere, Some(65_534), None).unwrap();
        fs::rename(&elsewhere, &aside).unwrap();
        assert!(matches!(restore(&asked, &release()).unwrap_err(), RestoreError::InTheWay { .. }));
        assert!(aside.join("wal/0.wal").exists());
        fs::rename(&aside, &elsewhere).unwrap();
        std::os::unix::fs::chown(&elsewhere, Some(0), None).unwrap();
    } else {
        eprintln!("skipped: another user's folder, which root alone can make");
    }
    fs::rename(&elsewhere, &aside).unwrap();
    // One that was killed has left something, and the data directory is an empty folder.
    fs::create_dir(&data_dir).unwrap();
    restore(&asked, &release()).unwrap();
    started(&data_dir, &asked.config).0.unwrap();
    assert_eq!(left(), 2);

    let asked = restoring(&file, Path::new("/"), "m1", &[]);
    assert!(matches!(restore(&asked, &release()).unwrap_err(), RestoreError::NotEmpty { .. }));
    let asked = restoring(&file, &file, "m1", &[]);
    assert!(matches!(restore(&asked, &release()).unwrap_err(), RestoreError::Io { .. }));
}
