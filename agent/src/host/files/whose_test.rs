use std::fs;

use super::*;

fn member(cluster: u64, member: u64) -> Whose {
    Whose::Member { cluster: ClusterId(cluster), member: MemberId(member) }
}

/// A record as etcd writes it, padded to eight bytes.
fn record(kind: i64, data: Option<Vec<u8>>) -> Vec<u8> {
    let bytes = Record { kind: Some(kind), data }.encode_to_vec();
    let padding = (8 - bytes.len() % 8) % 8;
    let head = bytes.len() as u64 | if padding > 0 { (0x80 | padding as u64) << 56 } else { 0 };
    [&head.to_le_bytes()[..], &bytes, &vec![0; padding]].concat()
}

#[test]
fn the_data_of_an_etcd_member_says_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let wal = folder.path().join("member/wal");
    let whose = |data: &Path| whose(data, &wal);
    assert_eq!(whose(folder.path()), Whose::Nobody);
    assert_eq!(whose(&folder.path().join("absent")), Whose::Nobody);
    fs::create_dir_all(&wal).unwrap();
    assert_eq!(whose(folder.path()), Whose::Nobody, "a folder is no log");
    let ids = Metadata { member: Some(7), cluster: Some(0xc) }.encode_to_vec();
    let log = [record(CHECKSUM, None), record(METADATA, Some(ids))].concat();
    let path = wal.join("0000000000000000-0000000000000000.wal");
    fs::write(&path, &log).unwrap();
    assert_eq!(whose(folder.path()), member(0xc, 7));
    for end in 0..log.len() - 8 {
        fs::write(&path, &log[..end]).unwrap();
        assert!(matches!(whose(folder.path()), Whose::Unknown(_)), "cut at {end}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir_all(folder.path().join("member/snap")).unwrap();
    fs::write(folder.path().join("member/snap/db"), "").unwrap();
    assert_eq!(whose(folder.path()), Whose::NoLog);
}

#[test]
fn the_data_of_a_bundled_node_says_whose_it_is() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/golden/disks");
    for release in ["3.5.0", "3.6.0", "3.7.0"] {
        let data = golden.join(release).join("data");
        let found = whose(&data, &data.join("member/wal"));
        assert!(matches!(found, Whose::Member { .. }), "{release}: {found:?}");
    }
}

#[test]
fn what_is_no_log_is_seen_beside_one() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!has_more_than_a_log(&folder.path().join("absent")));
    assert!(!has_more_than_a_log(folder.path()));
    for name in ["0000000000000000-0000000000000000.wal", "1.tmp", "0.wal.broken", "lost+found", "archived-1-2"] {
        fs::write(folder.path().join(name), "").unwrap();
        assert!(!has_more_than_a_log(folder.path()), "{name}");
    }
    for name in ["member", "notes.txt", "wal"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        assert!(has_more_than_a_log(folder.path()), "{name}");
        fs::remove_dir(folder.path().join(name)).unwrap();
    }
    let file = folder.path().join("1.tmp");
    assert!(has_more_than_a_log(&file), "it is no folder");
}

#[test]
fn data_is_put_aside_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for _ in 0..2 {
        fs::create_dir(&data).unwrap();
        fs::write(data.join("file"), "kept").unwrap();
        let aside = put_aside(&data, Some(MemberId(7))).unwrap();
        assert!(!data.exists());
        assert_eq!(fs::read_to_string(aside.join("file")).unwrap(), "kept");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let within = folder.path().join("mount");
    fs::create_dir_all(within.join("member")).unwrap();
    let aside = put_aside_within(&within, "archived-1").unwrap();
    assert!(aside.join("member").exists() && !within.join("member").exists());
    assert!(put_aside_within(&within, "archived-2").unwrap().exists(), "what was put aside stays where it is");
    assert!(within.join("archived-1/member").exists());
}
