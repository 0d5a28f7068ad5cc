//! Txns and the leases that go with them: one for this agent's own key, one for each taking of the baton.
//!
//! Each taking of the baton has a lease of its own. To compare and delete the key is not enough: the model checker found that
//! a taking without an answer can be done after the baton was given back, or after a second sending was refused. The key then
//! stands for a live process that does not know of it. To revoke the lease closes both.

mod saying;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use proto::{LeaseId, Revision};

use super::{Abort, Execution};
use crate::{
    event::{Decision, RunEvent},
    keys::{
        AttemptId, KeyName, Keys, PREFIX, Participant, RunState, StepLock, TakeId,
        rules::Rules,
        txn::{Op, Txn},
    },
    machine::act::Event,
    plan::Verb,
    store::{KeepAlive, NotGranted, NotRead, Store, TxnAnswer, Unknown, stored},
};
pub(super) use saying::{Saying, Waited};

/// How long a lease lives without its agent (agent/PROTOCOL.md, "Keys").
const TTL: Duration = Duration::from_secs(30);
/// How long ends of leases are waited for at the very end; they run out by themselves.
const AT_THE_END: Duration = Duration::from_secs(5);
/// How long the baton's return is repeated.
const GIVING_BACK: Duration = Duration::from_secs(15);
/// Between two sendings of one Txn.
const RESEND_AFTER: Duration = Duration::from_millis(200);

/// Between two tries to say that this agent repairs.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// The leases of this process.
#[derive(Debug, Default)]
pub(super) struct Leases {
    own: Option<KeepAlive>,
    batons: BTreeMap<TakeId, KeepAlive>,
    /// Since when the Txn under way has had no answer.
    unanswered: Option<Instant>,
    /// What was said last of this agent in its key.
    registered: Option<Txn>,
    /// Whether its key was put under the lease it has now.
    is_registered: bool,
    /// The revision that wrote its key last.
    key: Option<Revision>,
    /// When its key was put, or tried to be put, while it repaired.
    tried: Option<Instant>,
    /// The step whose record was seen to stand, until this agent itself is about to delete it.
    pub(super) seen: Option<AttemptId>,
    /// Whether it has begun a step since it said what it waits for.
    has_begun: bool,
    /// The record of a step that has stopped nothing yet.
    pub(super) recorded: Option<Recorded>,
}

/// A step lock as one member said that it was put.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) record: StepLock,
    pub(super) created: Revision,
    /// The address that said so.
    pub(super) by: String,
}

impl Leases {
    /// Whether the baton is this process's, or may be.
    pub(super) fn has_baton(&self) -> bool {
        !self.batons.is_empty()
    }

    /// Whether the baton's lease has more than a third of its time left.
    pub(super) fn baton_is_fresh(&self) -> bool {
        self.batons.values().any(|lease| lease.remaining() > lease.ttl() / 3)
    }

    /// Revokes all of them, so that nobody waits for them to run out.
    pub(super) async fn end(&mut self, store: &Store) {
        let leases = self.own.take().into_iter().chain(std::mem::take(&mut self.batons).into_values());
        for lease in leases {
            let id = lease.lease();
            drop(lease);
            if tokio::time::timeout(AT_THE_END, store.revoke(id)).await.is_err() {
                return;
            }
        }
    }
}

