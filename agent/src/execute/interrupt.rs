//! Signals: the first SIGINT or SIGTERM asks for an end, the second ends at once, as does the first where the host
//! shuts down; SIGHUP changes nothing (I-8).

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Notify,
};

use crate::host::runtime::systemd::host_goes_down;

/// How often an end was asked for.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    count: AtomicU8,
    changed: Notify,
}

impl Interrupt {
    /// Takes the signals over for the rest of the process.
    ///
    /// # Errors
    /// The system does not let signals be handled.
    pub fn install() -> std::io::Result<Self> {
        let interrupt = Self::default();
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let mut signals = signal(kind)?;
            let mine = interrupt.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    mine.shared.count.fetch_add(1, Ordering::SeqCst);
                    mine.shared.changed.notify_waiters();
                }
            });
        }
        let mut hangups = signal(SignalKind::hangup())?;
        tokio::spawn(async move { while hangups.recv().await.is_some() {} });
        Ok(interrupt)
    }

    /// Whether an end was asked for.
    pub fn is_asked(&self) -> bool {
        self.shared.count.load(Ordering::SeqCst) > 0
    }

    /// Waits until an end was asked for because the host shuts down: then systemd starts nothing any more, and to finish
    /// the step would only hold the shutdown up.
    pub async fn by_shutdown(&self) {
        self.asked(1).await;
        host_goes_down().await;
    }

    /// Waits until an end was asked for `times` times.
    pub async fn asked(&self, times: u8) {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.shared.count.load(Ordering::SeqCst) >= times {
                return;
            }
            changed.await;
        }
    }
}
