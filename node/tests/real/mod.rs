//! Real etcd: where its releases are, and one member of it in a process of its own. Each test binary takes this in by its path.

use std::{
    env,
    fs::File,
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use proto::etcdserverpb::{RangeRequest, kv_client::KvClient};
use tempfile::TempDir;
use tonic::transport::Channel;

/// Longer than a start or an answer takes on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The folder with a release's executables, or `None` once it was said why there is none; `3_6` for example.
pub fn folder(release: &str) -> Option<PathBuf> {
    let reason = match (env::var_os(format!("BATON_ETCD_{release}")), env::var(format!("BATON_NO_ETCD_{release}"))) {
        (Some(folder), _) => return Some(PathBuf::from(folder)),
        (None, Ok(reason)) => reason,
        (None, Err(_)) => format!("BATON_ETCD_{release} names no folder with etcd"),
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
    /// Connected to it.
    pub channel: Channel,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Etcd {
    /// Starts a member with nothing in it and waits until it answers.
    pub async fn start(folder: &Path, flags: &[&str]) -> Self {
        let home = TempDir::new().unwrap();
        let [client, peer] = free_ports().map(|port| format!("http://127.0.0.1:{port}"));
        let log = File::create(home.path().join("log")).unwrap();
        let process = Command::new(folder.join("etcd"))
            .args(["--name", "m1", "--unsafe-no-fsync", "--log-level", "error"])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("m1={peer}")])
            .args(flags)
            .arg("--data-dir")
            .arg(home.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let channel = Channel::from_shared(client).unwrap().timeout(PATIENCE).connect_lazy();
        let etcd = Self { process, _home: home, channel };
        let mut kv = KvClient::new(etcd.channel.clone());
        let deadline = Instant::now() + PATIENCE;
        while let Err(status) = kv.range(RangeRequest { key: b"a".to_vec(), ..RangeRequest::default() }).await {
            assert!(Instant::now() < deadline, "etcd does not answer: {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        etcd
    }
}

fn free_ports() -> [u16; 2] {
    // Both are held until both are known, so that they differ.
    let held = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
