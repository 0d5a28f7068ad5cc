//! How many members refuse clients at once, as this machine sees it.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Longer than an answer takes on a loaded machine. One that does not come is no refusal: its host may be cut off.
const AN_ANSWER: Duration = Duration::from_millis(500);
const BETWEEN: Duration = Duration::from_millis(5);

/// A thread that looks.
pub struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<usize>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Watch {
    /// Begins to look.
    pub fn start(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let (over, addresses) = (Arc::new(AtomicBool::new(false)), Vec::from_iter(addresses));
        let is_over = over.clone();
        let thread = thread::spawn(move || {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(down(&addresses));
                thread::sleep(BETWEEN);
            }
            most
        });
        Self { over, thread: Some(thread) }
    }

    /// The most that were seen.
    pub fn end(&mut self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().expect("a thread").join().expect("it looked")
    }
}

/// How many are down at once. One look at all takes its time: whoever refused first may serve again when the next one
/// refuses. So they are asked again in the same order, and who refused both times was down, but for a start and an end in
/// between, when the first look was over.
fn down(addresses: &[SocketAddr]) -> usize {
    let refused: Vec<_> = addresses.iter().filter(|address| refuses(address)).collect();
    match refused.len() {
        0 | 1 => refused.len(),
        _ => refused.into_iter().filter(|address| refuses(address)).count().max(1),
    }
}

fn refuses(address: &SocketAddr) -> bool {
    TcpStream::connect_timeout(address, AN_ANSWER).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
