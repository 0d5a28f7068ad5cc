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
                most = most.max(addresses.iter().filter(|address| refuses(address)).count());
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

fn refuses(address: &SocketAddr) -> bool {
    TcpStream::connect_timeout(address, AN_ANSWER).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
