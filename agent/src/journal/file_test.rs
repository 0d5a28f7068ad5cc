use std::{fs, process::Command};

use tempfile::TempDir;

use super::*;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Step {
    number: u32,
    words: String,
    #[serde(skip)]
    unknown: Unknown,
}

keeps! { Step }

fn step(number: u32) -> Step {
    let words = format!("line\nbreak, \"quote\" and ümlaut {}", "x".repeat(number as usize * 7));
    Step { number, words, unknown: Unknown::default() }
}

fn header() -> Header {
    let host = HostId { machine: Some(1), instance: 2 };
    Header::new(ClusterId(0xabc), host, [("orders-1".to_owned(), MemberId(7))].into())
}

/// A journal of this many steps, and the offset at which each of its lines ends.
fn written(steps: u32) -> (TempDir, PathBuf, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut journal = Journal::create(&path, header()).unwrap();
    let mut ends = vec![journal.length];
    for number in 0..steps {
        journal.append(&step(number)).unwrap();
        ends.push(journal.length);
    }
    (folder, path, ends)
}

fn open(path: &Path) -> Result<Option<Opened<Step>>, JournalError> {
    Journal::open(path)
}

fn steps(count: u32) -> Vec<Step> {
    (0..count).map(step).collect()
}

#[test]
fn what_was_appended_is_read_back_and_appended_to() {
    let (_folder, path, _) = written(3);
    let (mut journal, records) = open(&path).unwrap().unwrap();
    assert_eq!((records, journal.header()), (steps(3), &header()));
    journal.append(&step(3)).unwrap();
    assert_eq!(open(&path).unwrap().unwrap().1, steps(4));
    assert!(open(&path.with_extension("absent")).unwrap().is_none());
}

#[test]
fn a_journal_cut_at_any_byte_keeps_every_whole_record_and_goes_on() {
    let (_folder, path, ends) = written(4);
    let whole = fs::read(&path).unwrap();
    for cut in ends[1]..=*ends.last().unwrap() {
        let left = ends.iter().filter(|end| **end <= cut).count() as u32 - 1;
        for zeroes in [0, 1, 4096] {
            let mut bytes = whole[..cut as usize].to_vec();
            bytes.extend(vec![0; zeroes]);
            fs::write(&path, &bytes).unwrap();
            let (mut journal, records) = open(&path).unwrap().unwrap();
            assert_eq!(records, steps(left), "cut at {cut}, {zeroes} zeroes");
            assert_eq!(fs::metadata(&path).unwrap().len(), ends[left as usize], "the tail is gone from the file");
            journal.append(&step(left)).unwrap();
            assert_eq!(open(&path).unwrap().unwrap().1, steps(left + 1), "cut at {cut}, {zeroes} zeroes");
        }
    }
}

#[test]
fn a_last_line_with_holes_of_zeroes_is_a_torn_tail() {
    let (_folder, path, ends) = written(3);
    let whole = fs::read(&path).unwrap();
    for start in ends[2]..ends[3] {
        let mut bytes = whole.clone();
        bytes[ends[2] as usize..=start as usize].fill(0);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(open(&path).unwrap().unwrap().1, steps(2), "zeroes up to {start}");
    }
}

#[test]
fn a_flipped_bit_is_damage_or_costs_the_last_line_and_never_changes_a_record() {
    let (_folder, path, ends) = written(4);
    let whole = fs::read(&path).unwrap();
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << bit;
            fs::write(&path, &bytes).unwrap();
            match open(&path) {
                Ok(opened) => {
                    assert!(place as u64 >= ends[3], "bit {bit} of byte {place} went unnoticed");
                    assert_eq!(opened.unwrap().1, steps(3), "bit {bit} of byte {place}");
                }
                Err(JournalError::Damaged { line, .. }) => {
                    let hit = ends.iter().filter(|end| **end <= place as u64).count() + 1;
                    assert_eq!(line, hit, "bit {bit} of byte {place}");
                }
                Err(error) => panic!("bit {bit} of byte {place}: {error}"),
            }
        }
    }
}