impl Execution<'_> {
    pub(super) async fn send(&mut self, txn: &Txn) -> Result<Event, Abort> {
        if let Some(keys) = self.baton_is_taken(txn) {
            return Ok(Event::No(Box::new(keys.clone())));
        }
        let lease = match self.lease_for(txn).await {
            Ok(lease) => lease,
            Err(NotGranted::Refused(_)) => return self.refused_with_keys().await,
            Err(NotGranted::Unknown(_)) => return Ok(self.unknown().await),
        };
        if txn.ops.iter().any(|op| matches!(op, Op::Delete(KeyName::Step))) {
            self.cluster.leases.seen = None;
        }
        let (compares, ops) = stored::txn(txn, lease);
        match self.cluster.store.txn(&compares, &ops).await {
            TxnAnswer::Yes { revision } => {
                self.cluster.leases.unanswered = None;
                if let [Op::PutAgent(..)] = txn.ops.as_slice() {
                    self.cluster.leases.key = Some(revision);
                }
                self.note_record(txn, |_| Some(revision));
                self.tell_of(txn);
                Ok(Event::Yes(revision))
            }
            TxnAnswer::No(snapshot) => {
                self.cluster.leases.unanswered = None;
                self.end_lease_of(txn).await;
                let keys = stored::keys(&snapshot).map_err(Abort::Keys)?;
                self.note_record(txn, |record| {
                    let down = keys.step.as_ref().filter(|down| down.value.attempt == record.attempt);
                    down.map(|down| down.created)
                });
                Ok(Event::No(Box::new(keys)))
            }
            TxnAnswer::Oversize(error) => Err(Abort::Keys(error.into())),
            TxnAnswer::LeaseGone => {
                self.forget_lease_of(txn);
                self.refused_with_keys().await
            }
            TxnAnswer::Refused(reason) => Err(Abort::Refused(reason)),
            TxnAnswer::Unknown(reason) => {
                tracing::info!(%reason, "a transaction was not answered");
                Ok(self.unknown().await)
            }
        }
    }

    /// A baton that another process had when the keys were read a moment ago is not asked for: that would cost the cluster
    /// a lease at every look. Once a taking has a lease, only the cluster says what came of it.
    fn baton_is_taken(&self, txn: &Txn) -> Option<&Keys> {
        let [Op::PutBaton(baton)] = txn.ops.as_slice() else { return None };
        let is_new = !self.cluster.leases.batons.contains_key(&baton.take);
        self.progress.others_baton(self.process).filter(|_| is_new)
    }

    /// Notes who says that a record of this host was put, for the look that follows.
    fn note_record(&mut self, txn: &Txn, created: impl FnOnce(&StepLock) -> Option<Revision>) {
        for op in &txn.ops {
            match op {
                // Others end a step that changes a role by right, too.
                Op::PutStepLock(record) if record.role.is_none() => {
                    let said = created(record).zip(self.cluster.store.told());
                    let record = record.clone();
                    self.cluster.leases.recorded = said.map(|(created, by)| Recorded { record, created, by });
                    return;
                }
                Op::Delete(KeyName::Step | KeyName::Abandoned(_)) => self.cluster.leases.recorded = None,
                _ => {}
            }
        }
    }

    async fn refused_with_keys(&mut self) -> Result<Event, Abort> {
        match self.cluster.store.read().await {
            Ok(snapshot) => {
                self.cluster.leases.unanswered = None;
                Ok(Event::No(Box::new(stored::keys(&snapshot).map_err(Abort::Keys)?)))
            }
            Err(NotRead::Oversize(error)) => Err(Abort::Keys(error.into())),
            Err(NotRead::Unknown(_)) => Ok(self.unknown().await),
        }
    }

    async fn unknown(&mut self) -> Event {
        let since = *self.cluster.leases.unanswered.get_or_insert_with(Instant::now);
        let give_up = since.elapsed() > self.playbook.strategy.health;
        match give_up {
            true => self.cluster.leases.unanswered = None,
            false => tokio::time::sleep(RESEND_AFTER).await,
        }
        Event::Unknown { give_up }
    }

    /// The lease that a Txn's put needs, granted and kept alive from here on.
    async fn lease_for(&mut self, txn: &Txn) -> Result<Option<LeaseId>, NotGranted> {
        let needed = txn.ops.iter().find_map(|op| match op {
            Op::PutBaton(baton) => Some(Some(baton.take)),
            Op::PutAgent(..) => Some(None),
            _ => None,
        });
        match needed {
            None => Ok(None),
            Some(Some(take)) => {
                if !self.cluster.leases.batons.contains_key(&take) {
                    let lease = self.granted(take.lease()).await?;
                    self.cluster.leases.batons.insert(take, lease);
                }
                Ok(None)
            }
            Some(None) => {
                self.cluster.leases.registered = Some(txn.clone());
                if self.cluster.leases.own.as_ref().is_none_or(KeepAlive::is_lost) {
                    self.cluster.leases.is_registered = false;
                    self.cluster.leases.own = Some(self.granted(LeaseId(0)).await?);
                }
                Ok(self.cluster.leases.own.as_ref().map(KeepAlive::lease))
            }
        }
    }

    async fn granted(&self, id: LeaseId) -> Result<KeepAlive, NotGranted> {
        let lease = self.cluster.store.grant(id, TTL).await.inspect_err(|error| {
            tracing::info!(%error, "a lease was not granted");
        })?;
        KeepAlive::start(self.cluster.observer.access(), lease, self.cluster.excluded.clone()).map_err(|error| {
            tracing::warn!(%error, "no thread for keep-alives");
            Unknown(error.to_string()).into()
        })
    }

    /// A baton that somebody else has needs no lease; it would only run out.
    async fn end_lease_of(&mut self, txn: &Txn) {
        if let [Op::PutBaton(baton)] = txn.ops.as_slice() {
            drop(self.cluster.leases.batons.remove(&baton.take));
            let _ = tokio::time::timeout(AT_THE_END, self.cluster.store.revoke(baton.take.lease())).await;
        }
    }

    fn forget_lease_of(&mut self, txn: &Txn) {
        match txn.ops.as_slice() {
            [Op::PutBaton(baton)] => drop(self.cluster.leases.batons.remove(&baton.take)),
            _ => self.cluster.leases.own = None,
        }
    }

    fn tell_of(&mut self, txn: &Txn) {
        if let Some(key) = txn.stale() {
            self.warn(&format!(
                "the key {PREFIX}{key} had no lease, so it was nobody's and would have stayed: deleted"
            ));
        }
        if let [Op::PutRun(run)] = txn.ops.as_slice() {
            let decision = match (self.me.verb, &run.state) {
                (Verb::Finalize, RunState::Approved) => Some(Decision::Approved),
                (Verb::Rollback, RunState::RollingBack) => Some(Decision::TurnedBack),
                (Verb::Resume, state) if !matches!(state, RunState::Failed { .. }) => self.progress.taken_up_by(run),
                _ => None,
            };
            decision.into_iter().for_each(|decision| self.tell(RunEvent::Decided(decision)));
        }
        for op in &txn.ops {
            match op {
                // Others may have had as much to prepare, and looked as long at a member that does not answer.
                Op::PutAgent(..) => {
                    self.cluster.leases.is_registered = true;
                    self.began = Instant::now();
                }
                Op::PutBaton(_) => self.tell(RunEvent::BatonTaken),
                Op::PutStepLock(record) => {
                    self.cluster.leases.has_begun = true;
                    self.tell(RunEvent::StepLocked { member: record.member, back: record.back });
                }
                Op::Delete(KeyName::Step) => {
                    if let Some(in_hand) = self.host.past.in_hand {
                        self.tell(RunEvent::StepUnlocked { member: in_hand.member() });
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) async fn give_back(&mut self, take: TakeId) -> Event {
        drop(self.cluster.leases.batons.remove(&take));
        match self.cluster.store.revoke(take.lease()).await {
            Ok(()) => {
                self.cluster.leases.unanswered = None;
                self.tell(RunEvent::BatonGivenBack);
                Event::Done
            }
            Err(_) => {
                let since = *self.cluster.leases.unanswered.get_or_insert_with(Instant::now);
                let give_up = since.elapsed() > GIVING_BACK;
                match give_up {
                    true => self.cluster.leases.unanswered = None,
                    false => tokio::time::sleep(RESEND_AFTER).await,
                }
                Event::Unknown { give_up }
            }
        }
    }

    /// Others need not miss an agent that repairs a member before it takes part. Nothing depends on it.
    pub(super) async fn register_while_repairing(&mut self) {
        let is_soon = self.cluster.leases.tried.is_some_and(|tried| tried.elapsed() < RETRY_INTERVAL);
        if self.cluster.leases.is_registered || is_soon {
            return;
        }
        self.cluster.leases.tried = Some(Instant::now());
        self.put_own_key(self.me.participant(self.process)).await;
    }

    /// An agent whose lease ran out while it was frozen, or that got no lease or no answer, says again that it takes
    /// part.
    pub(super) async fn stay_registered(&mut self) {
        let is_missing =
            !self.cluster.leases.is_registered || self.cluster.leases.own.as_ref().is_none_or(KeepAlive::is_lost);
        if let Some(participant) = self.participant().filter(|_| is_missing) {
            self.put_own_key(participant).await;
        }
    }

    /// What was said last of this agent.
    pub(super) fn participant(&self) -> Option<Participant> {
        match self.cluster.leases.registered.as_ref()?.ops.as_slice() {
            [Op::PutAgent(_, participant)] => Some(participant.clone()),
            _ => None,
        }
    }

    /// Puts it where there is none, or where this process's own is or that of one which is known to be gone: another
    /// agent that goes by this id is not written over.
    async fn put_own_key(&mut self, participant: Participant) {
        let mut seen = None;
        for _ in 0..2 {
            let txn = Txn::register(self.me.host, participant.clone(), seen, &Rules::default());
            let Ok(lease) = self.lease_for(&txn).await else { return };
            let (compares, ops) = stored::txn(&txn, lease);
            let answer = self.cluster.store.txn(&compares, &ops).await;
            tracing::info!(?answer, "registered");
            match answer {
                TxnAnswer::Yes { revision } => {
                    (self.cluster.leases.is_registered, self.cluster.leases.key) = (true, Some(revision));
                    return;
                }
                TxnAnswer::LeaseGone => return self.cluster.leases.own = None,
                TxnAnswer::No(snapshot) => {
                    let agents = stored::keys(&snapshot).map(|keys| keys.agents).unwrap_or_default();
                    let Some(there) = agents.get(&self.me.host) else { continue };
                    let process = there.value.process;
                    if process != self.process && process.is_over() != Some(true) {
                        return;
                    }
                    seen = Some(there.modified);
                }
                _ => return,
            }
        }
    }

    /// What the keys are now, outside the machine's looks.
    pub(super) async fn keys(&self) -> Option<Keys> {
        stored::keys(&self.cluster.store.read().await.ok()?).ok()
    }
}
