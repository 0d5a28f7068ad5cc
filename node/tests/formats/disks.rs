//! A data directory of each release, as its executable left it: every later release holds the same afterwards.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use consensus::{Applier, Snapshots};
use disk::Reader;
use node::{
    cluster::member::Starts,
    features::Registry,
    host::RealHost,
    machine::{Machine, Proposals},
    migrate,
    restore::{self, HashCheck},
    state::{Form, State},
};
use proto::{ClusterVersion, MemberId, Release};
use tempfile::TempDir;
use wal::{Options, Wal};

use crate::{
    RELEASES, formats, golden,
    wire::{Known, Met},
};

/// The disks, which release wrote them, and the lowest that reads them: one was put at a lower version while its members ran, one while nobody did.
const DISKS: [(&str, &str, &str); 5] = [
    ("3.5.0", "3.5.0", "3.5.0"),
    ("3.6.0", "3.6.0", "3.6.0"),
    ("3.7.0", "3.7.0", "3.7.0"),
    ("3.7.0-downgraded", "3.7.0", "3.6.0"),
    ("3.7.0-migrated", "3.7.0", "3.6.0"),
];
/// Fields that no disk of one member has, and why.
const UNMET: [(&str, &str); 1] = [(
    "baton.entry.Identity.origin",
    "none was restored (`a_file_that_was_saved_once_is_read_by_every_later_release`)",
)];

fn disk(name: &str) -> PathBuf {
    golden("disks").join(name)
}

/// A copy, as whoever opens it writes there.
fn copied(name: &str) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_all(&disk(name).join("data"), copy.path());
    copy
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy_all(&entry.path(), &target);
        } else {
            let mut bytes = fs::read(entry.path()).unwrap();
            if entry.path().extension().is_some_and(|suffix| suffix == "wal") {
                // The zeroes that it was made with are not kept.
                bytes.resize(1 << 20, 0);
            }
            fs::write(target, bytes).unwrap();
        }
    }
}

fn log(data: &Path) -> Wal {
    Wal::open_in(disk::real(&data.join("wal")).unwrap(), Options::default()).unwrap()
}

/// What a release holds once it has read this.
fn read(data: &Path, release: &str) -> Result<State, Box<dyn std::error::Error>> {
    let release: Release = release.parse()?;
    let machine = Machine::new(release.clone(), Registry::of(&release), Proposals::new(MemberId(0), Starts(0)));
    let snapshots = Snapshots::open(disk::real(&data.join("snap"))?)?;
    let applier = Applier::open(Arc::new(machine.clone()), snapshots)?;
    applier.replay(&log(data))?;
    Ok(machine.read(State::clone))
}

/// What the release said that it holds.
fn saved(name: &str) -> State {
    let mut state = restore::read(&disk(name).join("saved"), HashCheck::Done).unwrap().state;
    if name.ends_with("-migrated") {
        state.lower_to(ClusterVersion { major: 3, minor: 6 });
    }
    state
}

/// As the first release would store it: the whole of it.
fn bytes(state: &State) -> Vec<u8> {
    state.snapshot(Form::FIRST).flatten().collect()
}

fn release_of(release: &str) -> Release {
    release.parse().unwrap()
}

#[test]
fn every_release_holds_what_an_earlier_one_has_stored_and_a_lower_one_refuses() {
    for (name, _, lowest) in DISKS {
        let expected = saved(name);
        for release in ["3.5.0", "3.6.0", "3.6.1", "3.7.0", "3.8.0", "3.9.0"] {
            let copy = copied(name);
            let found = read(copy.path(), release);
            if release_of(release) < release_of(lowest) {
                let error = found.expect_err("it is of a later release");
                let told = std::iter::successors(Some(&*error), |error| (*error).source()).map(ToString::to_string);
                let told = told.collect::<Vec<_>>().join(": ");
                assert!(told.contains("and later, and this is"), "{name} read by {release}: {told}");
            } else {
                let found = found.unwrap_or_else(|error| panic!("{name} read by {release}: {error:?}"));
                assert!(
                    bytes(&found) == bytes(&expected),
                    "{name} read by {release} is another state: {found:#?}\nnot {expected:#?}"
                );
            }
        }
    }
}

