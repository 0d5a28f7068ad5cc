//! A cluster is made anew from what real `etcdctl snapshot save` has written (etcd, "Disaster recovery").

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use proto::{
    Revision,
    etcdserverpb::{
        CompactionRequest, LeaseGrantRequest, LeaseTimeToLiveRequest, PutRequest, RangeRequest, kv_client::KvClient,
        lease_client::LeaseClient,
    },
    mvccpb::KeyValue,
};
use rustix::process::Signal;
use tests::{
    client::Client,
    cluster::{Cluster, Layout, Spec},
    member::Member,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

use crate::{QUICK, nobody_panicked, refusal::refusal, trial::agreed, up};

const LEASE: i64 = 4711;
const TTL_S: i64 = 3_600;
/// As `QUICK` says.
const ELECTION: Duration = Duration::from_millis(400);

/// The tools of the etcd that a scenario needs, or a skip.
fn etcd_tools() -> Option<PathBuf> {
    build_or_skip(System::Etcd, "3.6").map(|etcd| etcd.bin)
}

fn save(tools: &Path, layout: &Layout, at: &Member, name: &str) -> PathBuf {
    let file = layout.dir.join(name);
    let mut command = Command::new(tools.join("etcdctl"));
    command.args(["--endpoints", &at.client_url, "snapshot", "save"]).arg(&file);
    if let Some(files) = &layout.certificates {
        command
            .arg("--cacert")
            .arg(&files.ca)
            .arg("--cert")
            .arg(&files.client.cert)
            .arg("--key")
            .arg(&files.client.key);
    }
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    file
}

fn snapshot(member: &Member, arguments: &[&str]) -> Output {
    Command::new(member.binary()).arg("snapshot").args(arguments).output().expect("it runs")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn is_refused(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.starts_with("error: ") && said.contains(words),
        "{words}: {output:?}"
    );
}

/// Makes the data directory of a member, with its own flags.
fn restore(member: &Member, file: &Path, more: &[&str]) -> Output {
    let names = ["--name=", "--data-dir=", "--initial-cluster=", "--initial-advertise-peer-urls="];
    let flags = member.flags.iter().filter(|flag| names.iter().any(|name| flag.starts_with(name)));
    let file = file.display().to_string();
    let arguments: Vec<_> = ["restore", &file].into_iter().chain(flags.map(String::as_str)).collect();
    snapshot(member, &[&arguments[..], more].concat())
}

fn data(member: &Member) -> PathBuf {
    member.dir.join("data")
}

fn empty(member: &Member) {
    fs::remove_dir_all(data(member)).expect("removed");
}

fn kill(members: &[&Member]) {
    members.iter().for_each(|member| member.end(Signal::KILL).expect("killed"));
}

fn start(members: &[&Member]) {
    members.iter().for_each(|member| drop(member.start().expect("started")));
}

/// Every key, with its revisions, its version and its lease.
async fn everything(client: &Client) -> Vec<KeyValue> {
    let request = RangeRequest { key: vec![0], range_end: vec![0], ..RangeRequest::default() };
    KvClient::new(client.channel()).range(request).await.expect("read").into_inner().kvs
}

/// The seconds that the lease has left, at the leader's word.
async fn left(client: &Client) -> i64 {
    let request = LeaseTimeToLiveRequest { id: LEASE, keys: true };
    let answer = LeaseClient::new(client.channel()).lease_time_to_live(request).await.expect("answered").into_inner();
    assert_eq!((answer.granted_ttl, &answer.keys[..]), (TTL_S, &[b"leased".to_vec()][..]));
    answer.ttl
}

async fn fill(client: &Client) -> Revision {
    let request = LeaseGrantRequest { ttl: TTL_S, id: LEASE };
    LeaseClient::new(client.channel()).lease_grant(request).await.expect("granted");
    let request = PutRequest { key: "leased".into(), lease: LEASE, ..PutRequest::default() };
    KvClient::new(client.channel()).put(request).await.expect("written");
    let mut compacted = Revision(0);
    for round in 0..4 {
        for number in 0..10 {
            let revision = client.put(&format!("k{number}"), &format!("v{round}")).await.expect("written");
            if round == 1 {
                compacted = revision;
            }
        }
    }
    let request = CompactionRequest { revision: compacted.0, physical: true };
    KvClient::new(client.channel()).compact(request).await.expect("compacted");
    compacted
}

async fn says(member: &Member, words: &str) {
    wait::until(&format!("{} to say `{words}`", member.name), GENEROUS, || async {
        let log = fs::read_to_string(member.log()).expect("a log");
        if log.contains(words) { Ok(()) } else { Err(member.last_words()) }
    })
    .await
    .expect("said");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_restored_from_what_was_saved_and_takes_nobody_of_another() {
    let Some(tools) = etcd_tools() else { return };
    let Some(mut cluster) = up("3.6", &QUICK).await else { return };
    let layout = cluster.layout.clone();
    let [first, second, third] = &layout.members[..] else { panic!("three members") };
    let client = layout.client(first).expect("a client");
    let compacted = fill(&client).await;
    let revision = agreed(&cluster).await;
    let (before, hash) = (everything(&client).await, client.hash(revision).await.expect("hashed"));
    let file = save(&tools, &layout, first, "saved");
    says(first, "`node snapshot restore` reads the file").await;
    let status = said(&snapshot(first, &["status", &file.display().to_string(), "-w", "json"]));
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((&status["revision"], &status["totalKey"]), (&revision.0.into(), &before.len().into()), "{status}");
    assert_eq!(status["version"], "3.6.0");
    client.put("later", "1").await.expect("written");
    // One that is behind would save the same again, and what is restored from that is of the same cluster.
    agreed(&cluster).await;
    let other = save(&tools, &layout, second, "other");

    is_refused(&restore(first, &file, &[]), "data: it is not empty. Name another one");
    kill(&[first, second, third]);
    let old = third.dir.join("old");
    fs::rename(data(third), &old).expect("put aside");
    for member in [first, second] {
        empty(member);
    }
    for member in [first, second, third] {
        println!("{}", said(&restore(member, &file, &[])));
    }
    start(&[first, third]);
    // The state of the cluster is asked for where there is no data alone.
    let flags = &mut cluster.layout.members[1].flags;
    flags.iter_mut().for_each(|flag| *flag = flag.replace("cluster-state=new", "cluster-state=existing"));
    start(&[&cluster.layout.members[1]]);
    cluster.ready().await.expect("all serve");
    cluster.settled(layout.release.cluster_version()).await.expect("at their version");
    assert_eq!(agreed(&cluster).await, revision, "nothing was written since");
    for member in &layout.members {
        let client = layout.client(member).expect("a client");
        assert!(everything(&client).await == before, "{}: every key at its revision", member.name);
        assert_eq!(client.hash(revision).await.expect("hashed"), hash, "{}: and its history", member.name);
        assert_eq!(client.get_at("k3", compacted).await.expect("read").expect("there").value, b"v1");
        client.get_at("k3", Revision(compacted.0 - 1)).await.expect_err("compacted");
    }
    assert!(left(&client).await > TTL_S - 60, "the lease has its whole time again");
    assert_eq!(client.put("after", "1").await.expect("written"), Revision(revision.0 + 1));
    let members = client.members().await.expect("listed");
    assert_eq!(members.len(), 3, "{members:?}");

    // The old data of a member is of another cluster, and so is what was restored from another file, and what is empty.
    let whole = third.dir.join("whole");
    kill(&[third]);
    fs::rename(data(third), &whole).expect("put aside");
    for stranger in ["old", "other", "empty"] {
        match stranger {
            "old" => fs::rename(&old, data(third)).expect("brought back"),
            "other" => drop(said(&restore(third, &other, &[]))),
            _ => {}
        }
        fs::write(third.log(), "").expect("emptied");
        start(&[third]);
        says(third, "cluster ID mismatch").await;
        client.put(stranger, "1").await.expect("the others go on");
        let alone = layout.client(third).expect("a client").status().await;
        assert!(alone.as_ref().map_or(0, |status| status.leader) == 0, "{stranger}: {alone:?}");
        kill(&[third]);
        empty(third);
    }
    // Nor do two that are empty found another one beside the one that is not.
    kill(&[second]);
    fs::rename(data(second), second.dir.join("whole")).expect("put aside");
    for member in [second, third] {
        fs::write(member.log(), "").expect("emptied");
    }
    start(&[second, third]);
    for member in [second, third] {
        says(member, "founds no cluster: a founder is of another cluster already").await;
    }
    tokio::time::sleep(3 * ELECTION).await;
    for member in [second, third] {
        let log = fs::read_to_string(member.log()).expect("a log");
        assert!(!log.contains("\"leads\""), "{}: {log}", member.name);
    }
    kill(&[second, third]);
    for member in [second, third] {
        empty(member);
        fs::rename(member.dir.join("whole"), data(member)).expect("brought back");
    }
    start(&[second, third]);
    cluster.ready().await.expect("all serve");
    agreed(&cluster).await;

    // Who was a member already has promised what the file does not know.
    kill(&[third]);
    fs::rename(data(third), &whole).expect("put aside");
    said(&restore(third, &file, &[]));
    for start in 1..=2 {
        let said = refusal(third, &third.flags).await;
        assert!(said.contains("has lost its data directory: it has another one"), "start {start}: {said}");
    }
    empty(third);
    fs::rename(&whole, data(third)).expect("brought back");

    kill(&[first, second]);
    start(&[first, second, third]);
    cluster.ready().await.expect("all serve");
    let last = agreed(&cluster).await;
    assert_eq!(last, Revision(revision.0 + 4), "nothing is lost");
    for key in ["after", "old", "other", "empty"] {
        assert!(client.get(key).await.expect("read").is_some(), "{key}");
    }
    assert!(client.get("later").await.expect("read").is_none(), "it was written after the snapshot");
    client.put("again", "1").await.expect("written");
    agreed(&cluster).await;
    nobody_panicked(&layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_goes_on_far_behind_the_revisions_that_clients_have_seen() {
    let Some(tools) = etcd_tools() else { return };
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let flags = QUICK.map(str::to_owned).to_vec();
    let cluster = Cluster::up(&Spec { flags, size: 1, ..Spec::new(build) }).await.expect("up");
    let layout = &cluster.layout;
    let member = &layout.members[0];
    let client = layout.client(member).expect("a client");
    fill(&client).await;
    let (before, revision) = (everything(&client).await, client.newest().await.expect("read"));
    let file = save(&tools, layout, member, "saved");
    for number in 0..20 {
        client.put(&format!("lost{number}"), "1").await.expect("written");
    }
    let damaged = layout.dir.join("damaged");
    let mut bytes = fs::read(&file).expect("readable");
    bytes[100] ^= 1;
    fs::write(&damaged, bytes).expect("written");
    member.end(Signal::KILL).expect("killed");
    empty(member);
    is_refused(&restore(member, &damaged, &[]), "does not match the hash at its end");
    assert!(!data(member).exists(), "nothing was made");
    is_refused(&snapshot(member, &["status", &damaged.display().to_string()]), "does not match the hash at its end");
    let alone = restore(member, &file, &["--bump-revision=1000000"]);
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");

    said(&restore(member, &file, &["--bump-revision=1000000", "--mark-compacted"]));
    member.start().expect("started");
    cluster.ready().await.expect("it serves");
    let bumped = revision.0 + 1_000_000;
    assert_eq!(client.newest().await.expect("read"), Revision(bumped));
    assert!(everything(&client).await == before, "every key at its revision");
    client.get_at("k3", Revision(revision.0 + 10)).await.expect_err("what clients have seen since is compacted");
    assert_eq!(client.put("after", "1").await.expect("written"), Revision(bumped + 1));
    member.end(Signal::KILL).expect("killed");
    member.start().expect("started");
    cluster.ready().await.expect("it serves");
    assert_eq!(client.newest().await.expect("read"), Revision(bumped + 1));
    nobody_panicked(layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_etcd_is_named_and_what_is_said_of_ours_looks_as_etcdutl_says_it() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let Some(node) = build_or_skip(System::Node, "3.6") else { return };
    let tools = etcd.bin.clone();
    let theirs = Cluster::up(&Spec { size: 1, ..Spec::new(etcd) }).await.expect("up");
    let ours = Cluster::up(&Spec { size: 1, ..Spec::new(node) }).await.expect("up");
    let member = &ours.layout.members[0];
    let mut shapes = Vec::new();
    for cluster in [&theirs, &ours] {
        let layout = &cluster.layout;
        layout.client(&layout.members[0]).expect("a client").put("k", "v").await.expect("written");
        let file = save(&tools, layout, &layout.members[0], "saved");
        let named = file.display().to_string();
        for format in ["simple", "table", "json", "fields"] {
            let arguments = ["snapshot", "status", &named, "-w", format];
            let is_ours = cluster.layout.system == System::Node;
            let output = match is_ours {
                true => Command::new(member.binary()).args(arguments).output(),
                false => Command::new(tools.join("etcdutl")).args(arguments).output(),
            };
            // Numbers aside: they are of other data.
            let text = said(&output.expect("it runs"));
            let shape: String = text.chars().filter(|c| !c.is_ascii_hexdigit() && !" -".contains(*c)).collect();
            shapes.push((format, shape.replace("kB", "B").replace('k', "")));
        }
        if cluster.layout.system == System::Etcd {
            is_refused(&snapshot(member, &["status", &named]), "is a snapshot of etcd (a bbolt database)");
            is_refused(&restore(member, &file, &["--data-dir", "none"]), "`etcdutl snapshot` reads it");
        }
    }
    let (theirs, ours) = shapes.split_at(4);
    assert_eq!(theirs, ours);
}
