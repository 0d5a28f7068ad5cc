//! A member whose disk tells another story than the others', with checksums that are right: how it starts.

use std::{
    io::BufRead,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use consensus::{Applier, Content, Frozen, Restored, Snapshots, Stop};
use node::{
    cluster::member::Starts,
    features::Registry,
    machine::{Machine, Proposals},
};
use proto::{
    MemberId, Release,
    etcdserverpb::{PutRequest, RangeRequest, kv_client::KvClient},
};
use tempfile::TempDir;
use tokio::time::sleep;
use tonic::transport::Channel;
use wal::{Options, Wal};

const PATIENCE: Duration = Duration::from_secs(60);
const TRUE: &[u8] = b"as it was written";
const FALSE: &[u8] = b"what nobody wrote";

/// Applies what the log says, but for one value.
struct Doctored(Machine);

impl consensus::Machine for Doctored {
    fn apply(&self, entries: &[(u64, Content)]) -> Result<(), Stop> {
        let doctored = |(index, content): &(u64, Content)| match content {
            Content::Command(command) => {
                let mut bytes = command.to_vec();
                if let Some(at) = bytes.windows(TRUE.len()).position(|part| part == TRUE) {
                    bytes[at..at + TRUE.len()].copy_from_slice(FALSE);
                }
                (*index, Content::Command(bytes.into()))
            }
            other => (*index, other.clone()),
        };
        self.0.apply(&entries.iter().map(doctored).collect::<Vec<_>>())
    }

    fn freeze(&self) -> Frozen {
        self.0.freeze()
    }

    fn read_state(self: Arc<Self>, bytes: &mut dyn BufRead) -> Result<Restored, Stop> {
        Arc::new(self.0.clone()).read_state(bytes)
    }
}

/// Stores another state than the log tells, and takes the log away.
fn doctor(data: &Path) {
    let (log, snapshots) = (disk::real(&data.join("wal")).unwrap(), disk::real(&data.join("snap")).unwrap());
    let log = Wal::open_in(log, Options::default()).unwrap();
    // Whatever release the members' executable is stamped with.
    let release = Release::new(3, 9, 0);
    let machine = Machine::new(release.clone(), Registry::of(&release), Proposals::new(MemberId(0), Starts(0)));
    let applier = Applier::open(Arc::new(Doctored(machine)), Snapshots::open(snapshots).unwrap()).unwrap();
    applier.replay(&log).unwrap();
    applier.store_offline(&log).unwrap();
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Member {
    name: String,
    client: u16,
    peer: u16,
}

struct Three {
    members: Vec<Member>,
    home: TempDir,
}

impl Three {
    fn new() -> Self {
        // All at once, so that none is given twice.
        let ports: Vec<_> = (0..6).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let port = |at: usize| ports[at].local_addr().unwrap().port();
        let member = |at: usize| Member { name: format!("m{at}"), client: port(2 * at), peer: port(2 * at + 1) };
        Self { members: (0..3).map(member).collect(), home: tempfile::tempdir().unwrap() }
    }

    fn start(&self, at: usize, gates: &str) -> Process {
        let Member { name, client, peer } = &self.members[at];
        let all: Vec<_> = self.members.iter().map(|m| format!("{}=http://127.0.0.1:{}", m.name, m.peer)).collect();
        let flags = [
            format!("--name={name}"),
            format!("--data-dir={}", self.home.path().join(name).display()),
            format!("--listen-client-urls=http://127.0.0.1:{client}"),
            format!("--advertise-client-urls=http://127.0.0.1:{client}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-cluster={}", all.join(",")),
            "--heartbeat-interval=50".into(),
            "--election-timeout=500".into(),
            format!("--feature-gates={gates}"),
            "--log-level=debug".into(),
        ];
        let log = std::fs::File::create(self.log(at)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_node"));
        Process(command.args(flags).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    fn log(&self, at: usize) -> std::path::PathBuf {
        self.home.path().join(format!("log-{at}"))
    }

    fn kv(&self, at: usize) -> KvClient<Channel> {
        let url = format!("http://127.0.0.1:{}", self.members[at].client);
        KvClient::new(Channel::from_shared(url).unwrap().connect_lazy())
    }

    /// What this member holds, once it serves.
    async fn held(&self, at: usize) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let request = RangeRequest { key: b"k".to_vec(), serializable: true, ..RangeRequest::default() };
            match self.kv(at).range(request).await {
                Ok(answer) => return answer.into_inner().kvs.remove(0).value,
                Err(error) => assert!(Instant::now() < deadline, "member {at}: {error}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_disk_tells_another_story_does_not_serve() {
    let three = Three::new();
    let mut running: Vec<_> = (0..3).map(|at| three.start(at, "")).collect();
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) =
        three.kv(0).put(PutRequest { key: b"k".to_vec(), value: TRUE.to_vec(), ..PutRequest::default() }).await
    {
        assert!(Instant::now() < deadline, "{error}");
        sleep(Duration::from_millis(50)).await;
    }
    // Each says that those before it are committed: its log knows of the first for certain.
    for number in 0..20 {
        let key = format!("after-{number}").into_bytes();
        three.kv(0).put(PutRequest { key, ..PutRequest::default() }).await.unwrap();
    }
    for at in 0..3 {
        let deadline = Instant::now() + PATIENCE;
        let request = || RangeRequest { key: b"k".to_vec(), ..RangeRequest::default() };
        while three.kv(at).range(request()).await.is_err() {
            assert!(Instant::now() < deadline, "member {at} does not answer");
            sleep(Duration::from_millis(50)).await;
        }
    }
    drop(running.pop());
    doctor(&three.home.path().join("m2"));

    // Nobody looks.
    let third = three.start(2, "InitialCorruptCheck=false");
    assert_eq!(three.held(2).await, FALSE, "the test changes what is stored");
    drop(third);

    let mut third = three.start(2, "InitialCorruptCheck=true");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match third.0.try_wait().unwrap() {
            Some(status) => break status,
            None => {
                assert!(Instant::now() < deadline, "it goes on: {}", std::fs::read_to_string(three.log(2)).unwrap())
            }
        }
        sleep(Duration::from_millis(50)).await;
    };
    let said = std::fs::read_to_string(three.log(2)).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("holds other keys at revision"), "{said}");
    assert!(!said.contains("serving client traffic"), "{said}");

    // One that is right is let go on, and so is one whom nobody answers.
    drop(running.pop());
    let _second = three.start(1, "InitialCorruptCheck=true");
    assert_eq!(three.held(1).await, TRUE);
}
