use std::fs;

use super::*;

fn config(folder: &Path, token: &str) -> Config {
    let flags = [
        "--name=m1".to_owned(),
        format!("--data-dir={}", folder.display()),
        "--initial-advertise-peer-urls=http://127.0.0.1:2380".into(),
        "--initial-cluster=m1=http://127.0.0.1:2380,m2=http://127.0.0.1:2381".into(),
        format!("--initial-cluster-token={token}"),
    ];
    Config::read(flags, [], crate::features::FEATURES).unwrap()
}

fn load(folder: &Path, token: &str) -> Result<Identity, String> {
    let data_dir = disk::real(folder).unwrap();
    let config = config(folder, token);
    Identity::load(&*data_dir, &*data_dir.folder("wal").unwrap(), &config, Release::new(3, 5, 0), None)
        .map_err(|error| error.to_string())
}

#[test]
fn a_member_stays_who_it_is_and_counts_its_starts() {
    let folder = tempfile::tempdir().unwrap();
    let first = load(folder.path(), "a").unwrap();
    let second = load(folder.path(), "a").unwrap();
    assert_eq!((first.starts, second.starts), (Starts(1), Starts(2)));
    assert_eq!((first.cluster, first.member), (second.cluster, second.member));
    assert!(first.incarnation.is_some() && first.incarnation == second.incarnation);
    assert!(second.start_id.is_some() && first.start_id != second.start_id);
    assert_eq!(second.published(), Start::default());
    second.publish(&*disk::real(folder.path()).unwrap()).unwrap();
    assert_eq!(second.published(), second.start());
    second.check(&config(folder.path(), "a")).unwrap();
    let refusal = second.check(&config(folder.path(), "b")).unwrap_err().to_string();
    assert!(refusal.contains("belongs to a member of cluster") && refusal.contains("--initial-cluster-token"));
    let third = load(folder.path(), "b").unwrap();
    assert_eq!((third.cluster, third.member), (first.cluster, first.member), "the flags are read once");
    assert_eq!(third.published(), second.start(), "what was published stays");
    let other = tempfile::tempdir().unwrap();
    assert_ne!(load(other.path(), "a").unwrap().incarnation, first.incarnation);
}

/// What was written once is read by every later release. Never written anew: another meaning is another field.
#[test]
fn the_bytes_are_those_of_the_release_that_first_wrote_them() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept {
        cluster: ClusterId(0x1234),
        member: MemberId(0xabc),
        starts: Starts(300),
        incarnation: None,
        published: Start::default(),
        origin: None,
    };
    write(&*disk::real(folder.path()).unwrap(), kept).unwrap();
    let golden = b"\x08\x01\x10\xb4\x24\x18\xbc\x15\x20\xac\x02\x7d\xd4\x83\xc9\xdb";
    let path = folder.path().join(NAME);
    assert_eq!(fs::read(&path).unwrap(), golden);
    assert_eq!(read(&path, golden).unwrap(), kept);
    let published = Start { starts: Starts(299), id: StartId::read(0x1112_1314_1516_1718) };
    let more = Kept { incarnation: Incarnation::read(0x0102_0304_0506_0708), published, ..kept };
    write(&*disk::real(folder.path()).unwrap(), more).unwrap();
    let golden =
        b"\x08\x01\x10\xb4\x24\x18\xbc\x15\x20\xac\x02\x29\x08\x07\x06\x05\x04\x03\x02\x01\x30\xab\x02\x39\x18\x17\
                   \x16\x15\x14\x13\x12\x11";
    assert_eq!(fs::read(&path).unwrap()[..golden.len()], golden[..]);
    assert_eq!(read(&path, &fs::read(&path).unwrap()).unwrap(), more);
}

