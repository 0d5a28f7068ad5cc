//! Writes the data directory of a release once and for all: node/tests/golden/disks. A real member with something of everything.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Parser;
use proto::{
    Release, Revision,
    batonpb::{AddRequest, counters_client::CountersClient},
    etcdserverpb::{
        CompactionRequest, Compare, DeleteRangeRequest, DowngradeRequest, LeaseGrantRequest, LeaseRevokeRequest,
        LeaseTimeToLiveRequest, MemberAddRequest, MemberRemoveRequest, MemberUpdateRequest, PutRequest, RequestOp,
        SnapshotRequest, TxnRequest, cluster_client::ClusterClient, compare, downgrade_request::DowngradeAction,
        kv_client::KvClient, lease_client::LeaseClient, maintenance_client::MaintenanceClient,
        request_op::Request as Op,
    },
    gates::require_feature,
};
use rustix::process::Signal;
use tests::{
    Error,
    client::Client,
    cluster::{Cluster, Spec},
    command::end_of,
    member::Member,
    releases,
    system::System,
    wait::{self, GENEROUS},
};
use tonic::Request;

/// Writes a disk of a release: `data`, what a member has left in its data directory; `saved`, what that release says it
/// holds; and `hash`, a revision and its HashKV. An existing folder is refused: a golden disk is never written anew.
#[derive(Parser)]
#[command(name = "golden-disk")]
struct Cli {
    /// The release, such as 3.6.0.
    release: String,
    /// Where to.
    folder: PathBuf,
    /// Lowered to this version in the end, with the member running.
    #[arg(long, value_name = "3.N", conflicts_with = "migrate")]
    downgrade: Option<String>,
    /// Lowered to this version in the end, with the member stopped.
    #[arg(long, value_name = "3.N")]
    migrate: Option<String>,
}

const SNAPSHOT_COUNT: u32 = 80;
/// Nobody listens there.
const ELSEWHERE: [&str; 2] = ["http://127.77.77.77:2380", "http://127.77.77.78:2380"];
/// A checkpoint is written when half of it is over.
const CHECKPOINTED: (i64, i64) = (7, 20);

#[tokio::main]
async fn main() -> ExitCode {
    end_of(write(&Cli::parse())).await
}

