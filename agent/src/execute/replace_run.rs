//! `agent run --replace`: another run in the place of one that stands (agent/PROTOCOL.md, "A run's life").

use std::time::{Duration, Instant};

use super::{Execution, gone::gone, look::random};
use crate::{
    event::{Decision, RunEvent, trouble::Trouble},
    keys::{Run, RunId, txn::Txn},
    plan::{self, refusal::Refusal, replace_run::Replacement},
    report::{names::Names, stop::refused},
    store::{
        NotRead, Snapshot, TxnAnswer,
        stored::{self, StoredError},
    },
};

/// How long an answer is asked for.
const PATIENCE: Duration = Duration::from_secs(60);
const ASKED_EVERY: Duration = Duration::from_millis(200);

impl Execution<'_> {
    /// Puts this playbook's intent in the place of the run that stands, if one with another intent does. Why a run of it
    /// would not begin, if so: then the one that stands still does.
    ///
    /// # Errors
    /// What stands in the way; or that nobody knows whether it was done.
    pub async fn replace(&mut self) -> Result<Option<Refusal>, Trouble> {
        let interrupt = self.console.interrupt.clone();
        tokio::select! {
            () = self.bring_up() => {}
            () = interrupt.asked(1) => return Err(Trouble::Interrupted),
        }
        let keys = self.cluster.store.read().await?;
        let keys = stored::keys(&keys)?;
        let gone = gone(&self.cluster.store, &keys, &self.me, self.process).await.map_err(NotRead::from)?;
        if let Some(twin) = plan::rules::twin::of(self.me.host, self.process, &keys, &gone) {
            return Ok(Some(twin));
        }
        let view = self.cluster.observer.probe().await?;
        let evidence = self.cluster.observer.examine(&view).await;
        let names = Names::of(&view);
        let seen = match plan::replace_run::replacement(&self.me, &keys, (&view, &evidence)) {
            Replacement::NotNeeded => return Ok(None),
            Replacement::Forbidden(obstacle) => return Err(not_replaced(&refused::obstacle(&obstacle, &names))),
            Replacement::Refused(refusal) => {
                self.saw(&view);
                return Ok(Some(refusal));
            }
            Replacement::Of(seen) => seen,
        };
        // A run that this host is not fit for takes nobody's place.
        if let Err(why) = self.prepare().await {
            let words = why.to_string();
            return Err(why.into_trouble().unwrap_or_else(|| not_replaced(&words)));
        }
        let run_id = RunId(random());
        let run = plan::target::new_run(run_id, &self.me.intent, &view);
        let run = Run { begun_by: Some(self.me.host_name.clone()), ..run };
        let others = keys.agents.keys().copied().filter(|host| *host != self.me.host);
        let txn = Txn::replace(seen, run, others, view.members.iter().map(|member| member.id));
        let deadline = Instant::now() + PATIENCE;
        let (compares, ops) = stored::txn(&txn, None);
        loop {
            match self.cluster.store.txn(&compares, &ops).await {
                TxnAnswer::Yes { .. } => break,
                // An earlier sending of the same Txn was done.
                TxnAnswer::No(snapshot) if stands(&snapshot, |run| run.id == run_id) => break,
                // Another host was faster, with the same playbook.
                TxnAnswer::No(snapshot) if stands(&snapshot, |run| *run.intent == *self.me.intent) => return Ok(None),
                TxnAnswer::Oversize(error) => return Err(StoredError::from(error).into()),
                TxnAnswer::No(_) | TxnAnswer::LeaseGone => {
                    return Err(not_replaced("it changed meanwhile; look at it again"));
                }
                TxnAnswer::Refused(reason) => return Err(Trouble::AuthRefused(reason)),
                TxnAnswer::Unknown(reason) if Instant::now() > deadline || self.console.interrupt.is_asked() => {
                    let text = format!("it is not known whether the run was replaced: {reason}");
                    return Err(Trouble::NoAnswer(text));
                }
                TxnAnswer::Unknown(_) => tokio::time::sleep(ASKED_EVERY).await,
            }
        }
        self.tell(RunEvent::Decided(Decision::Replaced));
        Ok(None)
    }
}

/// How it is told that the other run stays.
pub fn not_replaced(why: &str) -> Trouble {
    Trouble::Unprepared(format!("the run is not replaced: {why}"))
}

fn stands(snapshot: &Snapshot, is_it: impl Fn(&Run) -> bool) -> bool {
    stored::keys(snapshot).is_ok_and(|keys| keys.run.is_some_and(|run| is_it(&run.value)))
}
