use super::*;

fn snapshot(json: &str) -> Vec<u8> {
    let of_raft = OfRaft { data: Some(json.into()) };
    Checked { data: Some(of_raft.encode_to_vec()) }.encode_to_vec()
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
    let old = b"\x08\x01\x12\x03PUT\x1a\x0a/0/version\x22\x053.5.0";
    // As a user of 3.6 may write it as a value.
    let new = b"put /0/version and \x12\x03PUT\x1a\x03/1/ or PUT /0/";
    for (before, entry, is_old) in [
        (0, &old[..], true),
        ((1 << 20) - 7, old, true),
        (3 << 20, old, true),
        (0, new, false),
        ((1 << 20) - 20, new, false),
    ] {
        let log = [vec![0; before], entry.to_vec(), vec![0; 99]].concat();
        // In small pieces, too, as a file may be read.
        for piece in [7, usize::MAX] {
            let mut left = &log[..];
            let pieces = std::iter::from_fn(|| {
                let (one, rest) = left.split_at(piece.max(log.len() / 50).min(left.len()));
                left = rest;
                (!one.is_empty()).then_some(one)
            });
            let log = pieces.fold(Box::new(io::empty()) as Box<dyn Read>, |log, piece| Box::new(log.chain(piece)));
            assert_eq!(holds_old_entry(log).unwrap(), is_old, "{before} {entry:?}");
        }
    }
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
