//! The keys that the hosts share, as raw bytes: one read of all of them, transactions, leases.
//!
//! A transaction whose outcome is unknown is never sent again here: only who wrote it knows how to make sending it again
//! safe, and does. What the keys mean is not known here.

pub mod endpoint;
pub mod inventory;
pub mod keepalive;
pub mod listing;
pub mod outcome;
pub mod reading;
pub mod shown;
pub mod stored;
pub mod watch;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use proto::{
    LeaseId, Revision,
    etcdserverpb::{
        Compare as CompareOnWire, DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest, RequestOp,
        ResponseHeader, TxnRequest, TxnResponse,
        compare::{CompareResult, CompareTarget, TargetUnion},
        kv_client::KvClient,
        lease_client::LeaseClient,
        request_op::Request,
    },
};
use tokio::time::{Instant, timeout_at};
use tonic::Code;

use crate::{
    boot_clock,
    observe::{
        Observer,
        access::{CALL, TXN},
        error::CallError,
    },
};
use endpoint::{Endpoints, Excluded};
use outcome::{failed, is_lease_gone, is_passing, is_space_used_up};
use reading::{MOST_ANSWERED, MOST_BYTES, full, is_too_large, ranges, snapshot};

pub use keepalive::KeepAlive;
pub use outcome::{NotGranted, NotRead, TxnAnswer, Unknown};
pub use watch::Watch;

/// What an answer lacks that is none to what was asked.
const NO_KEYS: &str = "the answer carries no keys";

/// The shared keys of one cluster.
#[derive(Debug)]
pub struct Store {
    endpoints: Endpoints,
    /// Where the last transaction was sent.
    told: Mutex<Option<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawKey {
    /// The key, without the prefix.
    pub key: String,
    pub value: Vec<u8>,
    /// The revision that created it.
    pub created: Revision,
    /// The revision that wrote it last.
    pub modified: Revision,
    /// The lease that takes it along, if any.
    pub lease: Option<LeaseId>,
}

/// All keys under the prefix at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The store's revision that this is of.
    pub revision: Revision,
    pub keys: Vec<RawKey>,
}

/// A condition on one key. An absent key has revision 0, for both kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// It was created at this revision.
    Created(String, Revision),
    /// It was written last at this revision.
    Modified(String, Revision),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Put {
        /// The key, without the prefix.
        key: String,
        value: Vec<u8>,
        lease: Option<LeaseId>,
    },
    /// Deletes it; that there is none is fine.
    Delete {
        /// The key, without the prefix.
        key: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: LeaseId,
    /// How long it lives without being kept alive.
    pub ttl: Duration,
    /// When it was asked for, on the clock that counts suspend: it lives at least until this plus `ttl`.
    pub asked_at: Duration,
}

impl Store {
    /// The keys, reached over the connections of an observer.
    pub fn new(observer: &Observer, excluded: Arc<Excluded>) -> Self {
        Self { endpoints: Endpoints::new(Arc::clone(observer.access()), excluded), told: Mutex::default() }
    }

    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The address that the last transaction was sent to.
    pub fn told(&self) -> Option<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads all keys, linearizably.
    ///
    /// # Errors
    /// [`NotRead`] when nobody answers in time, or there is too much of them.
    pub async fn read(&self) -> Result<Snapshot, NotRead> {
        self.read_by(|| self.endpoints.find(CALL), CALL).await
    }

