//! The network between members: every connection among them goes through here, and a member can be cut off, or be far away.
//!
//! One that is cut off hears nobody and is heard by nobody, and no connection breaks: what was sent waits, as it does
//! where packets are lost, and arrives when the cut is repaired. Members do not say who they are when they connect, so the
//! kernel is asked whose socket it is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::{Error, cluster::Layout, process::Process};

/// So much of what comes over one connection is kept.
const MOST_RECORDED_BYTES: usize = 32 << 10;

/// What a member was told over one connection, from its beginning.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The member that was called, by its place.
    pub to: usize,
    pub bytes: Vec<u8>,
}

type Records = Arc<Mutex<Vec<Recorded>>>;

/// What is wrong, of members by their place.
#[derive(Clone, Debug, Default)]
struct Faults {
    cut: BTreeSet<usize>,
    /// How much later arrives what is sent to one and by one.
    late: BTreeMap<usize, Duration>,
}

impl Faults {
    fn is_cut(&self, ends: [usize; 2]) -> bool {
        ends.iter().any(|end| self.cut.contains(end))
    }

    fn late(&self, ends: [usize; 2]) -> Duration {
        // Of a newcomer both are the member that it calls.
        BTreeSet::from(ends).iter().filter_map(|end| self.late.get(end)).sum()
    }
}

/// A network at work; it ends with the value.
#[derive(Debug)]
pub struct Network {
    faults: watch::Sender<Faults>,
    records: Records,
    _doors: JoinSet<()>,
}

/// What one connection needs to know.
#[derive(Clone, Debug)]
struct Wiring {
    /// The folders of the members' executables, by which their processes are known.
    bins: Vec<PathBuf>,
    /// The processes that were found there the last time.
    pids: Arc<Mutex<Vec<Vec<i32>>>>,
    /// Whether who is none of them may connect.
    lets_others_in: bool,
    faults: watch::Receiver<Faults>,
    records: Records,
}

impl Network {
    /// A way to each member: from the first port of a pair to the second, where the member itself listens. Nobody else is let in.
    ///
    /// # Errors
    /// A port is taken.
    pub async fn start(layout: &Layout, ways: &[(u16, u16)]) -> Result<Self, Error> {
        Self::among(layout, ways, false).await
    }

    /// The same, where others may come, such as newcomers: they are cut off from a member that is, and else hear everybody.
    ///
    /// # Errors
    /// A port is taken.
    pub async fn start_with_newcomers(layout: &Layout, ways: &[(u16, u16)]) -> Result<Self, Error> {
        Self::among(layout, ways, true).await
    }

    async fn among(layout: &Layout, ways: &[(u16, u16)], lets_others_in: bool) -> Result<Self, Error> {
        let (faults, receiver) = watch::channel(Faults::default());
        let wiring = Wiring {
            bins: layout.members.iter().map(|member| member.bin()).collect(),
            pids: Arc::default(),
            lets_others_in,
            faults: receiver,
            records: Arc::default(),
        };
        let records = wiring.records.clone();
        let mut doors = JoinSet::new();
        for (to, (from, port)) in ways.iter().enumerate() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *from)).await?;
            doors.spawn(open(listener, to, *port, wiring.clone()));
        }
        Ok(Self { faults, records, _doors: doors })
    }

    pub fn cut(&self, member: usize) {
        self.faults.send_modify(|faults| _ = faults.cut.insert(member));
    }

    /// Lets every piece that is sent to this member or by it arrive so much later, one after the other.
    pub fn delay(&self, member: usize, by: Duration) {
        self.faults.send_modify(|faults| _ = faults.late.insert(member, by));
    }

    /// What members were told until now.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn repair(&self) {
        self.faults.send_replace(Faults::default());
    }
}

/// Lets connections to one member in.
async fn open(listener: TcpListener, to: usize, port: u16, wiring: Wiring) {
    // They end with the door.
    let mut connections = JoinSet::new();
    while let Ok((caller, address)) = listener.accept().await {
        let wiring = wiring.clone();
        connections.spawn(async move {
            // Where much runs, to look through all processes takes longer than a member waits for an answer.
            let asked = wiring.clone();
            let owner = tokio::task::spawn_blocking(move || asked.owner(address)).await;
            let other = wiring.lets_others_in.then_some(to);
            if let Some(from) = owner.ok().flatten().or(other) {
                connect(caller, port, wiring, [from, to]).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(caller: TcpStream, port: u16, wiring: Wiring, ends: [usize; 2]) {
    // Whoever is not reached is not connected to, either.
    let mut faults = wiring.faults.clone();
    if faults.wait_for(|faults| !faults.is_cut(ends)).await.is_err() {
        return;
    }
    let Ok(member) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    // Small messages must not wait for each other any longer than without us.
    let _ = (caller.set_nodelay(true), member.set_nodelay(true));
    let ((caller_reads, caller_writes), (member_reads, member_writes)) = (caller.into_split(), member.into_split());
    let place = {
        let mut records = wiring.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.push(Recorded { to: ends[1], bytes: Vec::new() });
        records.len() - 1
    };
    let record = |piece: &[u8]| {
        let mut records = wiring.records.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut records[place].bytes;
        kept.extend_from_slice(&piece[..piece.len().min(MOST_RECORDED_BYTES - kept.len())]);
    };
    // The end of one direction is the end of both.
    tokio::select! {
        _ = pass(caller_reads, member_writes, wiring.faults.clone(), ends, record) => {}
        _ = pass(member_reads, caller_writes, wiring.faults.clone(), ends, |_| {}) => {}
    }
}

/// Passes on what comes, late where an end is far away, and holds it while one is cut off.
async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut faults: watch::Receiver<Faults>,
    ends: [usize; 2],
    passes: impl Fn(&[u8]),
) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut piece).await?;
        let repaired = faults.wait_for(|faults| !faults.is_cut(ends)).await;
        let late = repaired.map_err(|_| io::ErrorKind::ConnectionAborted)?.late(ends);
        if !late.is_zero() {
            tokio::time::sleep(late).await;
        }
        if length == 0 {
            return Ok(());
        }
        passes(&piece[..length]);
        to.write_all(&piece[..length]).await?;
    }
}

impl Wiring {
    /// The member whose socket has this address.
    fn owner(&self, address: SocketAddr) -> Option<usize> {
        let socket = format!("socket:[{}]", inode(address)?);
        let owner = |pids: &[Vec<i32>]| pids.iter().position(|pids| pids.iter().any(|pid| has(*pid, &socket)));
        let known = self.pids.lock().unwrap_or_else(PoisonError::into_inner).clone();
        owner(&known).or_else(|| {
            let pids = |bin: &PathBuf| Process::under(bin).iter().map(|process| process.pid).collect();
            let found: Vec<Vec<i32>> = self.bins.iter().map(pids).collect();
            let owner = owner(&found);
            *self.pids.lock().unwrap_or_else(PoisonError::into_inner) = found;
            owner
        })
    }
}

fn has(pid: i32, socket: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file.as_os_str() == socket)
}

/// The inode of the socket with this address of 127.0.0.1, by the tenth column of `/proc/net/tcp` (proc_pid_net(5)).
fn inode(address: SocketAddr) -> Option<String> {
    let wanted = format!("0100007F:{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = columns.into_iter().find(|columns| columns.get(1) == Some(&&*wanted))?;
    found.get(9).map(ToString::to_string)
}