async fn write(cli: &Cli) -> Result<ExitCode, Error> {
    fs::create_dir(&cli.folder)?;
    let build = releases::get(System::Node, &cli.release)?;
    let minor = build.release.cluster_version().minor;
    let mut flags = vec![format!("--snapshot-count={SNAPSHOT_COUNT}")];
    flags.extend(
        (minor == 6).then(|| "--cluster-feature-gates=ClusterLeaseCheckpoint=true,ClusterCounters=true".into()),
    );
    flags.extend((minor == 7).then(|| "--cluster-feature-gates=ClusterSnapshotCompression=true".into()));
    let cluster = Cluster::up(&Spec { flags, size: 1, ..Spec::new(build.clone()) }).await?;
    let member = &cluster.layout.members[0];
    let client = cluster.layout.client(member)?;
    if minor >= 6 {
        wait::until("the gate", GENEROUS, || async { add(&client, 1).await.map_err(|error| error.to_string()) })
            .await?;
    }
    if minor >= 6 {
        let lower = format!("3.{}.0", minor - 1);
        downgrade(&client, DowngradeAction::Enable, &lower).await?;
        cluster.settled(lower.parse::<Release>()?.cluster_version()).await?;
        downgrade(&client, DowngradeAction::Cancel, "").await?;
        cluster.settled(build.release.cluster_version()).await?;
    }
    let (lease, ttl) = CHECKPOINTED;
    let mut leases = LeaseClient::new(client.channel());
    leases.lease_grant(LeaseGrantRequest { id: lease, ttl }).await?;
    members(&client, member).await?;
    let before = snapshots(member)?;
    everything(&client, minor, ("stored", 1000)).await?;
    while snapshots(member)? == before {
        client.put("filler", "to make the log long").await?;
    }
    if minor >= 6 {
        // It must stand in the log before it is given its whole time again.
        let half = || async {
            let request = LeaseTimeToLiveRequest { id: lease, ..LeaseTimeToLiveRequest::default() };
            let left =
                LeaseClient::new(client.channel()).lease_time_to_live(request).await.map_err(|s| s.to_string())?;
            let left = left.into_inner().ttl;
            if left < ttl / 2 - 2 { Ok(()) } else { Err(format!("{left} s are left")) }
        };
        wait::until("a checkpoint", GENEROUS, half).await?;
    }
    member.end(Signal::TERM)?;
    member.start()?;
    cluster.ready().await?;
    everything(&client, minor, ("logged", 2000)).await?;
    if let Some(target) = &cli.downgrade {
        // A member that does not run is at no version, and the cluster's waits for it.
        let mut members = ClusterClient::new(client.channel());
        for learner in client.members().await?.into_iter().filter(|member| member.is_learner) {
            members.member_remove(MemberRemoveRequest { id: learner.id }).await?;
        }
        downgrade(&client, DowngradeAction::Enable, target).await?;
        cluster.settled(target.parse()?).await?;
        wait::until("it to be stored", GENEROUS, || async {
            let found = client.status().await.map_err(|status| status.to_string())?.storage_version;
            if found.starts_with(target) { Ok(()) } else { Err(found) }
        })
        .await?;
    } else if minor >= 6 {
        downgrade(&client, DowngradeAction::Enable, &format!("3.{}.0", minor - 1)).await?;
        downgrade(&client, DowngradeAction::Cancel, "").await?;
    }
    client.alarm_no_space(true).await?;
    // Nothing is proposed any more, and what is committed is known to be.
    tokio::time::sleep(Duration::from_secs(2)).await;
    save(&client, &cli.folder).await?;
    member.end(Signal::TERM)?;
    let data = member.dir.join("data");
    if let Some(target) = &cli.migrate {
        let node = member.binary();
        let done =
            Command::new(node).args(["migrate", "--target-version", target, "--data-dir"]).arg(&data).status()?;
        if !done.success() {
            return Err(format!("node migrate: {done}").into());
        }
    }
    keep(&data, &cli.folder.join("data"))?;
    Ok(ExitCode::SUCCESS)
}

async fn downgrade(client: &Client, action: DowngradeAction, version: &str) -> Result<(), Error> {
    let request = DowngradeRequest { action: action.into(), version: version.into() };
    MaintenanceClient::new(client.channel()).downgrade(request).await?;
    Ok(())
}

fn snapshots(member: &Member) -> Result<BTreeSet<OsString>, Error> {
    let entries = fs::read_dir(member.dir.join("data/snap"))?;
    Ok(entries.map(|entry| Ok(entry?.file_name())).collect::<Result<_, io::Error>>()?)
}

async fn add(client: &Client, by: i64) -> Result<(), Error> {
    CountersClient::new(client.channel()).add(AddRequest { key: b"counter".to_vec(), by }).await?;
    Ok(())
}

/// One learner that stays and never runs, and one that is removed; and the member's own URL is changed and changed back.
async fn members(client: &Client, member: &Member) -> Result<(), Error> {
    let mut cluster = ClusterClient::new(client.channel());
    let own = client.members().await?.remove(0);
    for url in ELSEWHERE {
        let request = MemberAddRequest { peer_urls: vec![url.into()], is_learner: true };
        let added = cluster.member_add(request).await?.into_inner().member.ok_or("no member")?;
        if url == ELSEWHERE[0] {
            cluster.member_remove(MemberRemoveRequest { id: added.id }).await?;
        }
    }
    for port in [member.client_port, member.peer_port] {
        let peer_urls = vec![format!("http://localhost:{port}")];
        cluster.member_update(MemberUpdateRequest { id: own.id, peer_urls }).await?;
    }
    Ok(())
}

