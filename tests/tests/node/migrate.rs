//! The way down with nobody running, and what a lower release makes of features that it does not have (KEP-4647, "Cluster Offline
//! Downgrade", "User Stories").

use std::{
    fs,
    process::{Command, Output},
};

use proto::{
    ClusterVersion, Revision,
    batonpb::{AddRequest, counters_client::CountersClient},
};
use rustix::process::Signal;
use tests::{
    client::Client,
    cluster::{Cluster, Spec},
    member::Member,
    skip::build_or_skip,
    system::{Build, System},
    wait::{self, GENEROUS},
};
use tonic::{Code, Status};

use crate::{QUICK, nobody_panicked};

const WANTS: &str = "--cluster-feature-gates=ClusterLeaseCheckpoint=true,ClusterSnapshotCompression=true";
const V3_6: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
const V3_7: ClusterVersion = ClusterVersion { major: 3, minor: 7 };

async fn add(client: &Client, by: i64) -> Result<i64, Status> {
    let request = AddRequest { key: b"n".to_vec(), by };
    Ok(CountersClient::new(client.channel()).add(request).await?.into_inner().value)
}

fn migrate(build: &Build, member: &Member, target: &str) -> Output {
    let mut command = Command::new(build.bin.join("node"));
    command.args(["migrate", "--target-version", target, "--data-dir"]).arg(member.dir.join("data"));
    command.output().expect("it runs")
}

fn is_refused(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(words), "{words}: {output:?}");
}

