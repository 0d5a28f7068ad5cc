use std::{fs, io::Read as _, path::PathBuf};

use flate2::read::GzDecoder;
use prost::Message as _;
use tempfile::TempDir;

use super::{records::Record, snapshot::Store, *};

/// The log of a member of 3.5.30 with `--enable-v2 --snapshot-count=8`, in whose life keys were written and deleted by the v2 API, then
/// users, and at last once more a key; and zeros behind it.
const LOG: &[u8] = include_bytes!("golden/3.5.30.wal.gz");
/// Its snapshots: with a key of v2, with users, and with what they leave once they were deleted.
const KEYS: (&str, &[u8]) = ("0000000000000002-0000000000000009.snap", include_bytes!("golden/3.5.30-keys.snap.gz"));
const USERS: (&str, &[u8]) = ("0000000000000002-0000000000000024.snap", include_bytes!("golden/3.5.30-users.snap.gz"));
const EMPTIED: (&str, &[u8]) =
    ("0000000000000002-0000000000000036.snap", include_bytes!("golden/3.5.30-emptied.snap.gz"));
/// The first file of a log.
const FIRST: &str = "0000000000000000-0000000000000000.wal";
/// Where its first snapshot stands in it, its last one, the user's last write, and the zeros; in bytes.
const AT_KEYS: usize = 1080;
const AT_EMPTIED: usize = 5824;
const AT_LAST: usize = 6304;
const AT_END: usize = 6424;

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

struct Member(TempDir);

impl Member {
    fn with(snapshots: &[(&str, &[u8])], log: &[(&str, &[u8])]) -> Self {
        let member = Self(tempfile::tempdir().unwrap());
        for folder in [member.snapshots(), member.log()] {
            fs::create_dir(folder).unwrap();
        }
        for (name, packed) in snapshots {
            fs::write(member.snapshots().join(name), unpacked(packed)).unwrap();
        }
        for (name, bytes) in log {
            fs::write(member.log().join(name), bytes).unwrap();
        }
        member
    }

    fn snapshots(&self) -> PathBuf {
        self.0.path().join("snap")
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("wal")
    }

    fn replayed(&self) -> Result<Replayed, Unread> {
        replayed(&self.snapshots(), &self.log())
    }
}

fn found(has_content: bool, has_requests: bool) -> (bool, bool) {
    (has_content, has_requests)
}

/// What of it users have asked for.
fn of_users(read: Replayed) -> (bool, bool) {
    (read.has_content, read.has_requests)
}

/// A log as etcd writes one, in files.
#[derive(Default)]
struct Writer {
    checksum: u32,
    bytes: Vec<u8>,
}

impl Writer {
    fn add(mut self, kind: Kind, data: Vec<u8>) -> Self {
        self.checksum = crc32c::crc32c_append(self.checksum, &data);
        self.frame(kind, Some(data))
    }

    fn frame(mut self, kind: Kind, data: Option<Vec<u8>>) -> Self {
        let record = Record { kind: Some(kind as i64), checksum: Some(self.checksum), data }.encode_to_vec();
        let padding = record.len().wrapping_neg() % 8;
        let head = record.len() as u64 | if padding == 0 { 0 } else { (0x80 | padding as u64) << 56 };
        self.bytes.extend(head.to_le_bytes());
        self.bytes.extend(&record);
        self.bytes.extend(vec![0; padding]);
        self
    }

    fn entry(self, term: u64, index: u64, data: &[u8]) -> Self {
        let entry = Entry { kind: None, term: Some(term), index: Some(index), data: Some(data.to_vec()) };
        self.add(Kind::Entry, entry.encode_to_vec())
    }

    fn snapshot(self, term: u64, index: u64) -> Self {
        self.add(Kind::Snapshot, Taken { index: Some(index), term: Some(term) }.encode_to_vec())
    }

    fn commit(self, index: u64) -> Self {
        self.add(Kind::State, State { commit: Some(index) }.encode_to_vec())
    }

    /// Ends a file, and gives it with the next one.
    fn cut(mut self) -> (Vec<u8>, Self) {
        let file = std::mem::take(&mut self.bytes);
        (file, self.frame(Kind::Checksum, None))
    }