    /// The same through another member than the one at `address`, as long as one answers: what that one said of a
    /// transaction is not to be confirmed by itself.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn read_beside(&self, address: &str) -> Result<Snapshot, NotRead> {
        self.read_by(|| self.endpoints.find_beside(CALL, address), 3 * CALL).await
    }

    async fn read_by<F>(&self, way: impl Fn() -> F, patience: Duration) -> Result<Snapshot, NotRead>
    where
        F: Future<Output = Result<String, CallError>>,
    {
        let deadline = Instant::now() + patience;
        let read = async {
            loop {
                let address = way().await?;
                let request = TxnRequest { success: ranges(), ..Default::default() };
                let answer = self.endpoints.access().ask(&address, request, |channel, request| async move {
                    KvClient::new(channel).max_decoding_message_size(MOST_ANSWERED).txn(request).await
                });
                match answer.await {
                    Err(error) if is_passing(&error) => self.endpoints.distrust(&address),
                    Ok(answer) if self.is_foreign(answer.header.as_ref()) => self.endpoints.distrust(&address),
                    // One that says so to everybody may be wrong: another one is asked next time.
                    Err(error) if error.code() == Some(Code::PermissionDenied) => {
                        self.endpoints.distrust(&address);
                        return Err(error);
                    }
                    answer => return answer,
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match timeout_at(deadline, read).await {
            Ok(Ok(answer)) => Ok(snapshot(answer).ok_or_else(|| Unknown(NO_KEYS.to_owned()))??),
            Ok(Err(error)) if is_too_large(&error) => Err(self.too_large().await?.into()),
            Ok(Err(error)) => Err(Unknown(error.to_string()).into()),
            Err(_) => Err(Unknown(CallError::TimedOut(patience).to_string()).into()),
        }
    }

    /// Makes all changes if all conditions hold, and none otherwise. It is sent once.
    pub async fn txn(&self, compares: &[Compare], ops: &[Op]) -> TxnAnswer {
        if let Some(why) = ops.iter().find_map(too_long) {
            return TxnAnswer::Refused(why);
        }
        let request = TxnRequest {
            compare: compares.iter().map(Self::compare).collect(),
            success: ops.iter().map(Self::op).collect(),
            failure: ranges(),
        };
        let address = match self.endpoints.find(CALL).await {
            Ok(address) => address,
            Err(error) => return TxnAnswer::Unknown(Unknown(error.to_string())),
        };
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.clone());
        let answer = self.endpoints.access().tell(&address, TXN, request, |channel, request| async move {
            KvClient::new(channel).max_decoding_message_size(MOST_ANSWERED).txn(request).await
        });
        match answer.await {
            Ok(answer) if self.is_foreign(answer.header.as_ref()) => {
                self.endpoints.distrust(&address);
                TxnAnswer::Unknown(Unknown(format!("{address} belongs to another cluster")))
            }
            Ok(answer) => read_answer(answer),
            // Only what comes with a refusal can be that large.
            Err(error) if is_too_large(&error) => match self.too_large().await {
                Ok(oversize) => TxnAnswer::Oversize(oversize),
                Err(unknown) => TxnAnswer::Unknown(unknown),
            },
            Err(error) => {
                self.endpoints.distrust(&address);
                failed(&error)
            }
        }
    }

    /// Grants a lease of this id (0: etcd chooses one). One that stands already is as good as granted: ids
    /// are random, so it was granted by an earlier sending whose answer was lost.
    ///
    /// # Errors
    /// [`NotGranted`]
    pub async fn grant(&self, id: LeaseId, ttl: Duration) -> Result<Lease, NotGranted> {
        let address = self.endpoints.find(CALL).await.map_err(|error| Unknown(error.to_string()))?;
        let asked_at = boot_clock::now();
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let request = LeaseGrantRequest { ttl: seconds, id: id.0 };
        let answer = self
            .endpoints
            .access()
            .tell(&address, CALL, request, |channel, request| async move {
                LeaseClient::new(channel).lease_grant(request).await
            })
            .await;
        match answer {
            Ok(granted) if granted.id == 0 || (id.0 != 0 && granted.id != id.0) => {
                Err(Unknown(format!("{address} grants another lease than was asked for")).into())
            }
            Ok(granted) => {
                // A longer time than was asked for is not counted on.
                let ttl = Duration::from_secs(u64::try_from(granted.ttl).unwrap_or(0)).min(ttl);
                Ok(Lease { id: LeaseId(granted.id), ttl, asked_at })
            }
            Err(error) if error.says("etcdserver: lease already exists") => Ok(Lease { id, ttl, asked_at }),
            Err(error) if is_space_used_up(&error) => Err(NotGranted::Refused(error.to_string())),
            Err(error) => {
                self.endpoints.distrust(&address);
                Err(Unknown(error.to_string()).into())
            }
        }
    }

    /// Ends a lease, and with it its keys. That it has ended already is fine.
    ///
    /// # Errors
    /// [`Unknown`] when nobody answers in time; sending it again does no harm.
    pub async fn revoke(&self, lease: LeaseId) -> Result<(), Unknown> {
        let address = self.endpoints.find(CALL).await.map_err(|error| Unknown(error.to_string()))?;
        let request = LeaseRevokeRequest { id: lease.0 };
        let answer = self
            .endpoints
            .access()
            .tell(&address, CALL, request, |channel, request| async move {
                LeaseClient::new(channel).lease_revoke(request).await
            })
            .await;
        match answer {
            Ok(_) => Ok(()),
            Err(error) if is_lease_gone(&error) => Ok(()),
            Err(error) => {
                self.endpoints.distrust(&address);
                Err(Unknown(error.to_string()))
            }
        }
    }

    /// An address that a member advertises may lead elsewhere: `localhost`, or one that was given away. What another
    /// cluster says of keys is no word on these.
    pub(super) fn is_foreign(&self, header: Option<&ResponseHeader>) -> bool {
        self.endpoints.access().directory().foreign(header).is_some()
    }

    fn compare(compare: &Compare) -> CompareOnWire {
        let (key, target, operand) = match compare {
            Compare::Created(key, at) => (key, CompareTarget::Create, TargetUnion::CreateRevision(at.0)),
            Compare::Modified(key, at) => (key, CompareTarget::Mod, TargetUnion::ModRevision(at.0)),
        };
        CompareOnWire {
            result: CompareResult::Equal.into(),
            target: target.into(),
            key: full(key),
            target_union: Some(operand),
            range_end: vec![],
        }
    }

    fn op(op: &Op) -> RequestOp {
        let request = match op {
            Op::Put { key, value, lease } => Request::RequestPut(PutRequest {
                key: full(key),
                value: value.clone(),
                lease: lease.map_or(0, |lease| lease.0),
                ..Default::default()
            }),
            Op::Delete { key } => {
                Request::RequestDeleteRange(DeleteRangeRequest { key: full(key), ..Default::default() })
            }
        };
        RequestOp { request: Some(request) }
    }
}

/// Why this is not written: nobody would read it any more.
fn too_long(op: &Op) -> Option<String> {
    match op {
        Op::Put { key, value, .. } if value.len() > MOST_BYTES => Some(format!(
            "the key {}{key} would hold {} bytes, and no agent reads more than {MOST_BYTES} of one",
            crate::keys::PREFIX,
            value.len()
        )),
        Op::Put { .. } | Op::Delete { .. } => None,
    }
}

fn read_answer(answer: TxnResponse) -> TxnAnswer {
    if answer.succeeded {
        return TxnAnswer::Yes { revision: Revision(answer.header.map_or(0, |header| header.revision)) };
    }
    match snapshot(answer) {
        Some(Ok(snapshot)) => TxnAnswer::No(snapshot),
        Some(Err(oversize)) => TxnAnswer::Oversize(oversize),
        None => TxnAnswer::Unknown(Unknown(NO_KEYS.to_owned())),
    }
}

/// The first key of a prefix, and the first one after it (etcd API, "range_end").
pub(super) fn range_of(prefix: &str) -> (Vec<u8>, Vec<u8>) {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return (prefix.into(), end);
        }
    }
    (prefix.into(), vec![0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_its_successor() {
        assert_eq!(range_of("/baton/"), (b"/baton/".to_vec(), b"/baton0".to_vec()));
        assert_eq!(range_of("a"), (b"a".to_vec(), b"b".to_vec()));
    }

    #[test]
    fn what_nobody_would_read_is_not_written() {
        let put = |bytes: usize| Op::Put { key: "run".into(), value: vec![b'x'; bytes], lease: None };
        assert_eq!(too_long(&put(MOST_BYTES)), None);
        let why = too_long(&put(MOST_BYTES + 1)).unwrap();
        assert!(why.starts_with("the key /baton/run would hold 262145 bytes"), "{why}");
    }
}
