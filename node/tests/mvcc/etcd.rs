//! A real etcd of one member, in a process of its own.

use std::{
    env,
    fs::File,
    io::Write,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use proto::{
    etcdserverpb::{
        HashKvRequest, HashKvResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, ResponseHeader,
        WatchCreateRequest, WatchRequest, kv_client::KvClient, lease_client::LeaseClient,
        maintenance_client::MaintenanceClient, watch_client::WatchClient, watch_request::RequestUnion,
    },
    mvccpb::Event,
};
use tempfile::TempDir;
use tonic::{Request, Status, transport::Channel};

use crate::{answer::Answer, random::Step};

/// Longer than a start or an answer takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// etcd's executable, or `None` once it was said why there is none.
pub fn executable() -> Option<PathBuf> {
    let reason = match (env::var_os("BATON_ETCD_3_6"), env::var("BATON_NO_ETCD_3_6")) {
        (Some(folder), _) => return Some(PathBuf::from(folder).join("etcd")),
        (None, Ok(reason)) => reason,
        (None, Err(_)) => "BATON_ETCD_3_6 names no folder with etcd 3.6".into(),
    };
    let line = format!("{}\t{}\n", thread::current().name().unwrap_or("a test"), reason.replace(['\n', '\t'], " "));
    eprint!("skipped: {line}");
    // libtest knows no such verdict, so `scripts/test` reads it from this file.
    if let Some(file) =
        env::var_os("BATON_SKIPS").and_then(|path| File::options().create(true).append(true).open(path).ok())
    {
        let _ = (&file).write_all(line.as_bytes());
    }
    None
}

/// A running member; dropped, it is killed.
pub struct Etcd {
    process: Child,
    _home: TempDir,
    channel: Channel,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Etcd {
    /// Starts a member with nothing in it and waits until it answers.
    pub async fn start(executable: &PathBuf) -> Self {
        let home = TempDir::new().unwrap();
        let [client, peer] = free_ports().map(|port| format!("http://127.0.0.1:{port}"));
        let log = File::create(home.path().join("log")).unwrap();
        let process = Command::new(executable)
            .args(["--name", "m1", "--unsafe-no-fsync", "--log-level", "error"])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("m1={peer}")])
            .arg("--data-dir")
            .arg(home.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let channel = Channel::from_shared(client).unwrap().timeout(PATIENCE).connect_lazy();
        let mut etcd = Self { process, _home: home, channel };
        let deadline = Instant::now() + PATIENCE;
        while let Err(status) = etcd.answer(Step::Range(crate::word::range("a", ""))).await {
            assert!(Instant::now() < deadline, "etcd does not answer: {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        etcd
    }

    /// What etcd answers; of the header only the revision.
    pub async fn answer(&mut self, step: Step) -> Result<Answer, Status> {
        let mut kv = KvClient::new(self.channel.clone());
        let mut lease = LeaseClient::new(self.channel.clone());
        let mut answer = match step {
            Step::Put(request) => Answer::Put(kv.put(request).await?.into_inner()),
            Step::Delete(request) => Answer::Delete(kv.delete_range(request).await?.into_inner()),
            Step::Range(request) => Answer::Range(kv.range(request).await?.into_inner()),
            Step::Txn(request) => Answer::Txn(kv.txn(request).await?.into_inner()),
            Step::Compact(request) => Answer::Compact(kv.compact(request).await?.into_inner()),
            Step::Grant(request) => Answer::Grant(lease.lease_grant(request).await?.into_inner()),
            Step::Revoke(request) => Answer::Revoke(lease.lease_revoke(request).await?.into_inner()),
        };
        strip(match &mut answer {
            Answer::Put(response) => &mut response.header,
            Answer::Delete(response) => &mut response.header,
            Answer::Range(response) => &mut response.header,
            Answer::Txn(response) => &mut response.header,
            Answer::Compact(response) => &mut response.header,
            Answer::Grant(response) => &mut response.header,
            Answer::Revoke(response) => &mut response.header,
        });
        Ok(answer)
    }

    /// The hash at a revision.
    pub async fn hash(&self, revision: i64) -> Result<HashKvResponse, Status> {
        let mut client = MaintenanceClient::new(self.channel.clone());
        let mut response = client.hash_kv(HashKvRequest { revision }).await?.into_inner();
        strip(&mut response.header);
        Ok(response)
    }

    /// What a lease was granted for and holds.
    pub async fn time_to_live(&self, id: i64) -> LeaseTimeToLiveResponse {
        let mut client = LeaseClient::new(self.channel.clone());
        let mut response =
            client.lease_time_to_live(LeaseTimeToLiveRequest { id, keys: true }).await.unwrap().into_inner();
        strip(&mut response.header);
        response.keys.sort();
        response
    }

    /// What a watch of all keys with `prev_kv` is told from `start` up to `newest`.
    pub async fn events(&self, start: i64, newest: i64) -> Vec<Event> {
        let create = WatchCreateRequest {
            key: vec![0],
            range_end: vec![0],
            start_revision: start,
            prev_kv: true,
            ..WatchCreateRequest::default()
        };
        let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        let (sender, requests) = tokio::sync::mpsc::channel(1);
        sender.send(create).await.unwrap();
        let mut client = WatchClient::new(self.channel.clone());
        let mut requests = Request::new(tokio_stream::wrappers::ReceiverStream::new(requests));
        requests.set_timeout(PATIENCE);
        let mut responses = client.watch(requests).await.unwrap().into_inner();
        let mut events = Vec::new();
        let seen = |events: &[Event]| events.last().and_then(|event| event.kv.as_ref()).map_or(0, |kv| kv.mod_revision);
        while seen(&events) < newest {
            let response = responses.message().await.unwrap().unwrap();
            assert!(!response.canceled, "{response:?}");
            events.extend(response.events);
        }
        events
    }
}

fn strip(header: &mut Option<ResponseHeader>) {
    *header = header.take().map(|header| ResponseHeader { revision: header.revision, ..ResponseHeader::default() });
}

fn free_ports() -> [u16; 2] {
    // Both are held until both are known, so that they differ.
    let held = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