    fn begin() -> Self {
        Self::default().frame(Kind::Checksum, None).snapshot(0, 0)
    }
}

const OF_USERS: &[u8] = b"\x12\x03PUT\x1a\x06/1/old";
const OF_THE_CLUSTER: &[u8] = b"\x12\x03PUT\x1a\x0a/0/version\x22\x053.5.0";
const OF_V3: &[u8] = b"\x22\x06\n\x01k\x12\x01v";

#[test]
fn what_a_member_of_3_5_would_read_back_is_told_at_each_time_of_its_life() {
    let log = unpacked(LOG);
    for (snapshots, until, expected) in [
        (&[][..], 456, found(false, false)), // it has published itself
        (&[], 584, found(false, false)),     // and the cluster version
        (&[], AT_KEYS, found(false, true)),
        (&[KEYS], AT_KEYS, found(false, true)), // written, and not yet in the log
        (&[KEYS], 1120, found(true, false)),
        (&[KEYS], AT_LAST, found(true, true)), // what has deleted it counts, too
        (&[KEYS, USERS], 4120, found(true, false)),
        (&[KEYS, USERS], AT_EMPTIED, found(true, true)),
        (&[KEYS, USERS, EMPTIED], AT_EMPTIED, found(true, true)),
        (&[KEYS, USERS, EMPTIED], AT_LAST, found(false, false)),
        (&[EMPTIED], AT_END, found(false, true)),
    ] {
        let end = vec![0; 4096];
        let member = Member::with(snapshots, &[(FIRST, &[&log[..until], &end].concat())]);
        let read = member.replayed().unwrap();
        assert_eq!(of_users(read), expected, "{} snapshots until {until}", snapshots.len());
        // What the members have asked for themselves stands there, too, but behind the last snapshot.
        assert_eq!(read.has_old, expected.1 || snapshots.is_empty(), "{} snapshots until {until}", snapshots.len());
        assert!(has_v2_requests(&member.log()).unwrap(), "until {until}");
    }
}

#[test]
fn a_snapshot_says_where_it_stands_and_which_version_its_cluster_had() {
    for ((name, packed), has_content) in [(KEYS, true), (USERS, true), (EMPTIED, false)] {
        let snapshot = Snapshot::read(&unpacked(packed)).unwrap();
        assert_eq!(name, format!("{:016x}-{:016x}.snap", snapshot.at.term, snapshot.at.index));
        let version = Some(proto::ClusterVersion { major: 3, minor: 5 });
        assert_eq!(snapshot.store, Some(Store { version, has_content }));
    }
}

