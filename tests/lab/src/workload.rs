//! Clients that write and read all the time, through all members, and remember all they were told.
//!
//! An attempt that fails is repeated through the next member with the same value. Each attempt is an
//! operation of its own in the history: the first one may still take effect after the second was
//! acknowledged, and that is nobody's fault but the client's.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use proto::Revision;
use tokio::task::JoinSet;
use tonic::Status;

use crate::{
    Error,
    client::{Access, Client, had_no_effect, has_no_room, was_never_sent},
    history::{self, Action, History, HistoryError, Judged, Operation},
    turns::Turns,
    wait,
};

/// What a client waits when no member has done what it wants.
const ROUND: Duration = Duration::from_millis(5);
/// The same where none will for a while.
const NO_ROOM: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Load {
    /// How many clients; each has one operation under way at a time.
    pub clients: usize,
    /// How many keys they share.
    pub keys: u64,
    /// What each client waits between two operations.
    pub pause: Duration,
    /// How long an attempt may take before it is a maybe.
    pub patience: Duration,
    /// What every key begins with; a cluster that is used twice wants two.
    pub prefix: String,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            clients: 4,
            keys: 128,
            pause: Duration::from_millis(1),
            patience: Duration::from_secs(1),
            prefix: "load/".into(),
        }
    }
}

impl Load {
    /// What leaves a machine room for several clusters at once.
    pub fn light() -> Self {
        Self { pause: Duration::from_millis(250), ..Self::default() }
    }
}

/// Clients at work, on a thread of their own.
pub struct Workload {
    over: Arc<AtomicBool>,
    acked: Arc<AtomicU64>,
    /// Until it was asked what it knows.
    thread: Option<JoinHandle<Result<Outcome, Error>>>,
}

/// What the clients were told.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Every attempt that may have had an effect, and every read that was answered.
    pub history: History,
    /// Every write that was acknowledged.
    pub acked: Vec<Acked>,
    /// Attempts that had to be repeated.
    pub failed_attempts: usize,
    /// The longest time between two acknowledged writes of any client.
    pub longest_write_gap: Duration,
    /// What some of the failed attempts were answered, each wording once, with how often.
    pub complaints: BTreeMap<String, usize>,
    prefix: String,
    keys: u64,
    began: Option<Instant>,
}

/// A write that a member said is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acked {
    pub key: String,
    pub value: u64,
    /// The revision that the answer named.
    pub revision: Revision,
}

/// What the cluster has of it.
#[derive(Debug)]
pub struct Verified {
    /// Acknowledged writes that the cluster does not have at their revision.
    pub lost: Vec<Acked>,
    /// How the history was judged, with a last read of every key through every member.
    pub history: Result<Judged, HistoryError>,
}

