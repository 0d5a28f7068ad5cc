//! `agent run --replace`: another run in the place of one that stands (ARCHITECTURE.md, "A run's life").

use std::sync::Arc;

use super::{Execution, Why, look::random, why};
use crate::{
    plan::{self, replace::Replacement},
    rollout::{
        TxnAnswer,
        keys::{Run, RunId, RunState},
        stored,
        txn::Txn,
    },
};

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
        let run = Run {
            id: RunId(random()),
            intent: self.me.intent.clone(),
            state: RunState::Rolling,
            changes_minor: plan::target::changes_minor(&self.me.intent, &view),
            done: Vec::new(),
        };
        let others = keys.agents.keys().copied().filter(|host| *host != self.me.host);
        let txn = Txn::replace(seen, run, others, view.members.iter().map(|member| member.id));
        let (compares, ops) = stored::txn(&txn, None);
        match self.store.txn(&compares, &ops).await {
            TxnAnswer::Yes { .. } => Ok(()),
            TxnAnswer::No(_) | TxnAnswer::LeaseGone => Err(Arc::from("the run changed meanwhile; look at it again")),
            TxnAnswer::Refused(reason) => Err(Arc::from(reason)),
            TxnAnswer::Unknown(reason) => {
                Err(Arc::from(format!("it is not known whether the run was replaced: {reason}")))
            }
        }
    }
}
