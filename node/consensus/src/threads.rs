//! Work that takes long, or waits: on another thread, where there are several. A runtime of one thread, as a simulation has,
//! does it in place, so that what happens next is decided by nothing but what it was given.

use std::{
    io::{self, Write},
    thread,
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{block_in_place, spawn_blocking},
};

/// Whether everything happens on this thread.
pub(crate) fn is_alone() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread)
}

/// Does what takes long, or waits for a lock, while another thread goes on with raft's tasks: without heartbeats the
/// others would elect another leader.
pub fn off_thread<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

/// Does what takes long beside this task.
///
/// # Errors
/// The work has panicked, or the runtime ends.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    match is_alone() {
        true => Ok(work()),
        false => spawn_blocking(work).await.map_err(io::Error::other),
    }
}

/// Does two things at once.
pub fn both<A: Send, B>(first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B) -> (A, B) {
    if is_alone() {
        return (first(), second());
    }
    thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
    })
}

/// After a disk that stalled, or a machine that stood still.
const LONGEST_REST: Duration = Duration::from_millis(50);

/// What is written with rests, each twice as long as what was written took to make and to write. A state of a million keys keeps
/// a processor and a disk busy for half a second, and every put that meanwhile needs them in some ten places waits at each.
pub(crate) struct Resting<W> {
    into: W,
    /// When the last rest ended. None where there is no other work on another thread.
    since: Option<Instant>,
}

impl<W> Resting<W> {
    pub(crate) fn new(into: W) -> Self {
        Self { into, since: (!is_alone()).then(Instant::now) }
    }
}

impl<W: Write> Write for Resting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.into.write(bytes)?;
        if let Some(since) = &mut self.since {
            thread::sleep((since.elapsed() * 2).min(LONGEST_REST));
            *since = Instant::now();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}
