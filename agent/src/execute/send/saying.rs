//! What an agent says in its key of what it waits for or does: for whoever looks.

use std::sync::Arc;

use crate::{
    execute::Execution,
    keys::{Participant, rules::Rules, txn::Txn},
    store::{KeepAlive, TxnAnswer, stored},
};

/// A wait, for people.
#[derive(Debug)]
pub(in crate::execute) struct Waited {
    pub(in crate::execute) what: String,
    pub(in crate::execute) since: Option<String>,
    /// What ends it.
    pub(in crate::execute) until: Option<String>,
}

/// What an agent says of itself in its key.
#[derive(Debug)]
pub(in crate::execute) enum Saying {
    WaitsFor(Waited),
    WaitsForItsWindow(Waited),
    /// To the member in its step.
    Does(String),
    /// So many percent of a backup.
    BacksUp(u8),
}

impl Execution<'_> {
    /// Says in this agent's key what it waits for or does, for whoever looks; nothing depends on it.
    pub(in crate::execute) async fn say_in_key(&mut self, done: Vec<proto::MemberId>, saying: Saying) {
        let (Some(said), Some(key)) = (self.participant(), self.cluster.leases.key) else { return };
        let is_closed = matches!(saying, Saying::WaitsForItsWindow(_));
        let nothing = Participant {
            done,
            waits_for: None,
            waits_since: None,
            waits_until: None,
            does: None,
            backed_up: None,
            is_closed,
            ..said.clone()
        };
        let participant = match saying {
            Saying::WaitsFor(wait) | Saying::WaitsForItsWindow(wait) => Participant {
                // A wait that begins again and again is not written each time: that would wake everybody who waits.
                waits_since: match said.waits_for.as_deref() == Some(&wait.what) && !self.cluster.leases.has_begun {
                    true => said.waits_since.clone(),
                    false => wait.since.map(Arc::from),
                },
                waits_for: Some(wait.what.into()),
                waits_until: wait.until.map(Arc::from),
                ..nothing
            },
            Saying::Does(what) => Participant { does: Some(what.into()), ..nothing },
            Saying::BacksUp(percent) => Participant {
                does: Some(format!("backing up, {percent} % of the database").into()),
                backed_up: Some(percent),
                ..nothing
            },
        };
        if participant == said {
            return;
        }
        let txn = Txn::register(self.me.host, participant, Some(key), &Rules::default());
        let lease = self.cluster.leases.own.as_ref().filter(|lease| !lease.is_lost()).map(KeepAlive::lease);
        if lease.is_some() {
            let (compares, ops) = stored::txn(&txn, lease);
            if let TxnAnswer::Yes { revision } = self.cluster.store.txn(&compares, &ops).await {
                (self.cluster.leases.registered, self.cluster.leases.key) = (Some(txn), Some(revision));
                self.cluster.leases.has_begun = false;
            }
        }
    }
}
