//! A way to stdout or stderr that never holds up who writes: a thread of its own does the writing, and what
//! does not fit is lost. A terminal that was stopped with ^S, a pager that nobody scrolls, a closed pipe: all
//! the same to a rollout.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, channel, sync_channel},
    },
    thread,
    time::Duration,
};

use super::display::would_stop;

/// How many writes may wait.
const WAITING: usize = 256;
/// How long the end waits for what was written last.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    writes: Option<SyncSender<String>>,
    done: Receiver<()>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Pipe {
    pub(crate) fn new(target: Target) -> Self {
        let (writes, waiting) = sync_channel::<String>(WAITING);
        let (ended, done) = channel();
        let failure = Arc::new(Mutex::new(None));
        let failed = Arc::clone(&failure);
        let writer = move || {
            for text in waiting {
                if let Err(error) = write(target, &text) {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
                }
            }
            // Nobody waits where the receiver is gone.
            let _ = ended.send(());
        };
        let thread = thread::Builder::new().name("report".to_owned()).spawn(writer);
        Self { writes: thread.is_ok().then_some(writes), done, failure }
    }

    /// Writes, or does not; answers whether it was taken.
    pub(crate) fn offer(&self, text: String) -> bool {
        self.writes.as_ref().is_some_and(|writes| writes.try_send(text).is_ok())
    }

    /// What went wrong first, once.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().filter(|why| !why.is_empty())
    }

    /// Writes the last words, and waits a while until all is written.
    pub(crate) fn end(mut self, text: String) {
        if let Some(writes) = self.writes.take() {
            let deadline = std::time::Instant::now() + PATIENCE;
            let mut text = text;
            while let Err(std::sync::mpsc::TrySendError::Full(again)) = writes.try_send(text) {
                if std::time::Instant::now() > deadline {
                    return;
                }
                text = again;
                thread::sleep(Duration::from_millis(20));
            }
            drop(writes);
            // A writer that hangs is left behind: the process ends, and with it the thread.
            let _ = self.done.recv_timeout(PATIENCE);
        }
    }
}

fn write(target: Target, text: &str) -> io::Result<()> {
    match target {
        Target::Stdout if would_stop(io::stdout()) => Ok(()),
        Target::Stderr if would_stop(io::stderr()) => Ok(()),
        Target::Stdout => {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()
        }
        Target::Stderr => io::stderr().lock().write_all(text.as_bytes()),
    }
}