impl Workload {
    /// Starts the clients; each goes round the members, from another one first.
    ///
    /// # Errors
    /// An endpoint is no URL, or the certificates cannot be read.
    pub fn start(endpoints: &[String], access: &Access, load: &Load) -> Result<Self, Error> {
        let (over, acked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let began = Instant::now();
        let workers = {
            let _inside = runtime.enter();
            let members = Arc::new(Turns::new(endpoints, access)?);
            let worker = |number| Worker::new(number, members.clone(), load, began, (&over, &acked));
            (0..load.clients).map(worker).collect::<Vec<_>>()
        };
        let load = load.clone();
        let thread = std::thread::spawn(move || {
            let logs = runtime.block_on(async {
                let tasks: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.work())).collect();
                let mut logs = Vec::new();
                for task in tasks {
                    logs.push(task.await?);
                }
                Ok::<_, Error>(logs)
            })?;
            Ok(Outcome::gather(logs, &load, began))
        });
        Ok(Self { over, acked, thread: Some(thread) })
    }

    /// How many writes were acknowledged by now.
    pub fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// Waits until this many more writes are acknowledged: the load is under way, or under way again.
    ///
    /// # Errors
    /// They are not within [`wait::GENEROUS`].
    pub async fn more(&self, writes: u64) -> Result<(), wait::TimedOut> {
        let wanted = self.acked() + writes;
        wait::until(&format!("{writes} more writes"), wait::GENEROUS, || async {
            let acked = self.acked();
            if acked >= wanted { Ok(()) } else { Err(format!("{} are missing", wanted - acked)) }
        })
        .await
    }

    /// Lets every client finish its operation and gathers what they know.
    ///
    /// # Errors
    /// A client died.
    pub fn finish(mut self) -> Result<Outcome, Error> {
        self.over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or("the workload has ended")?;
        thread.join().map_err(|_| "the workload died")?
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // Clients that nobody asks any more would go on for ever.
        self.over.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Log {
    operations: Vec<(String, Operation)>,
    acked: Vec<(u64, Acked)>,
    failed_attempts: usize,
    complaints: BTreeMap<String, usize>,
}

struct Worker {
    number: u64,
    members: Arc<Turns>,
    /// Which member was asked last.
    turn: usize,
    random: u64,
    written: u64,
    load: Load,
    began: Instant,
    over: Arc<AtomicBool>,
    total: Arc<AtomicU64>,
    log: Log,
}

impl Worker {
    fn new(
        number: usize,
        members: Arc<Turns>,
        load: &Load,
        began: Instant,
        (over, total): (&Arc<AtomicBool>, &Arc<AtomicU64>),
    ) -> Self {
        let random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1);
        let (over, total) = (over.clone(), total.clone());
        let (load, log) = (load.clone(), Log::default());
        Self { number: number as u64, members, turn: number, random, written: 0, load, began, over, total, log }
    }

    async fn work(mut self) -> Log {
        while !self.is_over() {
            let number = self.random(self.load.keys);
            let key = format!("{}{number:04}", self.load.prefix);
            if self.random(2) == 0 {
                self.write(key).await
            } else {
                self.read(key).await
            }
            tokio::time::sleep(self.load.pause).await;
        }
        self.log
    }

    async fn write(&mut self, key: String) {
        self.written += 1;
        // Unique: no other client has this number, and this one never writes it again.
        let value = self.number << 40 | self.written;
        for attempt in 0.. {
            let invoked = self.now();
            let text = value.to_string();
            let put = tokio::time::timeout(self.load.patience, self.member().put(&key, &text)).await;
            let returned = put.as_ref().is_ok_and(Result::is_ok).then(|| self.now());
            match put.unwrap_or_else(|_| Err(Status::deadline_exceeded("the client's patience"))) {
                Ok(revision) => {
                    self.note(&key, Action::Put(value), invoked, returned);
                    self.log.acked.push((self.now(), Acked { key, value, revision }));
                    self.total.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Err(status) => {
                    if !had_no_effect(&status) {
                        self.note(&key, Action::Put(value), invoked, None);
                    }
                    if self.gives_up(attempt, status).await {
                        return;
                    }
                }
            }
        }
    }

    async fn read(&mut self, key: String) {
        for attempt in 0.. {
            let invoked = self.now();
            let get = tokio::time::timeout(self.load.patience, self.member().get(&key)).await;
            let returned = Some(self.now());
            match get.unwrap_or_else(|_| Err(Status::deadline_exceeded("the client's patience"))) {
                Ok(found) => {
                    // What is no number was written by nobody here, and the checker refuses such a value.
                    let value = found.map(|kv| number_in(&kv.value).unwrap_or(u64::MAX));
                    return self.note(&key, Action::Get(value), invoked, returned);
                }
                Err(status) => {
                    if self.gives_up(attempt, status).await {
                        return;
                    }
                }
            }
        }
    }

    fn note(&mut self, key: &str, action: Action, invoked: u64, returned: Option<u64>) {
        self.log.operations.push((key.into(), Operation { action, invoked, returned }));
    }

    /// Counts a failed attempt; pauses after a whole round of them.
    async fn gives_up(&mut self, attempt: usize, status: Status) -> bool {
        self.log.failed_attempts += 1;
        let pause = if has_no_room(&status) { NO_ROOM } else { ROUND };
        if was_never_sent(&status) {
            self.members.has_refused(self.turn, self.now());
        }
        *self.log.complaints.entry(format!("{:?}: {}", status.code(), status.message())).or_default() += 1;
        if attempt % self.members.clients.len() == self.members.clients.len() - 1 {
            tokio::time::sleep(pause).await;
        }
        self.is_over()
    }

    fn member(&mut self) -> &Client {
        self.turn = self.members.after(self.turn, self.now());
        &self.members.clients[self.turn]
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        since(self.began)
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 16) % below
    }
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn number_in(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

impl Outcome {
    fn gather(logs: Vec<Log>, load: &Load, began: Instant) -> Self {
        let mut outcome = Self { prefix: load.prefix.clone(), keys: load.keys, began: Some(began), ..Self::default() };
        let mut acked = Vec::new();
        for log in logs {
            for (key, operation) in log.operations {
                outcome.history.entry(key).or_default().push(operation);
            }
            acked.extend(log.acked);
            outcome.failed_attempts += log.failed_attempts;
            for (complaint, count) in log.complaints {
                *outcome.complaints.entry(complaint).or_default() += count;
            }
        }
        acked.sort_by_key(|(when, _)| *when);
        let gaps = acked.windows(2).map(|pair| pair[1].0 - pair[0].0);
        outcome.longest_write_gap = Duration::from_nanos(gaps.max().unwrap_or_default());
        outcome.acked = acked.into_iter().map(|(_, acked)| acked).collect();
        outcome
    }

    /// Reads every acknowledged write back at its own revision, reads every key once more through every
    /// member, and judges the whole history.
    ///
    /// # Errors
    /// A member does not answer: then nothing is known.
    pub async fn verify(mut self, endpoints: &[String], access: &Access) -> Result<Verified, Error> {
        let members = endpoints.iter().map(|url| Client::new(url, access)).collect::<Result<Vec<_>, _>>()?;
        for member in &members {
            for key in 0..self.keys {
                let key = format!("{}{key:04}", self.prefix);
                let invoked = self.now();
                let found = member.get(&key).await?;
                let action = Action::Get(found.map(|kv| number_in(&kv.value).unwrap_or(u64::MAX)));
                let returned = Some(self.now());
                self.history.entry(key).or_default().push(Operation { action, invoked, returned });
            }
        }
        let lost = self.lost(&members).await?;
        Ok(Verified { lost, history: history::check(&self.history, history::BOUND) })
    }

    /// etcd keeps every revision until it is compacted, so that every write can be asked for, the
    /// overwritten ones too.
    async fn lost(&self, members: &[Client]) -> Result<Vec<Acked>, Error> {
        let mut lost = Vec::new();
        for (at_once, member) in self.acked.chunks(AT_ONCE).zip(members.iter().cycle()) {
            let mut reads = JoinSet::new();
            for acked in at_once.iter().cloned() {
                let member = member.clone();
                reads.spawn(async move {
                    let found = member.get_at(&acked.key, acked.revision).await?;
                    let is_there = found.is_some_and(|kv| {
                        number_in(&kv.value) == Some(acked.value) && kv.mod_revision == acked.revision.0
                    });
                    Ok::<_, Status>((!is_there).then_some(acked))
                });
            }
            while let Some(read) = reads.join_next().await {
                lost.extend(read??);
            }
        }
        Ok(lost)
    }

    fn now(&self) -> u64 {
        self.began.map_or(0, since)
    }
}

/// How many writes are asked for side by side.
const AT_ONCE: usize = 64;
