//! An observer outside of everything: it looks at every member's process and port, all the time, and says
//! how many members were down at once.
//!
//! It believes neither agents nor members: a member is down while no process runs its executable (a
//! zombie or a stopped one does not count), or while nobody listens on its client port. It asks the
//! kernel only, so that looking disturbs no member.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::net::TcpSocket;

use crate::{Error, cluster::Layout, process::Process};

/// The time between two looks.
const PERIOD: Duration = Duration::from_millis(20);

pub struct Observer {
    over: Arc<AtomicBool>,
    looks: Arc<AtomicU64>,
    /// Until it was asked for its report.
    thread: Option<JoinHandle<Report>>,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The most members that were down in one look.
    pub max_members_down: usize,
    /// Which ones these were, the first time.
    pub worst: Vec<String>,
    /// Every time that a member went down.
    pub outages: Vec<Outage>,
    pub looks: u64,
    /// The longest time between the beginnings of two looks. A port closed for less, or a process that
    /// stood still for less, may be missed; a process that ended never is.
    pub longest_blind: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    pub member: String,
    /// When it was first seen down, since the observer began.
    pub from: Duration,
    /// When it was seen up again; `None` if never.
    pub to: Option<Duration>,
}

impl Observer {
    /// Begins to look; when this returns it has looked.
    pub fn start(layout: &Layout) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let looks = Arc::new(AtomicU64::new(0));
        let (told, count) = (over.clone(), looks.clone());
        let mut watch = Watch::new(layout);
        let thread = std::thread::spawn(move || {
            go_first();
            while !told.load(Ordering::Relaxed) {
                watch.look();
                count.fetch_add(1, Ordering::Release);
                std::thread::sleep(PERIOD);
            }
            watch.report
        });
        let observer = Self { over, looks, thread: Some(thread) };
        observer.has_looked();
        observer
    }

    /// Returns when it has seen what is true now: when two looks that began after this call are over, since a
    /// member with a new process is down for the first look that sees it.
    pub fn has_looked(&self) {
        let wanted = self.looks.load(Ordering::Acquire) + 3;
        let is_at_work = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while self.looks.load(Ordering::Acquire) < wanted && is_at_work() {
            std::thread::sleep(PERIOD);
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// Its thread died.
    pub fn finish(mut self) -> Result<Report, Error> {
        self.over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or("the observer has ended")?;
        thread.join().map_err(|_| "the observer died".into())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        // One that nobody asks any more would look for ever.
        self.over.store(true, Ordering::Relaxed);
    }
}

struct Watch {
    members: Vec<Watched>,
    began: Instant,
    last: Option<Duration>,
    report: Report,
}

struct Watched {
    name: String,
    bin: PathBuf,
    port: u16,
    process: Option<Process>,
    /// Which of the outages it is in.
    outage: Option<usize>,
}

impl Watch {
    fn new(layout: &Layout) -> Self {
        let watched = |member: &crate::cluster::Member| Watched {
            name: member.name.clone(),
            bin: member.bin(),
            port: member.client_port,
            process: None,
            outage: None,
        };
        let members = layout.members.iter().map(watched).collect();
        Self { members, began: Instant::now(), last: None, report: Report::default() }
    }

    fn look(&mut self) {
        let now = self.began.elapsed();
        for member in &mut self.members {
            // Its process is looked for among all there are, which costs: only once its port says that there is one.
            let is_up = match member.process {
                Some(_) => member.has_process() && is_listened_on(member.port),
                None => is_listened_on(member.port) && member.has_process(),
            };
            member.note(is_up, now, &mut self.report.outages);
        }
        let down: Vec<_> = self.members.iter().filter(|member| member.outage.is_some()).collect();
        if down.len() > self.report.max_members_down {
            self.report.max_members_down = down.len();
            self.report.worst = down.iter().map(|member| member.name.clone()).collect();
        }
        self.report.looks += 1;
        let blind = self.last.replace(now).map_or(Duration::ZERO, |last| now - last);
        self.report.longest_blind = self.report.longest_blind.max(blind);
    }
}

impl Watched {
    /// Whether the process of the last look still runs. Another one in its place is down for this look:
    /// it was in between, however short that was and however late this look comes.
    fn has_process(&mut self) -> bool {
        let runs = |process: &Process| matches!(process.state(), Some(state) if !"TtZX".contains(state));
        if self.process.as_ref().is_some_and(Process::is_alive) {
            return self.process.as_ref().is_some_and(runs);
        }
        let is_first_look = self.process.is_none() && self.outage.is_none();
        self.process = Process::under(&self.bin).pop();
        is_first_look && self.process.as_ref().is_some_and(runs)
    }

    fn note(&mut self, is_up: bool, now: Duration, outages: &mut Vec<Outage>) {
        match (self.outage, is_up) {
            (None, false) => {
                self.outage = Some(outages.len());
                outages.push(Outage { member: self.name.clone(), from: now, to: None });
            }
            (Some(index), true) => {
                outages[index].to = Some(now);
                self.outage = None;
            }
            (None, true) | (Some(_), false) => {}
        }
    }
}

/// Best effort: an observer that has to queue behind what it observes sees less. Without the right to it,
/// the report's `longest_blind` says what that came to.
fn go_first() {
    let this = fs::read_link("/proc/thread-self").unwrap_or_default();
    if let Some(thread) = this.file_name() {
        let _ = Command::new("chrt").args(["--fifo", "--pid", "1"]).arg(thread).output();
    }
}

/// Whether somebody listens on this port of 127.0.0.1.
///
/// It is not connected to, which the member would notice: an address can be bound twice with
/// `SO_REUSEADDR` unless one of the two listens (`socket(7)`). The table in `/proc/net` would say it too,
/// but takes the kernel milliseconds to write.
fn is_listened_on(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = TcpSocket::new_v4().and_then(|socket| {
        socket.set_reuseaddr(true)?;
        socket.bind(address)
    });
    bound.is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_is_seen_and_a_closed_one_is_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        assert!(is_listened_on(port));
        drop(listener);
        assert!(!is_listened_on(port));
    }
}
