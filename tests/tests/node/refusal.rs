//! What a member refuses to start with: wrong settings, and a data directory that is not its own or not whole.
//!
//! It says so in one line that names the file or the setting, ends with 1, and changes nothing: with everything as it was
//! before, the same member starts.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Member, Spec},
    ports::Ports,
    skip::build_or_skip,
    system::System,
    wait::GENEROUS,
};
use tokio::{process::Command, time::timeout};

use crate::{QUICK, nobody_panicked, trial::agreed, up};

/// What a member says that must refuse to start.
pub async fn refusal(member: &Member, flags: &[String]) -> String {
    let mut command = Command::new(member.binary());
    let ended = timeout(GENEROUS, command.args(flags).kill_on_drop(true).output()).await;
    let Output { status, stderr, .. } = ended.expect("it ends").expect("it starts");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    // As etcd: 2 where a flag itself is wrong, 1 for what is found later.
    let is_of_a_flag = said.contains("there is no such setting") || said.contains(" is wrong: expected ");
    assert_eq!(status.code(), Some(if is_of_a_flag { 2 } else { 1 }), "{said}");
    let errors: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert!(errors.len() == 1 && !said.contains("panicked"), "{said}");
    errors[0].to_owned()
}

/// The same flags, but for this one.
fn with(flags: &[String], flag: &str) -> Vec<String> {
    let name = flag.split('=').next().unwrap_or_default();
    let others = flags.iter().filter(|other| !other.starts_with(&format!("{name}=")));
    others.cloned().chain([flag.to_owned()]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_settings_are_named_with_what_was_expected() {
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let cluster = Cluster::laid_out(&Spec::new(build)).expect("laid out");
    let member = &cluster.layout.members[0];
    for (flag, words) in [
        ("--nmae=m1", "--nmae: there is no such setting; is it `name`?"),
        ("--name=m4", "--name: `m4` is wrong: expected one of --initial-cluster: m1, m2, m3"),
        ("--election-timeout=10", "--election-timeout: `10` is wrong: expected 500 or more: 5 heartbeats"),
        ("--snapshot-count=some", "--snapshot-count: `some` is wrong: expected a whole number"),
        (
            "--cluster-feature-gates=Lease=true",
            "--cluster-feature-gates: `Lease` is wrong: expected one of ClusterLeaseCheckpoint",
        ),
        ("--data-dir=/proc/none", "cannot use the data directory: /proc/none"),
    ] {
        let said = refusal(member, &with(&member.flags, flag)).await;
        assert!(said.starts_with(words), "{flag}: {said}");
    }
    let other = std::net::TcpListener::bind(("127.0.0.1", member.client_port)).expect("free");
    let said = refusal(member, &member.flags).await;
    assert!(said.starts_with("--listen-client-urls: cannot listen at http://127.0.0.1:"), "{said}");
    drop(other);
    let etcd = member.dir.join("etcd");
    fs::create_dir_all(etcd.join("member/wal")).expect("made");
    let said = refusal(member, &with(&member.flags, &format!("--data-dir={}", etcd.display()))).await;
    assert!(said.contains(": this is the data directory of an etcd, which this node cannot read"), "{said}");
    assert_eq!(fs::read_dir(&etcd).expect("listed").count(), 1, "it is left as it is");
    assert!(!member.dir.join("data").exists(), "nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_is_in_use_or_of_a_newer_release_is_refused() {
    let Some(old) = build_or_skip(System::Node, "3.5") else { return };
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let member = &cluster.layout.members[0];
    let client = cluster.layout.client(&cluster.layout.members[1]).expect("a client");
    client.put("k", "before").await.expect("written");

    let ports = Ports::lease(2).expect("two ports");
    let elsewhere = ["client", "peer"].iter().zip(&ports.numbers).fold(member.flags.clone(), |flags, (kind, port)| {
        with(&flags, &format!("--listen-{kind}-urls=http://127.0.0.1:{port}"))
    });
    let said = refusal(member, &elsewhere).await;
    assert!(said.contains("is in use by another process"), "two members on one directory: {said}");
    member.end(Signal::TERM).expect("ended");
    // Of which cluster it is says its data directory, at every start but the first.
    member.clone().start_anew(with(&member.flags, "--initial-cluster-token=another")).expect("started");
    cluster.ready().await.expect("it is back");
    member.end(Signal::TERM).expect("ended");

    let new = fs::read_link(member.binary()).expect("a link");
    member.install(&old).expect("installed");
    let said = refusal(member, &member.flags).await;
    assert!(said.contains("the cluster is at version 3.6, above 3.5.0"), "{said}");
    fs::remove_file(member.binary()).expect("removed");
    std::os::unix::fs::symlink(new, member.binary()).expect("the new one again");

    client.put("k", "after").await.expect("the others serve");
    member.start().expect("started");
    cluster.ready().await.expect("it is back");
    agreed(&cluster).await;
    nobody_panicked(&cluster.layout);
}

/// The file of a folder that comes last by name.
pub fn last(folder: &Path, extension: &str) -> PathBuf {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files.pop().expect("there is one")
}

/// Flips one bit in the middle of what a file holds before its zeroes.
fn flip(file: &Path) {
    let mut bytes = fs::read(file).expect("readable");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("it holds something");
    bytes[end / 2] ^= 4;
    fs::write(file, bytes).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_is_found_before_anybody_believes_it() {
    let flags = [&QUICK[..], &["--snapshot-count=100"]].concat();
    let Some(cluster) = up("3.6", &flags).await else { return };
    let member = &cluster.layout.members[0];
    let client = cluster.layout.client(&cluster.layout.members[1]).expect("a client");
    for number in 0..250 {
        client.put(&format!("k{number}"), "v").await.expect("written");
    }
    cluster.ready().await.expect("all of it is everywhere");
    member.end(Signal::TERM).expect("ended");
    let data = member.dir.join("data");
    for file in [last(&data.join("wal"), "wal"), last(&data.join("snap"), "snap"), data.join("identity")] {
        let whole = fs::read(&file).expect("readable");
        flip(&file);
        let said = refusal(member, &member.flags).await;
        assert!(said.contains(&*file.display().to_string()), "{}: {said}", file.display());
        println!("{said}");
        fs::write(&file, whole).expect("written");
    }
    client.put("k", "after").await.expect("the others serve");
    member.start().expect("started");
    cluster.ready().await.expect("it is back");
    agreed(&cluster).await;
    nobody_panicked(&cluster.layout);
}

fn end_of_records(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).expect("it holds something")
}

/// Nobody else has what a lone member has acknowledged. A power loss never leaves a log so short.
#[tokio::test(flavor = "multi_thread")]
async fn a_lone_member_whose_log_was_cut_off_says_so() {
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let mut cluster = Cluster::up(&Spec { size: 1, ..Spec::new(build) }).await.expect("up");
    let member = &cluster.layout.members[0];
    let client = cluster.layout.client(member).expect("a client");
    for number in 0..20 {
        client.put(&format!("k{number}"), "v").await.expect("written");
    }
    member.end(Signal::TERM).expect("ended");
    let file = last(&member.dir.join("data/wal"), "wal");
    let whole = fs::read(&file).expect("readable");
    for length in [end_of_records(&whole) - 5, end_of_records(&whole) / 2, 41] {
        fs::write(&file, &whole[..length]).expect("cut off");
        let said = refusal(member, &member.flags).await;
        assert!(said.contains(&format!("byte {length}: damaged")) && said.contains("cut off"), "{said}");
        println!("{said}");
    }
    fs::write(&file, &whole).expect("as it was");
    // What a new cluster is made of counts no more.
    let member = &mut cluster.layout.members[0];
    member.flags = with(&member.flags, "--initial-cluster=others=http://127.0.0.1:9");
    member.start().expect("started");
    cluster.ready().await.expect("it is back");
    assert!(client.get("k19").await.expect("answered").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_tail_was_torn_off_starts() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let client = cluster.layout.client(&cluster.layout.members[1]).expect("a client");
    for member in &cluster.layout.members {
        client.put(&member.name, "v").await.expect("written");
        // The cut takes an entry that was synced. So all must have it, and nobody may remember that this member had.
        agreed(&cluster).await;
        cluster.layout.members.iter().for_each(|member| member.end(Signal::KILL).expect("killed"));
        let file = last(&member.dir.join("data/wal"), "wal");
        let mut bytes = fs::read(&file).expect("readable");
        let end = end_of_records(&bytes);
        bytes[end - 5..].fill(0);
        fs::write(&file, bytes).expect("torn");
        cluster.layout.members.iter().for_each(|member| drop(member.start().expect("started")));
        cluster.ready().await.unwrap_or_else(|error| panic!("{error}: {}", member.last_words()));
    }
    for member in &cluster.layout.members {
        assert!(client.get(&member.name).await.expect("answered").is_some(), "the others had it");
    }
    agreed(&cluster).await;
    nobody_panicked(&cluster.layout);
}
