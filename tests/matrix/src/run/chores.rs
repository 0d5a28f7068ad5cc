//! What owners have set up to be done every so often, and agents must live with: history is compacted, members are defragmented.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use lab::{Error, client::Client};
use proto::etcdserverpb::{
    CompactionRequest, DefragmentRequest, kv_client::KvClient, maintenance_client::MaintenanceClient,
};
use tokio::task::AbortHandle;
use tonic::Status;

use super::{record::Record, stage::Stage};
use crate::plan::{Fault, Step, Trouble};

/// How often history is compacted in a step: little at once. What the step itself writes is left, as watches need it.
const PARTS: i64 = 10;
/// An answer that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The chores of a step, as long as this is there.
pub(super) struct Chores {
    fault: Fault,
    done: Arc<Done>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Done {
    compactions: AtomicU64,
    defragmentations: AtomicU64,
}

impl Chores {
    /// Begins, where the step is to have them.
    pub(super) async fn begin(stage: &Stage, step: &Step) -> Result<Option<Self>, Error> {
        let is_such = |fault: &&Fault| matches!(fault.trouble, Trouble::Maintained { .. });
        let Some(fault) = step.faults.iter().find(is_such) else { return Ok(None) };
        let Trouble::Maintained { every } = fault.trouble else { return Ok(None) };
        let clients = stage.clients()?;
        let newest = clients[0].newest().await?.0;
        let (done, compacted) = (Arc::<Done>::default(), Arc::clone(&stage.written.compacted));
        let task = tokio::spawn(all(clients, every, newest, compacted, Arc::clone(&done)));
        Ok(Some(Self { fault: fault.clone(), done, task: task.abort_handle() }))
    }

    /// Ends, and tells what was done.
    pub(super) fn end(self, step: &Step, record: &Record) {
        self.task.abort();
        let [compactions, defragmentations] =
            [&self.done.compactions, &self.done.defragmentations].map(|count| count.load(Ordering::Relaxed));
        match compactions + defragmentations {
            0 => record.missed(step, &self.fault, "the step was over before"),
            _ => {
                let note = format!("{compactions} compactions and {defragmentations} defragmentations");
                record.injected(step, &self.fault, note);
            }
        }
    }
}

impl Drop for Chores {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Through one member after the other. That one of them does not answer is nothing new to a chore.
async fn all(clients: Vec<Client>, every: Duration, newest: i64, compacted: Arc<AtomicI64>, done: Arc<Done>) {
    let part = ((newest - compacted.load(Ordering::Relaxed)) / PARTS).max(1);
    for client in clients.iter().cycle() {
        tokio::time::sleep(every).await;
        let revision = (compacted.load(Ordering::Relaxed) + part).min(newest);
        // Before it is asked for: what has no answer may be done all the same.
        let before = compacted.fetch_max(revision, Ordering::Relaxed);
        if before < revision {
            count(&done.compactions, compact(client, revision)).await;
        }
        tokio::time::sleep(every).await;
        count(&done.defragmentations, defragment(client)).await;
    }
}

async fn count(done: &AtomicU64, chore: impl Future<Output = Result<(), Status>>) {
    if let Ok(Ok(())) = tokio::time::timeout(PATIENCE, chore).await {
        done.fetch_add(1, Ordering::Relaxed);
    }
}

async fn compact(client: &Client, revision: i64) -> Result<(), Status> {
    let request = client.request(CompactionRequest { revision, physical: false }).await?;
    client.outcome(KvClient::new(client.channel()).compact(request).await).await.map(drop)
}

async fn defragment(client: &Client) -> Result<(), Status> {
    let request = client.request(DefragmentRequest {}).await?;
    client.outcome(MaintenanceClient::new(client.channel()).defragment(request).await).await.map(drop)
}