/// The same keys, with their history, on every member.
async fn hashes(cluster: &Cluster, revision: Revision) -> Vec<u32> {
    let mut hashes = Vec::new();
    for member in &cluster.layout.members {
        let client = cluster.layout.client(member).expect("a client");
        client.get("last").await.expect("it holds all");
        hashes.push(client.hash(revision).await.expect("a hash"));
    }
    hashes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_cluster_goes_down_and_keeps_its_keys_and_what_the_lower_release_lacks_is_off() {
    let (Some(higher), Some(lower)) = (build_or_skip(System::Node, "3.7"), build_or_skip(System::Node, "3.6")) else {
        return;
    };
    let flags = [&QUICK[..], &[WANTS, "--snapshot-count=20"]].concat();
    let flags = flags.iter().map(ToString::to_string).collect();
    let mut cluster = Cluster::up(&Spec { flags, ..Spec::new(higher.clone()) }).await.expect("up");
    cluster.settled(V3_7).await.expect("settled");
    let client = cluster.layout.client(&cluster.layout.members[0]).expect("a client");
    wait::until("the counters to be on", GENEROUS, || async {
        add(&client, 0).await.map_err(|error| error.to_string())
    })
    .await
    .expect("on");
    let large = "of no great variety ".repeat(10_000);
    for number in 0..30 {
        client.put(&format!("large-{number}"), &large).await.expect("put");
    }
    let counted = add(&client, 40).await.expect("added") + 2;
    assert_eq!(add(&client, 2).await.expect("added"), counted);
    let revision = client.put("last", "").await.expect("put");
    let before = hashes(&cluster, revision).await;
    assert!(before.iter().all(|hash| *hash == before[0]), "{before:?}");
    let first = &cluster.layout.members[0];
    let stored = fs::read_dir(first.dir.join("data/snap")).expect("snapshots");
    let bytes = stored.map(|file| file.expect("a file").metadata().expect("its length").len()).max();
    assert!(bytes.is_some_and(|bytes| bytes < 30 * large.len() as u64 / 4), "it is not compressed: {bytes:?} bytes");

    is_refused(&migrate(&higher, first, "3.6"), "is in use: stop the member first");
    for member in &cluster.layout.members {
        member.end(Signal::TERM).expect("ended");
    }
    is_refused(&migrate(&higher, first, "3.8"), "below 3.8: members rise by themselves");
    is_refused(&migrate(&higher, first, "3.4"), "`3.4` is wrong");
    is_refused(&migrate(&lower, first, "3.5"), "for release 3.7 and later, and this is 3.6.0");
    let snapshots = first.dir.join("data/snap");
    let aside = first.dir.join("aside");
    fs::rename(&snapshots, &aside).expect("moved");
    is_refused(&migrate(&higher, first, "3.6"), "snap is not there");
    fs::rename(&aside, &snapshots).expect("moved back");
    let without = |flags: &mut Vec<String>| flags.retain(|flag| !flag.starts_with("--cluster-feature-gates"));
    let member = &mut cluster.layout.members[0];
    member.install(&lower).expect("installed");
    let process = member.start().expect("started");
    process.ended(GENEROUS).expect("it has no such flag");
    assert!(member.last_words().contains("ClusterSnapshotCompression"), "{}", member.last_words());
    without(&mut member.flags);
    let process = member.start().expect("started");
    process.ended(GENEROUS).expect("it does not read that");
    let words = member.last_words();
    assert!(words.contains("for release 3.7 and later") && words.contains("node migrate"), "{words}");

    for member in &mut cluster.layout.members {
        let done = migrate(&higher, member, "3.6");
        assert!(done.status.success(), "{done:?}");
        let again = migrate(&higher, member, "3.6");
        assert!(String::from_utf8_lossy(&again.stdout).contains("fit for release 3.6 already"), "{again:?}");
        without(&mut member.flags);
        member.install(&lower).expect("installed");
    }
    let member = &cluster.layout.members[2];
    member.install(&higher).expect("installed");
    member.start().expect("started").ended(GENEROUS).expect("the others may not have gone down");
    let words = member.last_words();
    assert!(
        words.contains("made it fit for release 3.6, and this is 3.7.0: start this member, and all others"),
        "{words}"
    );
    member.install(&lower).expect("installed");
    for member in &cluster.layout.members {
        member.start().expect("started");
    }
    cluster.ready().await.expect("they serve");
    cluster.settled(V3_6).await.expect("it is at 3.6");
    assert_eq!(hashes(&cluster, revision).await, before);
    let client = cluster.layout.client(&cluster.layout.members[0]).expect("a client");
    let refused = add(&client, 1).await.expect_err("3.6.0 has it off");
    assert!(refused.code() == Code::FailedPrecondition && refused.message().contains("ClusterCounters"), "{refused}");
    let held = client.get("n").await.expect("read").expect("it is there");
    assert_eq!(held.value, counted.to_string().into_bytes());

    for member in &cluster.layout.members {
        member.end(Signal::TERM).expect("ended");
        member.install(&higher).expect("installed");
        member.start().expect("started");
        cluster.ready().await.expect("it serves");
    }
    cluster.settled(V3_7).await.expect("up again");
    let client = cluster.layout.client(&cluster.layout.members[0]).expect("a client");
    wait::until("the counters to be on", GENEROUS, || async {
        add(&client, 0).await.map_err(|error| error.to_string())
    })
    .await
    .expect("on");
    assert_eq!(add(&client, -1).await.expect("added"), counted - 1);
    nobody_panicked(&cluster.layout);
}

/// No member has stored a snapshot yet: who founded the cluster stands in the logs alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_young_cluster_that_goes_down_offline_knows_its_members_afterwards() {
    let (Some(higher), Some(lower)) = (build_or_skip(System::Node, "3.7"), build_or_skip(System::Node, "3.6")) else {
        return;
    };
    let flags = QUICK.iter().map(ToString::to_string).collect();
    let mut cluster = Cluster::up(&Spec { flags, ..Spec::new(higher.clone()) }).await.expect("up");
    cluster.settled(V3_7).await.expect("settled");
    let client = cluster.layout.client(&cluster.layout.members[0]).expect("a client");
    let revision = client.put("last", "kept").await.expect("put");
    let before = hashes(&cluster, revision).await;
    for member in &mut cluster.layout.members {
        member.end(Signal::TERM).expect("ended");
    }
    for member in &mut cluster.layout.members[..2] {
        let done = migrate(&higher, member, "3.6");
        assert!(done.status.success(), "{done:?}");
        member.install(&lower).expect("installed");
        member.start().expect("started");
    }
    // The third is left out, and started as it was: it takes no part.
    cluster.layout.members[2].start().expect("started");
    let client = cluster.layout.client(&cluster.layout.members[1]).expect("a client");
    wait::until("the two to go on", GENEROUS, || async {
        client.put("after", "1").await.map_err(|error| error.to_string())
    })
    .await
    .expect("two of three");
    let third = &cluster.layout.members[2];
    wait::until("it to be told", GENEROUS, || async {
        let words = fs::read_to_string(third.log()).unwrap_or_default();
        if words.contains("was left out when") { Ok(()) } else { Err(words) }
    })
    .await
    .expect("told");
    assert!(
        cluster.layout.client(third).expect("a client").put("apart", "1").await.is_err(),
        "it has nobody to write with"
    );
    for member in &mut cluster.layout.members[2..] {
        member.end(Signal::TERM).expect("ended");
        let done = migrate(&higher, member, "3.6");
        assert!(done.status.success(), "{done:?}");
        member.install(&lower).expect("installed");
    }
    cluster.layout.members[2].start().expect("started");
    cluster.settled(V3_6).await.expect("settled");
    assert_eq!(hashes(&cluster, revision).await, before);
    nobody_panicked(&cluster.layout);
}