/// A cluster that began with a snapshot is another one than the same flags found; its members know it by their data directory.
#[test]
fn a_restored_member_is_of_its_snapshot_s_cluster_at_every_start() {
    let (empty, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data_dir = disk::real(folder.path()).unwrap();
    let origin = Origin::of(&[7; 32]);
    let (cluster, member) = Identity::restored(&*data_dir, &config(folder.path(), "a"), origin).unwrap();
    let founded = load(empty.path(), "a").unwrap();
    assert_eq!((founded.member, founded.cluster == cluster), (member, false));
    let path = folder.path().join(NAME);
    let restored = fs::read(&path).unwrap();
    for starts in 1..=3 {
        let identity = load(folder.path(), "a").unwrap();
        assert_eq!((identity.cluster, identity.member, identity.starts), (cluster, member, Starts(starts)));
        identity.publish(&*data_dir).unwrap();
    }
    fs::write(&path, restored).unwrap();
    let refusal = load(folder.path(), "a").unwrap_err();
    assert!(refusal.contains("identity is an older copy than the rest"), "{refusal}");
    // Written once, read ever after.
    let kept = Kept {
        cluster: ClusterId(0x1234),
        member: MemberId(0xabc),
        starts: Starts(0),
        incarnation: None,
        published: Start::default(),
        origin: Some(Origin(NonZeroU64::new(0x0102_0304_0506_0708).unwrap())),
    };
    write(&*data_dir, kept).unwrap();
    let golden = b"\x08\x01\x10\xb4\x24\x18\xbc\x15\x41\x08\x07\x06\x05\x04\x03\x02\x01";
    assert_eq!(fs::read(&path).unwrap()[..golden.len()], golden[..]);
    assert_eq!(read(&path, &fs::read(&path).unwrap()).unwrap(), kept);
}

/// What is left of a crash between the two counts is no copy; whatever else they differ by is one (N-7).
#[test]
fn a_part_that_is_of_another_time_than_the_rest_is_refused_and_counts_no_start() {
    let folder = tempfile::tempdir().unwrap();
    let (identity, log) = (folder.path().join(NAME), folder.path().join("wal/starts"));
    let put = |path: &Path, bytes: Option<&[u8]>| match bytes {
        None => fs::remove_file(path).unwrap(),
        Some(bytes) => fs::write(path, bytes).unwrap(),
    };
    let mut written = Vec::new();
    for _ in 0..4 {
        load(folder.path(), "a").unwrap();
        written.push((fs::read(&identity).unwrap(), fs::read(&log).unwrap()));
    }
    // Of whose start it is: the same in all of them.
    let owner = (folder.path().join("wal").join(NAME), fs::read(folder.path().join("wal").join(NAME)).unwrap());
    // By the number of the start that wrote each; 0 is none.
    for (of_identity, of_log, outcome) in [
        (0, 0, Ok(1)),
        (0, 1, Ok(1)),
        (0, 2, Err("identity is missing, and the rest")),
        (1, 0, Err("wal/starts is missing, and the rest")),
        (1, 2, Ok(2)),
        (1, 3, Err("identity is an older copy than the rest")),
        (3, 2, Err("wal is an older copy than the rest")),
        (3, 3, Ok(4)),
    ] {
        let of_start = |of: usize| written.get(of.wrapping_sub(1));
        put(&identity, of_start(of_identity).map(|written| &*written.0));
        put(&log, of_start(of_log).map(|written| &*written.1));
        put(&owner.0, Some(&owner.1));
        let before = (fs::read(&identity).ok(), fs::read(&log).ok());
        let found = load(folder.path(), "a");
        match (&found, outcome) {
            (Ok(found), Ok(starts)) => {
                assert_eq!((found.starts, &fs::read(&log).unwrap()), (Starts(starts), &written[starts as usize - 1].1))
            }
            (Err(found), Err(words)) => {
                assert!(found.contains(words), "{found}");
                assert_eq!((fs::read(&identity).ok(), fs::read(&log).ok()), before, "nothing was changed");
            }
            _ => panic!("identity of start {of_identity}, log of start {of_log}: {found:?}"),
        }
    }
}

#[test]
fn the_log_of_another_member_is_refused_though_both_have_started_as_often() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    folders.iter().for_each(|folder| drop(load(folder.path(), "a").unwrap()));
    let [own, other] = folders.each_ref().map(|folder| folder.path().join("wal"));
    let aside = folders[0].path().join("aside");
    fs::rename(&own, &aside).unwrap();
    fs::rename(&other, &own).unwrap();
    for _ in ["at once", "and as often as it is started"] {
        let refusal = load(folders[0].path(), "a").unwrap_err();
        assert!(
            refusal.contains("are not those of one member") && refusal.contains("another data directory"),
            "{refusal}"
        );
    }
    fs::rename(&own, &other).unwrap();
    fs::rename(&aside, &own).unwrap();
    assert_eq!(load(folders[0].path(), "a").unwrap().starts, Starts(2), "no start was counted");
    // An earlier release has made none, and a start that was cut short one that nobody has.
    fs::remove_file(own.join(NAME)).unwrap();
    load(folders[0].path(), "a").unwrap();
    assert!(own.join(NAME).exists());
    fs::remove_file(folders[0].path().join(NAME)).unwrap();
    fs::remove_file(own.join("starts")).unwrap();
    assert_eq!(load(folders[0].path(), "a").unwrap().starts, Starts(1));
    load(folders[0].path(), "a").unwrap();
}

#[test]
fn a_damaged_file_is_refused_at_every_bit() {
    let folder = tempfile::tempdir().unwrap();
    load(folder.path(), "a").unwrap();
    let path = folder.path().join(NAME);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        fs::write(&path, flipped).unwrap();
        assert!(load(folder.path(), "a").is_err(), "bit {at}");
    }
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(load(folder.path(), "a").is_err(), "cut off at {length}");
    }
}
