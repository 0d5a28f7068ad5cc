//! `agent run --replace`: another run in the place of one that stands (ARCHITECTURE.md, "A run's life").

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Execution, Why, look::random, why};
use crate::{
    plan::{self, replace::Replacement},
    rollout::{Snapshot, TxnAnswer, keys::RunId, stored, txn::Txn},
};

/// How long an answer is asked for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two sendings.
const AGAIN: Duration = Duration::from_millis(200);

impl Execution<'_> {
    /// Puts this playbook's intent in the place of the run that stands, if one with another intent does.
    ///
    /// # Errors
    /// What stands in the way, for people; nothing was written then.
    pub async fn replace(&mut self) -> Result<(), Why> {
        let keys = self.store.read().await.map_err(|error| why(&error))?;
        let keys = stored::keys(&keys).map_err(|error| why(&error))?;
        let view = self.observer.glance().await.map_err(|error| why(&error))?;
        let seen = match plan::replace::replacement(&self.me, &keys, &view) {
            Replacement::NotNeeded => return Ok(()),
            Replacement::Forbidden(obstacle) => return Err(Arc::from(obstacle.to_string())),
            Replacement::Of(seen) => seen,
        };
        let run_id = RunId(random());
        let run = plan::target::new_run(run_id, &self.me.intent, &view);
        let others = keys.agents.keys().copied().filter(|host| *host != self.me.host);
        let txn = Txn::replace(seen, run, others, view.members.iter().map(|member| member.id));
        let deadline = Instant::now() + PATIENCE;
        let (compares, ops) = stored::txn(&txn, None);
        loop {
            match self.store.txn(&compares, &ops).await {
                TxnAnswer::Yes { .. } => return Ok(()),
                TxnAnswer::No(snapshot) if is_in_place(&snapshot, run_id) => return Ok(()),
                TxnAnswer::No(_) | TxnAnswer::LeaseGone => {
                    return Err(Arc::from("the run changed meanwhile; look at it again"));
                }
                TxnAnswer::Refused(reason) => return Err(Arc::from(reason)),
                TxnAnswer::Unknown(reason) if Instant::now() > deadline => {
                    return Err(Arc::from(format!("it is not known whether the run was replaced: {reason}")));
                }
                TxnAnswer::Unknown(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}

/// An earlier sending of the same Txn was done.
fn is_in_place(snapshot: &Snapshot, id: RunId) -> bool {
    stored::keys(snapshot).is_ok_and(|keys| keys.run.is_some_and(|run| run.value.id == id))
}
