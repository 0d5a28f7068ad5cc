//! A lease kept alive on a thread of its own, with a runtime of its own: whatever else the agent is busy with never
//! costs it the lease.
//!
//! How long the lease still holds is counted from *before* the last acknowledged keep-alive was sent, on a clock that
//! counts suspend: the server cannot have counted from an earlier moment.
//! Source: agent/PROTOCOL.md, "Keys" and R-2.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use proto::{
    LeaseId,
    etcdserverpb::{LeaseKeepAliveRequest, lease_client::LeaseClient},
};
use tokio::{sync::Notify, time::sleep};

use super::{
    Lease,
    endpoint::{Endpoints, Excluded},
    outcome::is_lease_gone,
};
use crate::{
    boot_clock,
    observe::{
        access::{Access, CALL},
        error::CallError,
    },
};

/// How long one keep-alive is waited for before another member is asked.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How far apart keep-alives are at most, however long the lease lives.
const APART: Duration = Duration::from_secs(2);
/// How often it is tried while nobody acknowledges.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Keeps one lease alive until it is dropped; the lease then runs out by itself, unless it is revoked.
#[derive(Debug)]
pub struct KeepAlive {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    lease: LeaseId,
    /// When the last keep-alive that was acknowledged was sent, in nanoseconds of the boot clock.
    sent_at: AtomicU64,
    /// The time to live that came with the acknowledgement, in nanoseconds.
    ttl: AtomicU64,
    /// What the lease was granted for: no answer makes it live longer.
    granted: Duration,
    lost: AtomicBool,
    stop: Notify,
}

impl KeepAlive {
    /// Starts the thread. Its calls avoid the excluded member.
    ///
    /// # Errors
    /// The system has no thread or no descriptor to give.
    pub fn start(access: &Access, lease: Lease, excluded: Arc<Excluded>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            lease: lease.id,
            sent_at: AtomicU64::new(nanoseconds(lease.asked_at)),
            ttl: AtomicU64::new(nanoseconds(lease.ttl)),
            granted: lease.ttl,
            lost: AtomicBool::new(false),
            stop: Notify::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let access = access.for_another_runtime();
        let mine = Arc::clone(&shared);
        let thread = thread::Builder::new().name("keep-alive".to_owned()).spawn(move || {
            runtime.block_on(async {
                let endpoints = Endpoints::new(Arc::new(access), excluded);
                tokio::select! {
                    () = mine.run(&endpoints) => {}
                    () = mine.stop.notified() => {}
                }
            });
            // A look-up of a name may hang in the system; nobody waits for it.
            runtime.shutdown_background();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub fn lease(&self) -> LeaseId {
        self.shared.lease
    }

    /// How long the lease still holds for certain; zero once it is lost, or may be.
    pub fn remaining(&self) -> Duration {
        self.shared.remaining()
    }

    /// The time to live that the server gave it last.
    pub fn ttl(&self) -> Duration {
        Duration::from_nanos(self.shared.ttl.load(SeqCst))
    }

    /// Whether the cluster said that there is no such lease any more. Without that word it may live on, even when
    /// [`Self::remaining`] is zero.
    pub fn is_lost(&self) -> bool {
        self.shared.lost.load(SeqCst)
    }
}

impl Drop for KeepAlive {
    /// Ends the thread, and leaves the lease to run out.
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // It ends at its next await; a panic in it has been reported by then.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Keeps the lease alive until it is lost.
    async fn run(&self, endpoints: &Endpoints) {
        loop {
            match keep_alive(endpoints, self.lease).await {
                Ok(Some(kept)) => {
                    let ttl = kept.ttl.min(self.granted);
                    self.ttl.store(nanoseconds(ttl), SeqCst);
                    self.sent_at.store(nanoseconds(kept.asked_at), SeqCst);
                    sleep((ttl / 10).clamp(RETRY_INTERVAL, APART)).await;
                }
                Ok(None) => break self.lost.store(true, SeqCst),
                Err(error) => {
                    tracing::debug!(lease = self.lease.0, %error, "keep-alive not acknowledged");
                    sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    fn remaining(&self) -> Duration {
        if self.lost.load(SeqCst) {
            return Duration::ZERO;
        }
        let age = nanoseconds(boot_clock::now()).saturating_sub(self.sent_at.load(SeqCst));
        Duration::from_nanos(self.ttl.load(SeqCst).saturating_sub(age))
    }
}

/// One keep-alive: the lease as acknowledged, `None` where there is no such lease.
async fn keep_alive(endpoints: &Endpoints, id: LeaseId) -> Result<Option<Lease>, CallError> {
    let address = endpoints.find(CALL).await?;
    let asked_at = boot_clock::now();
    let request = LeaseKeepAliveRequest { id: id.0 };
    let answer = endpoints.access().tell(&address, CALL_TIMEOUT, request, |channel, request| async move {
        let (metadata, extensions, message) = request.into_parts();
        let once = tonic::Request::from_parts(metadata, extensions, tokio_stream::once(message));
        let mut answers = LeaseClient::new(channel).lease_keep_alive(once).await?.into_inner();
        let first = answers.message().await?.ok_or_else(|| tonic::Status::unavailable("no acknowledgement"))?;
        Ok(tonic::Response::new(first))
    });
    match answer.await {
        Ok(kept) if kept.id != id.0 => {
            endpoints.distrust(&address);
            Err(CallError::Unusable(format!("{address} acknowledges another lease")))
        }
        Ok(kept) => {
            let seconds = u64::try_from(kept.ttl).ok().filter(|seconds| *seconds > 0);
            Ok(seconds.map(|seconds| Lease { id, ttl: Duration::from_secs(seconds), asked_at }))
        }
        Err(error) if is_lease_gone(&error) => Ok(None),
        Err(error) => {
            endpoints.distrust(&address);
            Err(error)
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
