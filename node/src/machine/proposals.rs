//! Proposals of this process that are under way: each has an id that comes back with its entry, so that whoever made it
//! hears what came of it from this member's own state machine, whichever member has put it into the log.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use prost::Message;
use proto::MemberId;
use tokio::sync::oneshot;

use crate::{
    cluster::member::Starts,
    entry::EntryError,
    state::{Applied, ProposalId, Refusal},
    stored::entry as stored,
};

pub type Outcome = Result<Applied, Refusal>;

/// What stands in the log: an entry and who has proposed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub id: ProposalId,
    /// Below this number its process waits for none.
    pub settled: u64,
    /// The entry's bytes.
    pub entry: Bytes,
}

impl Proposal {
    /// The bytes for the log.
    pub fn encode(&self) -> Vec<u8> {
        let ProposalId { member, starts, number } = self.id;
        let (settled, entry) = (self.settled, self.entry.clone());
        stored::Proposal { member: member.0, starts: starts.0, number, settled, entry }.encode_to_vec()
    }

    /// Reads it back.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode(bytes: Bytes) -> Result<Self, EntryError> {
        let read = stored::Proposal::decode(bytes).map_err(|error| EntryError::Damaged(error.to_string()))?;
        let id = ProposalId { member: MemberId(read.member), starts: Starts(read.starts), number: read.number };
        Ok(Self { id, settled: read.settled, entry: read.entry })
    }
}

/// What waits for its outcome. Every clone is the same.
#[derive(Clone, Debug)]
pub struct Proposals {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    member: MemberId,
    starts: Starts,
    waiting: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The number that was given last.
    last: u64,
    by_number: BTreeMap<u64, Waiter>,
    /// Of all their entries.
    bytes: usize,
}

#[derive(Debug)]
struct Waiter {
    outcome: oneshot::Sender<Outcome>,
    bytes: usize,
}

impl Queue {
    fn remove(&mut self, number: u64) -> Option<Waiter> {
        let waiter = self.by_number.remove(&number)?;
        self.bytes -= waiter.bytes;
        Some(waiter)
    }

    fn settled(&self) -> u64 {
        self.by_number.keys().next().copied().unwrap_or(self.last + 1)
    }
}

/// A proposal that waits; dropped, nobody waits for it any more, and it is not sent again.
#[derive(Debug)]
pub struct Waiting {
    number: u64,
    proposals: Proposals,
    outcome: oneshot::Receiver<Outcome>,
}

impl Proposals {
    /// For this process of this member.
    pub fn new(member: MemberId, starts: Starts) -> Self {
        Self { shared: Arc::new(Shared { member, starts, waiting: Mutex::default() }) }
    }

    /// Waits for one more from now on, whose entry has so many bytes.
    pub fn begin(&self, bytes: usize) -> Waiting {
        let (sender, outcome) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.last += 1;
        waiting.bytes += bytes;
        let number = waiting.last;
        waiting.by_number.insert(number, Waiter { outcome: sender, bytes });
        Waiting { number, proposals: self.clone(), outcome }
    }

    /// The bytes to propose now for one that waits; `None` where nobody does any more.
    pub fn bytes(&self, number: u64, entry: &Bytes) -> Option<Bytes> {
        let waiting = self.waiting();
        waiting.by_number.contains_key(&number).then(|| {
            let id = ProposalId { member: self.shared.member, starts: self.shared.starts, number };
            Proposal { id, settled: waiting.settled(), entry: entry.clone() }.encode().into()
        })
    }

    /// How many there are, and the bytes of their entries.
    pub fn under_way(&self) -> (usize, usize) {
        let waiting = self.waiting();
        (waiting.by_number.len(), waiting.bytes)
    }

    /// Tells those of this process what came of theirs.
    pub(super) fn settle(&self, outcomes: impl IntoIterator<Item = (ProposalId, Outcome)>) {
        let mut waiting = self.waiting();
        for (id, outcome) in outcomes.into_iter().filter(|(id, _)| self.is_ours(id)) {
            if let Some(waiter) = waiting.remove(id.number) {
                // Whoever waited may have gone.
                let _ = waiter.outcome.send(outcome);
            }
        }
    }

    /// Whether this process has proposed it.
    pub(super) fn is_ours(&self, id: &ProposalId) -> bool {
        (id.member, id.starts) == (self.shared.member, self.shared.starts)
    }

    fn waiting(&self) -> MutexGuard<'_, Queue> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Waits for the outcome, for as long as it takes.
    pub async fn outcome(&mut self) -> Outcome {
        match (&mut self.outcome).await {
            Ok(outcome) => outcome,
            // Its sender is only dropped when it has been sent, or together with this value.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.proposals.waiting().remove(self.number);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What was written once is read by every later release. Never written anew: another meaning is another field.
    #[test]
    fn the_bytes_are_those_of_the_release_that_first_wrote_them() {
        let id = ProposalId { member: MemberId(0xabc), starts: Starts(3), number: 300 };
        let proposal = Proposal { id, settled: 299, entry: Bytes::from_static(b"entry") };
        let golden = b"\x08\xbc\x15\x10\x03\x18\xac\x02\x20\xab\x02\x2a\x05entry";
        assert_eq!(proposal.encode(), golden);
        assert_eq!(Proposal::decode(Bytes::from_static(golden)), Ok(proposal));
        for length in 0..golden.len() {
            // An error or another proposal, and never a panic.
            let _ = Proposal::decode(Bytes::copy_from_slice(&golden[..length]));
        }
    }

    #[tokio::test]
    async fn each_hears_of_its_own_and_what_nobody_waits_for_is_settled() {
        let proposals = Proposals::new(MemberId(1), Starts(2));
        let (mut first, second) = (proposals.begin(10), proposals.begin(5));
        let settled = |number| {
            let bytes = proposals.bytes(number, &Bytes::new()).unwrap();
            Proposal::decode(bytes).unwrap().settled
        };
        assert_eq!((settled(1), settled(2)), (1, 1));
        drop(second);
        assert_eq!(proposals.bytes(2, &Bytes::new()), None, "nobody waits for it, so it is not sent again");
        let id = |starts, number| ProposalId { member: MemberId(1), starts: Starts(starts), number };
        let outcome = |changed| Ok(Applied::Cluster { changed });
        proposals.settle([(id(1, 1), outcome(false)), (id(2, 1), outcome(true))]);
        assert_eq!(first.outcome().await, outcome(true), "of its own process");
        let third = proposals.begin(3);
        assert_eq!((settled(third.number()), proposals.under_way()), (3, (1, 3)));
    }
}