/// Something of every kind that a client can write.
async fn everything(client: &Client, minor: u64, (prefix, lease): (&str, i64)) -> Result<(), Error> {
    let mut kv = KvClient::new(client.channel());
    let mut leases = LeaseClient::new(client.channel());
    let key = |name: &str| format!("{prefix}/{name}").into_bytes();
    for (id, ttl) in [(lease, 1_000_000), (lease + 1, 1_000_000)] {
        leases.lease_grant(LeaseGrantRequest { id, ttl }).await?;
        let (key, value) = (key(&format!("leased-{id}")), b"held by a lease".to_vec());
        kv.put(PutRequest { key, value, lease: id, ..PutRequest::default() }).await?;
    }
    leases.lease_revoke(LeaseRevokeRequest { id: lease + 1 }).await?;
    for round in 0..3 {
        for name in ["a", "b", "c"] {
            client.put(&format!("{prefix}/{name}"), &format!("{name} {round}")).await?;
        }
    }
    client.put(&format!("{prefix}/large"), &"of no great variety ".repeat(200)).await?;
    let middle = client.newest().await?;
    kv.put(PutRequest { key: key("a"), ignore_value: true, lease, prev_kv: true, ..PutRequest::default() }).await?;
    kv.delete_range(DeleteRangeRequest { key: key("b"), range_end: key("c"), prev_kv: true }).await?;
    let target = Some(compare::TargetUnion::Value(b"c 2".to_vec()));
    let (result, kind) = (compare::CompareResult::Equal.into(), compare::CompareTarget::Value.into());
    let compare = Compare { result, target: kind, key: key("c"), range_end: Vec::new(), target_union: target };
    let put = |name: &str| PutRequest { key: key(name), value: vec![0, 0xff, b'\n'], ..PutRequest::default() };
    let inner = TxnRequest { success: vec![op(Op::RequestPut(put("nested")))], ..TxnRequest::default() };
    let gone = DeleteRangeRequest { key: key("a"), ..DeleteRangeRequest::default() };
    let success = vec![op(Op::RequestPut(put("d"))), op(Op::RequestDeleteRange(gone)), op(Op::RequestTxn(inner))];
    let failure = vec![op(Op::RequestPut(put("never")))];
    kv.txn(TxnRequest { compare: vec![compare], success, failure }).await?;
    kv.compact(CompactionRequest { revision: middle.0, physical: true }).await?;
    client.alarm_no_space(true).await?;
    client.alarm_no_space(false).await?;
    if minor >= 6 {
        add(client, 41).await?;
        let (key, value) = (key("required"), b"of a request with a condition".to_vec());
        let mut request = Request::new(PutRequest { key, value, ..PutRequest::default() });
        require_feature(&mut request, "ClusterCounters")?;
        kv.put(request).await?;
    }
    Ok(())
}

fn op(request: Op) -> RequestOp {
    RequestOp { request: Some(request) }
}

/// What the release says that it holds.
async fn save(client: &Client, folder: &Path) -> Result<(), Error> {
    let (mut saved, revision) = (Vec::new(), client.newest().await?);
    let mut stream = MaintenanceClient::new(client.channel()).snapshot(SnapshotRequest {}).await?.into_inner();
    while let Some(piece) = stream.message().await? {
        saved.extend(piece.blob);
    }
    fs::write(folder.join("saved"), saved)?;
    let Revision(number) = revision;
    Ok(fs::write(folder.join("hash"), format!("{number} {}\n", client.hash(revision).await?))?)
}

/// A copy, without the zeros that segments of the log are made with.
fn keep(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            keep(&entry.path(), &target)?;
            continue;
        }
        let mut bytes = fs::read(entry.path())?;
        if target.extension().is_some_and(|suffix| suffix == "wal") {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(end.next_multiple_of(4096));
        }
        fs::write(target, bytes)?;
    }
    Ok(())
}