#[test]
fn the_header_is_never_cut_away() {
    let (_folder, path, ends) = written(0);
    let whole = fs::read(&path).unwrap();
    for cut in 0..ends[0] as usize {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(matches!(open(&path), Err(JournalError::Damaged { line: 1, .. })), "cut at {cut}");
        assert_eq!(fs::read(&path).unwrap(), &whole[..cut], "left as it was found");
    }
}

#[test]
fn a_journal_of_a_newer_agent_or_another_cluster_is_refused_and_left_alone() {
    let (_folder, path, _) = written(0);
    let future = line_of(&serde_json::json!({"format": 2, "shape": "unknown"}));
    fs::write(&path, &future).unwrap();
    let error = open(&path).unwrap_err();
    assert!(error.to_string().contains("format 2, written by a newer agent"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), future);

    let journal = Journal::<Step>::create(&path, header()).unwrap();
    journal.check_cluster(ClusterId(0xabc)).unwrap();
    let error = journal.check_cluster(ClusterId(0xdef)).unwrap_err();
    assert!(error.to_string().contains("belongs to cluster abc, not to def; "), "{error}");
}

#[test]
fn a_whole_line_that_is_no_record_is_named() {
    let (_folder, path, _) = written(2);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(line_of(&serde_json::json!({"other": 1})));
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(open(&path), Err(JournalError::Unreadable { line: 4, .. })));
}

#[test]
fn a_rewritten_journal_holds_what_was_given_and_goes_on() {
    let (_folder, path, _) = written(5);
    let (mut journal, _) = open(&path).unwrap().unwrap();
    let members: BTreeMap<_, _> = [("orders-2".to_owned(), MemberId(8))].into();
    journal.rewrite(members.clone(), &steps(2)).unwrap();
    journal.append(&step(2)).unwrap();
    let (journal, records) = open(&path).unwrap().unwrap();
    assert_eq!((records, &journal.header().members), (steps(3), &members));
    assert_eq!(journal.header().cluster, header().cluster);
}

/// A file system of one page or two, gone with the value.
struct Small(TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(folder.path()).output();
        match mount {
            Ok(done) if done.status.success() => Some(Self(folder)),
            _ => {
                eprintln!("skipped: a small tmpfs cannot be mounted here (it takes root)");
                None
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_refuses_the_record_and_keeps_the_others() {
    let Some(disk) = Small::mount() else { return };
    let path = disk.0.path().join("journal");
    let mut journal = Journal::create(&path, header()).unwrap();
    journal.append(&step(0)).unwrap();
    let mut written = 1;
    let error = loop {
        match journal.append(&step(written)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    let JournalError::Append { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::metadata(&path).unwrap().len(), journal.length, "the half line is gone");
    assert_eq!(open(&path).unwrap().unwrap().1, steps(written));
    assert!(
        matches!(journal.rewrite(BTreeMap::new(), &steps(written)), Err(JournalError::File(_))),
        "no space for a second file"
    );
    assert_eq!(open(&path).unwrap().unwrap().1, steps(written));

    // Once there is space, it goes on where it was.
    Command::new("mount").args(["-o", "remount,size=64k"]).arg(disk.0.path()).status().unwrap();
    journal.append(&step(written)).unwrap();
    assert_eq!(open(&path).unwrap().unwrap().1, steps(written + 1));
}

#[test]
fn what_a_newer_agent_wrote_outlives_a_rewrite() {
    let (_folder, path, _) = written(1);
    let text = fs::read_to_string(&path).unwrap();
    let newer = text.lines().flat_map(|line| {
        let mut json: Value = serde_json::from_str(&line[9..]).unwrap();
        json["more"] = serde_json::json!([{ "of": "it" }]);
        line_of(&json)
    });
    fs::write(&path, newer.collect::<Vec<u8>>()).unwrap();
    let (mut journal, records) = open(&path).unwrap().unwrap();
    journal.rewrite([("orders-2".to_owned(), MemberId(8))].into(), &records).unwrap();
    journal.append(&step(1)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let has_more: Vec<_> = text.lines().map(|line| line.contains(r#""more":[{"of":"it"}]"#)).collect();
    assert_eq!(has_more, [true, true, false], "{text}");
    assert!(text.contains("orders-2"));
}
