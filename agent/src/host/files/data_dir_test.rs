use std::io::Read as _;

use flate2::read::GzDecoder;

use super::*;

/// `snappb.Snapshot` around a `raftpb.Snapshot`.
fn snapshot(json: &str) -> Vec<u8> {
    let field = |head: u8, bytes: &[u8]| {
        let mut length = Vec::new();
        prost::encoding::encode_varint(bytes.len() as u64, &mut length);
        [&[head][..], &length, bytes].concat()
    };
    let of_raft = field(0x0a, json.as_bytes());
    let mut checked = vec![0x08];
    prost::encoding::encode_varint(crc32c::crc32c(&of_raft).into(), &mut checked);
    [checked, field(0x12, &of_raft)].concat()
}

fn store(version: &str) -> String {
    format!(r#"{{"Root":{{"Path":"/","Children":{{"0":{{"Children":{{"version":{{"Value":"{version}"}}}}}}}}}}}}"#)
}

#[test]
fn the_newest_snapshot_says_which_version_its_cluster_had() {
    let folder = tempfile::tempdir().unwrap();
    let (data, snap) = (folder.path().to_owned(), folder.path().join("member/snap"));
    let seen = || DataDir { data: data.clone(), wal: None }.snapshot().unwrap();
    assert_eq!(seen(), Snapshot::NotEtcd);
    fs::create_dir_all(&snap).unwrap();
    fs::write(snap.join("db"), "").unwrap();
    assert_eq!(seen(), Snapshot::Missing);
    let version = |text: &str| text.parse::<proto::Release>().unwrap().cluster_version();
    for (name, bytes, expected) in [
        ("0000000000000001-0000000000000009.snap", snapshot(&store("3.5.0")), Snapshot::Holds(version("3.5.0"))),
        ("0000000000000002-0000000000000003.snap", snapshot(&store("3.6.0")), Snapshot::Holds(version("3.6.0"))),
        // An older one says nothing, whenever it was written.
        ("0000000000000001-000000000000000a.snap", snapshot(&store("3.5.0")), Snapshot::Holds(version("3.6.0"))),
        ("0000000000000002-0000000000000004.snap", snapshot("{}"), Snapshot::Unknown),
        ("0000000000000002-0000000000000005.snap", b"\xff\xff".to_vec(), Snapshot::Unknown),
        ("0000000000000002-0000000000000006.snap", snapshot(&"[".repeat(1 << 20)), Snapshot::Unknown),
    ] {
        fs::write(snap.join(name), bytes).unwrap();
        assert_eq!(seen(), expected, "{name}");
    }
}

#[test]
fn what_an_older_release_wrote_is_found_in_the_log_wherever_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (folder.path().join("data"), folder.path().join("log"));
    let seen = |wal: Option<&Path>| DataDir { data: data.clone(), wal: wal.map(Path::to_owned) }.has_old_entries();
    assert!(seen(None).is_err() && seen(Some(&elsewhere)).is_err());
    for (log, wal) in [(data.join("member/wal"), None), (elsewhere.clone(), Some(elsewhere.as_path()))] {
        fs::create_dir_all(&log).unwrap();
        assert!(!seen(wal).unwrap().unwrap(), "no file, no entry");
        let mut bytes = Vec::new();
        GzDecoder::new(&include_bytes!("replay/golden/3.5.30.wal.gz")[..]).read_to_end(&mut bytes).unwrap();
        fs::write(log.join("0000000000000000-0000000000000000.wal"), &bytes).unwrap();
        assert!(seen(wal).unwrap().unwrap());
        // Before the member has published itself.
        fs::write(log.join("0000000000000000-0000000000000000.wal"), &bytes[..248]).unwrap();
        assert!(!seen(wal).unwrap().unwrap());
    }
}

#[test]
fn a_member_without_a_database_of_v3_is_told_from_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir { data: folder.path().to_owned(), wal: None };
    assert!(!data.has_no_database().unwrap());
    assert_eq!(data.replayed().unwrap(), None);
    fs::create_dir_all(folder.path().join("member/snap")).unwrap();
    assert!(data.has_no_database().unwrap());
    fs::write(folder.path().join("member/snap/db"), "").unwrap();
    assert!(!data.has_no_database().unwrap());
    assert!(DataDir { data: folder.path().join("gone"), wal: None }.has_no_database().is_err());
}

#[test]
fn a_disk_without_room_for_the_next_files_is_refused() {
    for (free, wanted, is_refused) in
        [(Some(0), 64, true), (Some(63), 64, true), (Some(64), 64, false), (None, 64, false), (Some(0), 0, false)]
    {
        assert_eq!(judge_room(free, wanted).is_err(), is_refused, "{free:?} {wanted}");
    }
    let no_room = NoRoom { free: 1_999_999, wanted: 64_000_001 };
    assert!(no_room.to_string().starts_with("1 MB are free"), "{no_room}");
    assert!(no_room.to_string().contains("take 65 MB"), "{no_room}");
}