#[test]
fn users_data_of_the_v2_store_is_found_wherever_etcd_looks_for_it() {
    for (children, expected) in [
        (r#""0":{"Children":{"version":{"Value":"3.5.0"}}},"1":{"Children":{}}"#, Some(false)),
        (r#""0":{"Children":null},"1":{"Children":null,"Value":"x"}"#, Some(false)),
        (r#""1":{"Children":{"a":{"Value":"x"}}}"#, Some(true)),
        (r#""1":{"Children":{"_a":{"Value":"x"}}}"#, Some(false)), // hidden, and 3.6 starts on it
        (r#""1":{"Children":{"_a":{},"\u0061":7}}"#, Some(true)),
        (r#""3":{"Children":{"a":{}}}"#, Some(true)),
        (r#""2":{"Children":{"enabled":{"Value":"false"},"roles":{"Children":{}},"users":{}}}"#, Some(false)),
        (r#""2":{"Children":{"enabled":{"Value":"true"},"roles":{"Children":{}}}}"#, Some(false)),
        (r#""2":{"Children":{"roles":{"Children":{"guest":{}}}}}"#, Some(true)),
        (r#""1":7"#, None),
        (r#""1":{"Children":["a"]}"#, None),
        ("", Some(false)),
    ] {
        let json = format!(r#"{{"Root":{{"Path":"/","Children":{{{children}}}}},"Stats":[{{}}]}}"#);
        assert_eq!(store(json).map(|store| store.has_content), expected, "{children}");
    }
    let deep = format!(r#""1":{{"Children":{}1{}}}"#, r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let found = store(format!(r#"{{"Root":{{"Children":{{{deep}}}}}}}"#));
    assert_eq!(found.map(|store| store.has_content), Some(true));
    for no_store in ["", "{}", "[]", r#"{"Root":{}}"#, r#"{"Root":{"Children":null}}"#, &"[".repeat(1 << 20)] {
        assert_eq!(store(no_store.into()), None);
    }
}

fn store(json: String) -> Option<Store> {
    let data = snapshot::OfRaft { data: Some(json.into()), metadata: None }.encode_to_vec();
    let checked = snapshot::Checked { checksum: Some(crc32c::crc32c(&data)), data: Some(data) };
    Snapshot::read(&checked.encode_to_vec()).unwrap().store
}

#[test]
fn entries_that_were_written_over_are_not_replayed() {
    for (log, has_requests) in [
        (Writer::begin().entry(1, 1, OF_USERS).entry(2, 1, OF_V3).commit(1), false),
        (Writer::begin().entry(1, 1, OF_USERS).entry(1, 2, OF_USERS).entry(2, 2, OF_V3).commit(2), true),
        (Writer::begin().entry(1, 1, OF_V3).entry(1, 2, OF_USERS).entry(2, 1, OF_V3).commit(2), false),
        (Writer::begin().entry(1, 1, OF_THE_CLUSTER).entry(2, 2, OF_V3).commit(2), false),
    ] {
        let member = Member::with(&[], &[(FIRST, &log.bytes)]);
        assert_eq!(member.replayed().unwrap().has_requests, has_requests);
    }
}

#[test]
fn a_log_of_several_files_is_read_from_where_the_snapshot_stands() {
    let (first, rest) = Writer::begin().entry(2, 1, OF_USERS).entry(2, 2, OF_V3).commit(2).cut();
    let (second, rest) = rest.entry(2, 3, OF_V3).commit(9).snapshot(2, 9).entry(2, 10, OF_V3).cut();
    let third = rest.commit(10).entry(2, 11, OF_THE_CLUSTER).bytes;
    let names = [FIRST, "0000000000000001-0000000000000003.wal", "0000000000000002-000000000000000b.wal"];
    let all = [(names[0], &first[..]), (names[1], &second), (names[2], &third)];
    // It stands at 9: what is older was deleted, and was never asked for.
    assert_eq!(of_users(Member::with(&[KEYS], &all[1..]).replayed().unwrap()), found(true, false));
    assert_eq!(of_users(Member::with(&[KEYS], &all).replayed().unwrap()), found(true, false));
    assert!(has_v2_requests(&Member::with(&[], &all[1..]).log()).unwrap());
    assert!(!has_v2_requests(&Member::with(&[], &all[1..2]).log()).unwrap());
    for broken in [&[all[0], all[2]][..], &all[2..], &[(names[0], &second), (names[1], &first)], &[]] {
        assert!(matches!(Member::with(&[KEYS], broken).replayed(), Err(Unread::Damaged)));
    }
    // Only the last file may end torn.
    let torn = [(names[1], &second[..second.len() - 5]), all[2]];
    assert!(matches!(Member::with(&[KEYS], &torn).replayed(), Err(Unread::Damaged)));
    // A snapshot that nobody has agreed on is none.
    let early = Writer::begin().entry(2, 1, OF_USERS).snapshot(2, 9).commit(8);
    assert_eq!(of_users(Member::with(&[KEYS], &[(FIRST, &early.bytes)]).replayed().unwrap()), found(false, true));
}

#[test]
fn a_tail_that_is_being_written_is_the_end() {
    let log = unpacked(LOG);
    let read = |bytes: &[u8]| Member::with(&[EMPTIED], &[(FIRST, bytes)]).replayed();
    // Cut anywhere behind the last snapshot's record, and with zeros there, as a page that is not written yet.
    for end in AT_EMPTIED + 40..AT_LAST {
        assert_eq!(of_users(read(&log[..end]).unwrap()), found(false, false), "cut at {end}");
    }
    let long = Writer { bytes: log[..AT_LAST].to_vec(), checksum: 0 }.entry(2, 60, &vec![7; 3000]).bytes;
    for end in [AT_LAST + 8, 6656, 7168, 9000] {
        assert_eq!(
            of_users(read(&[&long[..end], &vec![0; long.len() - end]].concat()).unwrap()),
            found(false, false),
            "{end}"
        );
    }
}

#[test]
fn a_length_that_no_file_has_costs_nothing() {
    let log = unpacked(LOG);
    let lengths = [u64::MAX, u64::MAX >> 8, 1 << 62, 1 << 55, 1 << 40, 1 << 63, 20_000];
    for length in lengths {
        let bomb = [&log[..AT_LAST], &length.to_le_bytes(), &log[AT_LAST + 8..]].concat();
        let read = Member::with(&[EMPTIED], &[(FIRST, &bomb)]).replayed();
        assert!(
            matches!(read, Ok(Replayed { has_requests: false, .. }) | Err(Unread::Damaged)),
            "{length:x}: {read:?}"
        );
    }
    // A file with a hole, which is as long as it says.
    let member = Member::with(&[EMPTIED], &[(FIRST, &[&log[..AT_LAST], &(1_u64 << 30).to_le_bytes()].concat())]);
    fs::File::options().write(true).open(member.log().join(FIRST)).unwrap().set_len(2 << 30).unwrap();
    assert!(matches!(member.replayed(), Err(Unread::TooLong)));
    let huge = Member::with(&[], &[(FIRST, &log)]);
    fs::File::create(huge.snapshots().join(EMPTIED.0)).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(huge.replayed(), Err(Unread::NotUnderstood)));
}

#[test]
fn only_plain_files_are_opened() {
    let log = unpacked(LOG);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("log"), &log).unwrap();
    let member = Member::with(&[EMPTIED], &[]);
    std::os::unix::fs::symlink(outside.path().join("log"), member.log().join(FIRST)).unwrap();
    assert!(matches!(member.replayed(), Err(Unread::File(_))), "a link");
    fs::remove_file(member.log().join(FIRST)).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        member.log().join(FIRST),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(matches!(member.replayed(), Err(Unread::File(_))), "a pipe that nobody opens");
    fs::remove_file(member.log().join(FIRST)).unwrap();
    // The folder itself may lie elsewhere.
    fs::remove_dir(member.log()).unwrap();
    fs::rename(outside.path().join("log"), outside.path().join(FIRST)).unwrap();
    std::os::unix::fs::symlink(outside.path(), member.log()).unwrap();
    assert_eq!(of_users(member.replayed().unwrap()), found(false, true));
}

/// Each byte of log and snapshot: an answer or an error, and neither a panic nor an endless reading.
#[test]
fn no_damage_is_the_readers_end() {
    let log = unpacked(LOG)[..2048].to_vec();
    let member = Member::with(&[], &[(FIRST, &log)]);
    let (folder, mut read_through) = (Folder::open(&member.log()).unwrap(), 0);
    for at in 0..log.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = log.clone();
            bytes[at] = value;
            fs::write(member.log().join(FIRST), &bytes).unwrap();
            read_through += usize::from(read(&folder, &[FIRST.into()], Position::default(), &mut { MAX_LOG }).is_ok());
        }
    }
    assert!(read_through > 100, "the damage is not all found: {read_through}");
    for (_, packed) in [KEYS, EMPTIED] {
        let whole = unpacked(packed);
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let found = Snapshot::read(&bytes);
                // A number may be written in more ways than one.
                assert!(found.is_none() || found == Snapshot::read(&whole), "its checksum sees each of them: {at}");
                // Behind a checksum that is right, as only a liar writes it.
                let data = bytes[at.min(16)..].to_vec();
                let checked = snapshot::Checked { checksum: Some(crc32c::crc32c(&data)), data: Some(data) };
                let _ = Snapshot::read(&checked.encode_to_vec());
            }
        }
    }
}
