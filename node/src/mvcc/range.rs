//! Reads.
//!
//! Source: etcd, `executeRange` in server/etcdserver/txn/txn.go.

use std::cmp::Ordering;

use proto::{
    Revision,
    etcdserverpb::{
        RangeRequest, RangeResponse,
        range_request::{SortOrder, SortTarget},
    },
    mvccpb::KeyValue,
};

use super::{
    Found, KeyRange, Store, header,
    listing::{Listed, Listing},
};
use crate::api_error::ApiError;

/// A range of more keys takes long to read.
const MANY: usize = 1_000;

/// How much there is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    OneKey,
    SomeKeys,
    ManyKeys,
}

impl Store {
    /// How many keys a read has to look at, whatever its limit: it counts them all.
    pub fn extent(&self, request: &RangeRequest) -> Extent {
        match KeyRange::new(&request.key, &request.range_end) {
            KeyRange::One(_) => Extent::OneKey,
            range if self.histories(range).nth(MANY).is_some() => Extent::ManyKeys,
            _ => Extent::SomeKeys,
        }
    }

    /// Reads keys.
    ///
    /// # Errors
    /// The revision is compacted or not reached yet.
    pub fn range(&self, request: &RangeRequest) -> Result<RangeResponse, ApiError> {
        self.range_at(request, self.revision)
    }

    /// As [`Store::range`], where `newest` is what a write in progress has come to.
    pub(super) fn range_at(&self, request: &RangeRequest, newest: Revision) -> Result<RangeResponse, ApiError> {
        let Selected { found, more, count } = self.select(request, newest)?;
        let kvs = found.iter().map(|found| answered(request, found)).collect();
        Ok(RangeResponse { header: header(newest), kvs, more, count })
    }

    /// As [`Store::range`], for an answer that may be long: no value is copied before it is sent.
    ///
    /// # Errors
    /// The revision is compacted or not reached yet.
    pub fn list(&self, request: &RangeRequest) -> Result<Listing, ApiError> {
        let Selected { found, more, count } = self.select(request, self.revision)?;
        let kvs = found.iter().map(|found| Listed::new(found, request.keys_only)).collect();
        Ok(Listing::new(header(self.revision), kvs, more, count))
    }

    fn select(&self, request: &RangeRequest, newest: Revision) -> Result<Selected<'_>, ApiError> {
        let revision = self.readable(request.revision, newest)?;
        let alive = self.alive(KeyRange::new(&request.key, &request.range_end), revision);
        if request.count_only {
            return Ok(Selected { found: Vec::new(), more: false, count: alive.count() as i64 });
        }
        let (mut found, count) = collect(alive, fetched(request));
        found.retain(|found| passes(request, found));
        sort(&mut found, request);
        let limit = limit(request);
        let more = found.len() > limit;
        found.truncate(limit);
        Ok(Selected { found, more, count })
    }
}

/// What a read has found.
struct Selected<'a> {
    found: Vec<Found<'a>>,
    more: bool,
    count: i64,
}

/// How many keys are answered at most.
fn limit(request: &RangeRequest) -> usize {
    if request.limit > 0 { usize::try_from(request.limit).unwrap_or(usize::MAX) } else { usize::MAX }
}

/// How many keys are fetched at most: one more than the limit, to know whether there are more; all where the answer is put
/// in another order or filtered first. An order by something else than the key, with no direction given, orders only what
/// the limit let through: so does etcd.
fn fetched(request: &RangeRequest) -> usize {
    let filtered =
        [request.min_mod_revision, request.max_mod_revision, request.min_create_revision, request.max_create_revision];
    if request.sort_order != SortOrder::None as i32 || filtered != [0; 4] {
        return usize::MAX;
    }
    limit(request).saturating_add(1)
}

/// The first `limit` keys, and how many there are with those after them.
fn collect<'a>(alive: impl Iterator<Item = Found<'a>>, limit: usize) -> (Vec<Found<'a>>, i64) {
    let (mut found, mut count) = (Vec::new(), 0);
    for one in alive {
        count += 1;
        if found.len() < limit {
            found.push(one);
        }
    }
    (found, count)
}

fn passes(request: &RangeRequest, found: &Found<'_>) -> bool {
    let within = |revision: Revision, least: i64, most: i64| {
        (least == 0 || revision.0 >= least) && (most == 0 || revision.0 <= most)
    };
    within(found.at.revision, request.min_mod_revision, request.max_mod_revision)
        && within(found.live.created, request.min_create_revision, request.max_create_revision)
}

/// Keys come in ascending order; equals stay in it.
fn sort(found: &mut [Found<'_>], request: &RangeRequest) {
    let (order, target) = (request.sort_order(), request.sort_target());
    match (order, target) {
        (SortOrder::None | SortOrder::Ascend, SortTarget::Key) => {}
        (SortOrder::Descend, _) => found.sort_by(|a, b| compare(b, a, target)),
        (SortOrder::None | SortOrder::Ascend, _) => found.sort_by(|a, b| compare(a, b, target)),
    }
}

fn compare(a: &Found<'_>, b: &Found<'_>, target: SortTarget) -> Ordering {
    match target {
        SortTarget::Key => a.key.cmp(b.key),
        SortTarget::Version => a.live.version.cmp(&b.live.version),
        SortTarget::Create => a.live.created.cmp(&b.live.created),
        SortTarget::Mod => a.at.revision.cmp(&b.at.revision),
        SortTarget::Value => a.live.value.cmp(&b.live.value),
    }
}

fn answered(request: &RangeRequest, found: &Found<'_>) -> KeyValue {
    if request.keys_only {
        found.live.without_value(found.key, found.at)
    } else {
        found.live.key_value(found.key, found.at)
    }
}
