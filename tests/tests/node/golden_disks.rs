//! Data directories that earlier releases have left, and every release's executable started on them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use proto::Revision;
use tests::{
    cluster::{Cluster, Spec},
    skip::build_or_skip,
    system::{Build, System},
    wait::GENEROUS,
};

use crate::nobody_panicked;

/// What a start comes to.
#[derive(Clone, Copy)]
enum Start {
    Serves,
    Ends(&'static str),
}

use Start::{Ends, Serves};

const TOO_LOW: Start = Ends("and later, and this is");
/// The others may not have gone down.
const MIGRATED: Start = Ends("made it fit for release 3.6, and this is");

/// By the executables of 3.5.0, 3.6.0, 3.7.0, 3.8.0 and 3.9.0.
const DISKS: [(&str, [Start; 5]); 5] = [
    ("3.5.0", [Serves, Serves, Serves, Serves, Serves]),
    ("3.6.0", [TOO_LOW, Serves, Serves, Serves, Serves]),
    ("3.7.0", [TOO_LOW, TOO_LOW, Serves, Serves, Serves]),
    ("3.7.0-downgraded", [TOO_LOW, Serves, Serves, Serves, Serves]),
    ("3.7.0-migrated", [TOO_LOW, Serves, MIGRATED, MIGRATED, MIGRATED]),
];

fn disk(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/golden/disks").join(name)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => {
                let mut bytes = fs::read(entry.path())?;
                if target.extension().is_some_and(|suffix| suffix == "wal") {
                    // The zeroes that it was made with are not kept.
                    bytes.resize(1 << 20, 0);
                }
                fs::write(target, bytes)?;
            }
        }
    }
    Ok(())
}

async fn start(name: &str, build: &Build, expected: Start) {
    let what = format!("{name} by {}", build.release);
    let cluster = Cluster::laid_out(&Spec { size: 1, tls: false, ..Spec::new(build.clone()) }).expect("laid out");
    let member = &cluster.layout.members[0];
    copy(&disk(name).join("data"), &member.dir.join("data")).expect("copied");
    let process = member.start().expect("started");
    match expected {
        Ends(words) => {
            process.ended(GENEROUS).expect("it ends");
            assert!(member.last_words().contains(words), "{what}: {}", member.last_words());
            assert!(!member.last_words().contains("panicked"), "{what}: {}", member.last_words());
        }
        Serves => {
            cluster.ready().await.map_err(|error| format!("{what}: {error}")).expect("it serves");
            let client = cluster.layout.client(member).expect("a client");
            let said = fs::read_to_string(disk(name).join("hash")).expect("read");
            let (revision, hash) = said.trim().split_once(' ').expect("two numbers");
            let revision = Revision(revision.parse().expect("a revision"));
            assert_eq!(client.hash(revision).await.expect("hashed").to_string(), hash, "{what}");
            // It was left with this alarm.
            let refused = client.put("new", "1").await.expect_err("its space is used up");
            assert!(refused.message().contains("space exceeded"), "{what}: {refused}");
            client.alarm_no_space(false).await.expect("disarmed");
            client.put("new", "1").await.expect("it goes on");
            nobody_panicked(&cluster.layout);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_release_starts_on_what_an_earlier_one_has_left_and_a_lower_one_says_why_not() {
    for (at, version) in ["3.5", "3.6", "3.7", "3.8", "3.9"].into_iter().enumerate() {
        let Some(build) = build_or_skip(System::Node, version) else { continue };
        for (name, starts) in DISKS {
            start(name, &build, starts[at]).await;
        }
    }
}
