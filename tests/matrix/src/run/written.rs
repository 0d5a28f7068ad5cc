//! What was acknowledged, and is read back after every step: the old release's data set in full, of the load samples.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use crate::past::kept::Known;
use lab::{Error, client::Client, workload::Acked};
use proto::{
    Revision,
    etcdserverpb::{DeleteRangeRequest, LeaseGrantRequest, PutRequest, kv_client::KvClient, lease_client::LeaseClient},
};

/// How many keys the old release writes.
const KEYS: usize = 60;
/// How many of a step's writes are remembered.
const SAMPLES: usize = 100;

/// How long a lease of the data set lives, in seconds: longer than any plan.
const DAY: i64 = 86_400;

/// A key's value at a revision.
type At = (String, Revision);

#[derive(Debug, Default)]
pub(super) struct Written {
    data: BTreeMap<At, String>,
    /// What the data set's keys hold in the end, and by which lease, 0 for none; nothing where they were deleted.
    last: BTreeMap<String, Option<(String, i64)>>,
    load: Vec<Acked>,
    /// What was known of keys before the plan began.
    past: Known,
    /// Up to this revision history may be gone.
    pub(super) compacted: Arc<AtomicI64>,
}

/// What keys of a past begin with.
const OLD: &str = "k/";

impl Written {
    /// Of a cluster of whose keys so much is known.
    pub(super) fn on(past: Known) -> Self {
        Self { past, ..Self::default() }
    }

    /// Writes the data set: small values, large ones, some written twice, some deleted, some that a lease holds.
    pub(super) async fn fill(&mut self, members: &[Client]) -> Result<(), Error> {
        let grant = LeaseGrantRequest { ttl: DAY, ..LeaseGrantRequest::default() };
        let grant = members[0].request(grant).await?;
        let granted = LeaseClient::new(members[0].channel()).lease_grant(grant).await;
        let lease = members[0].outcome(granted).await?.id;
        for (number, member) in (0..KEYS).zip(members.iter().cycle()) {
            let key = format!("data/{number:03}");
            let held = if number % 4 == 0 { lease } else { 0 };
            let mut kv = KvClient::new(member.channel());
            for version in 0..=usize::from(number % 3 == 0) {
                let value = format!("{number}.{version} ").repeat(1 + number * number);
                let (bytes, name) = (value.clone().into(), key.clone().into());
                let put = PutRequest { key: name, value: bytes, lease: held, ..PutRequest::default() };
                let put = kv.put(member.request(put).await?).await;
                let revision = member.outcome(put).await?.header.unwrap_or_default().revision;
                self.data.insert((key.clone(), Revision(revision)), value.clone());
                self.last.insert(key.clone(), Some((value, held)));
            }
            if number % 5 == 4 {
                let delete = DeleteRangeRequest { key: key.clone().into(), ..DeleteRangeRequest::default() };
                member.outcome(kv.delete_range(member.request(delete).await?).await).await?;
                self.last.insert(key, None);
            }
        }
        Ok(())
    }

    /// Reads all that was there before the plan began, through every member.
    async fn read_past(&self, member: &Client) -> Result<(), Error> {
        let held = member.under(OLD).await?.into_iter();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let held: BTreeMap<_, _> = held.map(|kv| (text(kv.key), text(kv.value))).collect();
        let differs = self.past.iter().find(|(key, value)| held.get(*key) != value.as_ref());
        match differs {
            None => Ok(()),
            Some((key, value)) => {
                let told =
                    |value: Option<&String>| value.map_or("nothing".into(), |value| format!("{} bytes", value.len()));
                let (found, wanted) = (told(held.get(key)), told(value.as_ref()));
                Err(format!("{key} of the cluster's past holds {found}, and should hold {wanted}").into())
            }
        }
    }

    /// Remembers some of what a step's load wrote.
    pub(super) fn remember(&mut self, acked: &[Acked]) {
        self.load.extend(acked.iter().step_by(acked.len().div_ceil(SAMPLES).max(1)).cloned());
    }

    /// Reads all that is remembered back, through one member after the other.
    pub(super) async fn read_back(&self, members: &[Client]) -> Result<(), Error> {
        let data = self.data.iter().map(|((key, revision), value)| (key, *revision, value.clone()));
        let load = self.load.iter().map(|acked| (&acked.key, acked.revision, acked.value.to_string()));
        let is_kept = |(_, revision, _): &(_, Revision, _)| revision.0 > self.compacted.load(Ordering::Relaxed);
        for ((key, revision, value), member) in data.chain(load).filter(is_kept).zip(members.iter().cycle()) {
            let found = member.get_at(key, revision).await?;
            let is_there =
                found.as_ref().is_some_and(|kv| kv.value == value.as_bytes() && kv.mod_revision == revision.0);
            if !is_there {
                let found = found.map(|kv| (kv.mod_revision, String::from_utf8_lossy(&kv.value).len()));
                return Err(format!("{key} of revision {} was read back as {found:?}", revision.0).into());
            }
        }
        if !self.past.is_empty() {
            for member in members {
                self.read_past(member).await?;
            }
        }
        // The other way round, so that each is read through another member than before.
        for ((key, wanted), member) in self.last.iter().zip(members.iter().rev().cycle()) {
            let found = member.get(key).await?.map(|kv| (String::from_utf8_lossy(&kv.value).into_owned(), kv.lease));
            if found != *wanted {
                let told = |what: &Option<(String, i64)>| match what {
                    Some((value, lease)) => format!("{} bytes under lease {lease:x}", value.len()),
                    None => "nothing".into(),
                };
                return Err(format!("{key} holds {}, and should hold {}", told(&found), told(wanted)).into());
            }
        }
        Ok(())
    }
}
