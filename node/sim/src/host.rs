//! What the node sees of a simulated machine.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use disk::Folder;
use futures_util::{FutureExt, future::BoxFuture};
use node::host::{Address, Host, Socket};
use simulated_disk::SimulatedDisk;
use tokio::{sync::Notify, time::sleep};
use wal::{Options, Wal, WalError};

use crate::{
    entropy,
    network::{HostId, Network},
};

/// Small, so that a short run goes through many segments.
const LOG: Options = Options { segment_bytes: 128 << 10, zeroed_bytes: 16 << 10, tail_bytes: 64 << 10 };

/// What stays of a machine while processes come and go.
#[derive(Clone)]
pub struct SimHost {
    pub id: HostId,
    pub network: Network,
    pub disk: SimulatedDisk,
    /// How far its clock is ahead of the world's, in milliseconds.
    pub ahead_ms: Arc<AtomicU64>,
    /// How long a sync takes, in milliseconds.
    pub sync_ms: Arc<AtomicU64>,
}

impl Host for SimHost {
    fn data_dir(&self, _: &Path) -> io::Result<Arc<dyn Folder>> {
        self.disk.folder("data")
    }

    /// The writer is a task: what it was given is durable only after a while, in which the process may end.
    fn open_log(&self, folder: Arc<dyn Folder>) -> Result<Wal, WalError> {
        let woken = Arc::new(Notify::new());
        let wakes = woken.clone();
        let (wal, mut turns) = Wal::open_without_thread(folder, LOG, move || wakes.notify_one())?;
        let sync_ms = self.sync_ms.clone();
        tokio::spawn(async move {
            loop {
                woken.notified().await;
                sleep(Duration::from_millis(sync_ms.load(Ordering::Relaxed))).await;
                turns.take();
            }
        });
        Ok(wal)
    }

    fn connect(&self, to: &Address) -> BoxFuture<'static, io::Result<Box<dyn Socket>>> {
        self.network.connect(self.id, &to.to_string()).boxed()
    }

    fn uptime(&self) -> Duration {
        Duration::from_nanos(entropy::now()) + Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed))
    }
}