/// A data directory that was put together from those of two members is nobody's.
#[test]
fn a_mixture_of_two_disks_is_lowered_by_nobody() {
    let lower = |data: &Path| {
        let target = ClusterVersion { major: 3, minor: 6 };
        migrate::migrate(&RealHost::default(), data, target, &release_of("3.7.0")).map_err(|error| error.to_string())
    };
    let whole = copied("3.7.0");
    assert!(lower(whole.path()).is_ok());
    for (part, expected) in [("identity", "not those of one member"), ("snap", "not those of one member"), ("wal", "")]
    {
        let (mixed, other) = (copied("3.7.0"), copied("3.7.0-downgraded"));
        let (to, from) = (mixed.path().join(part), other.path().join(part));
        if part != "identity" {
            fs::remove_dir_all(&to).unwrap();
        }
        fs::rename(from, to).unwrap();
        let error = lower(mixed.path()).expect_err(part);
        println!("{error}");
        assert!(error.contains(expected), "{part}: {error}");
        assert!(!mixed.path().join(migrate::MARK).exists());
    }
}

/// What is in the files of a disk, by the words of a release.
fn walk(data: &Path, known: &Known, met: &mut Met) -> Result<(), String> {
    let file = |name: &str| fs::read(data.join(name)).unwrap();
    known.walk("baton.entry.Identity", &file("identity"), met)?;
    known.walk("baton.entry.Started", &file("wal/starts"), met)?;
    let log = log(data);
    known.walk("baton.raft.Vote", &log.vote().unwrap().unwrap(), met)?;
    for entry in log.entries(.., 64 << 20).unwrap() {
        known.walk("baton.raft.Payload", &entry.payload, met).map_err(|error| format!("{:?}: {error}", entry.id))?;
    }
    let folder = disk::real(&data.join("snap")).unwrap();
    for name in folder.names().unwrap().iter().filter(|name| name.ends_with(".snap")) {
        let mut bytes = Vec::new();
        Reader::new(folder.open(name).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
        let mut rest = &bytes[..];
        known.walk_delimited("baton.raft.SnapshotHead", &mut rest, met)?;
        walk_state(rest, known, met)?;
    }
    Ok(())
}

fn walk_state(mut bytes: &[u8], known: &Known, met: &mut Met) -> Result<(), String> {
    known.walk_delimited("baton.entry.StateHead", &mut bytes, met)?;
    while !matches!(bytes, [] | [0, ..]) {
        known.walk_delimited("baton.state.Part", &mut bytes, met)?;
    }
    Ok(())
}

/// A release stores nothing that its own lines do not have, and below its version nothing that a lower release lacks (K-36).
#[test]
fn the_disks_hold_all_that_is_stored_and_nothing_that_their_reader_does_not_know() {
    let mut met = Met::new();
    for (name, saver, reader) in DISKS {
        let copy = copied(name);
        let saved = fs::read(disk(name).join("saved")).unwrap();
        for (of, release) in [("data", reader), ("saved", saver)] {
            let known = Known::by(&formats(release));
            let walked = match of {
                "data" => walk(copy.path(), &known, &mut met),
                _ => walk_state(&saved, &known, &mut met),
            };
            walked.unwrap_or_else(|error| panic!("{name}, {of}: release {release} does not know: {error}"));
        }
    }
    let stored = |field: &String| {
        ["baton.entry.", "baton.cluster.", "baton.state."].iter().any(|package| field.starts_with(package))
    };
    let lines = formats(RELEASES[RELEASES.len() - 1]);
    let fields = lines.iter().filter_map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        (words.len() >= 4 && !words[0].contains('/')).then(|| format!("{}.{}", words[0], words[2]))
    });
    let unmet: Vec<_> = fields.filter(stored).filter(|field| !met.contains(field)).collect();
    let expected: Vec<_> = UNMET.iter().map(|(field, _)| (*field).to_owned()).collect();
    assert_eq!(unmet, expected, "no disk has these fields, or one has them after all");
}

/// Today's sources write the same bytes as the release did, and in a lower form nothing that its release lacks (K-09, K-37).
#[test]
fn a_state_is_written_as_its_release_wrote_it_and_fit_for_the_one_below_where_it_is_lowered() {
    for (name, saver, _) in DISKS.into_iter().filter(|(name, ..)| !name.ends_with("-migrated")) {
        let mut state = saved(name);
        let registry = Registry::of(&release_of(saver));
        let written: Vec<u8> = state.snapshot(state.form(&registry)).flatten().collect();
        let file = fs::read(disk(name).join("saved")).unwrap();
        assert!(file.starts_with(&written), "{name}: {state:#?} has other bytes");
        let version = state.cluster.version.unwrap();
        let Some(at) = RELEASES.iter().position(|of| release_of(of).cluster_version() == version).filter(|at| *at > 0)
        else {
            continue;
        };
        state.lower_to(release_of(RELEASES[at - 1]).cluster_version());
        let lowered: Vec<u8> = state.snapshot(state.form(&registry)).flatten().collect();
        let known = Known::by(&formats(RELEASES[at - 1]));
        walk_state(&lowered, &known, &mut Met::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
