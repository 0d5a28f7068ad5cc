//! Everything that lies below `/baton/`, ours or not, read so that no size of it does harm: names first, then one value
//! after the other; and the leases that keys are bound to.

use std::time::Duration;

use proto::{
    LeaseId,
    etcdserverpb::{
        LeaseTimeToLiveRequest, RangeRequest, RangeResponse, kv_client::KvClient, lease_client::LeaseClient,
    },
};

use super::{
    RawKey, Store,
    outcome::{Unknown, is_lease_gone},
    range_of,
    reading::{MOST_ANSWERED, MOST_BYTES, MOST_KEYS, Oversize, full, is_too_large, raw_key},
};
use crate::{keys::PREFIX, observe::access::CALL};

/// The most keys that are listed.
pub const MOST_LISTED: usize = 4 * MOST_KEYS;

/// The names below `/baton/`, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Each with its revisions and lease, and no value.
    pub keys: Vec<RawKey>,
    /// Whether there are more than these.
    pub is_cut: bool,
}

/// One key, as far as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum One {
    Whole(RawKey),
    Gone,
    /// Its value is not taken: it is of so many bytes at least.
    Oversize(usize),
}

/// What is left of a lease, as the leader counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// How long it lives if nobody keeps it alive, in whole seconds.
    pub left: Duration,
    pub granted: Duration,
}

impl Store {
    /// Lists what there is.
    ///
    /// # Errors
    /// [`Unknown`] when nobody answers in time.
    pub async fn list(&self) -> Result<Listing, Unknown> {
        let (key, range_end) = range_of(PREFIX);
        let request = RangeRequest { key, range_end, keys_only: true, limit: MOST_LISTED as i64, ..Default::default() };
        let answer = self.range(request).await?.map_err(|oversize| Unknown(oversize.to_string()))?;
        Ok(Listing { is_cut: answer.more, keys: answer.kvs.into_iter().filter_map(raw_key).collect() })
    }

    /// Reads one key by its name without the prefix.
    ///
    /// # Errors
    /// [`Unknown`] when nobody answers in time.
    pub async fn one(&self, name: &str) -> Result<One, Unknown> {
        let request = RangeRequest { key: full(name), ..Default::default() };
        Ok(match self.range(request).await? {
            Err(_) => One::Oversize(MOST_ANSWERED),
            Ok(answer) => match answer.kvs.into_iter().next().and_then(raw_key) {
                None => One::Gone,
                Some(raw) if raw.value.len() > MOST_BYTES => One::Oversize(raw.value.len()),
                Some(raw) => One::Whole(raw),
            },
        })
    }

    /// What is too large, where all of it together was: the first such key by name.
    pub(super) async fn too_large(&self) -> Result<Oversize, Unknown> {
        for RawKey { key, .. } in self.list().await?.keys {
            if let One::Oversize(bytes) = self.one(&key).await? {
                return Ok(Oversize::Value { key, bytes });
            }
        }
        Ok(Oversize::Together)
    }

    async fn range(&self, request: RangeRequest) -> Result<Result<RangeResponse, Oversize>, Unknown> {
        let address = self.endpoints().find(CALL).await.map_err(|error| Unknown(error.to_string()))?;
        let answer = self.endpoints().access().ask(&address, request, |channel, request| async move {
            KvClient::new(channel).max_decoding_message_size(MOST_ANSWERED).range(request).await
        });
        match answer.await {
            Ok(answer) if self.is_foreign(answer.header.as_ref()) => {
                self.endpoints().distrust(&address);
                Err(Unknown(format!("{address} belongs to another cluster")))
            }
            Ok(answer) => Ok(Ok(answer)),
            Err(error) if is_too_large(&error) => Ok(Err(Oversize::Together)),
            Err(error) => {
                self.endpoints().distrust(&address);
                Err(Unknown(error.to_string()))
            }
        }
    }

    /// What is left of a lease; `None` when it has ended.
    ///
    /// # Errors
    /// [`Unknown`] when nobody answers in time.
    pub async fn remaining(&self, lease: LeaseId) -> Result<Option<Remaining>, Unknown> {
        let address = self.endpoints().find(CALL).await.map_err(|error| Unknown(error.to_string()))?;
        let question = LeaseTimeToLiveRequest { id: lease.0, keys: false };
        let answer = self.endpoints().access().ask(&address, question, |channel, request| async move {
            LeaseClient::new(channel).lease_time_to_live(request).await
        });
        let seconds = |count: i64| u64::try_from(count).map(Duration::from_secs);
        match answer.await {
            // -1 for a lease that has ended (etcd API, LeaseTimeToLiveResponse).
            Ok(answer) => Ok(seconds(answer.ttl)
                .ok()
                .map(|left| Remaining { left, granted: seconds(answer.granted_ttl).unwrap_or_default() })),
            Err(error) if is_lease_gone(&error) => Ok(None),
            Err(error) => {
                self.endpoints().distrust(&address);
                Err(Unknown(error.to_string()))
            }
        }
    }
}
