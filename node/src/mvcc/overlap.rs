//! A transaction writes no key twice.
//!
//! Source: etcd, `checkIntervals` in server/etcdserver/api/v3rpc/key.go, with what it lets through: a deletion without end
//! overlaps nothing, a deletion may come after another's put where both are in nested transactions, and the two branches of
//! one nested transaction may write the same keys, since only one of them is done.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use proto::etcdserverpb::{RequestOp, TxnRequest, request_op::Request};

use crate::api_error::ApiError;

/// Looks for a key that a list of operations, with all that is nested in it, would write twice.
pub(super) fn check(operations: &[RequestOp]) -> Result<(), ApiError> {
    written(operations).map(|_| ())
}

/// What a list of operations may write.
#[derive(Default)]
struct Written<'a> {
    puts: BTreeSet<&'a [u8]>,
    deleted: Deleted<'a>,
}

fn written(operations: &[RequestOp]) -> Result<Written<'_>, ApiError> {
    let requests = || operations.iter().filter_map(|operation| operation.request.as_ref());
    let mut written = Written::default();
    for request in requests() {
        if let Request::RequestDeleteRange(delete) = request {
            written.deleted.insert(&delete.key, &delete.range_end);
        }
    }
    for request in requests() {
        if let Request::RequestTxn(nested) = request {
            written.nest(nested)?;
        }
    }
    for request in requests() {
        if let Request::RequestPut(put) = request {
            written.put(&put.key, &BTreeSet::new())?;
        }
    }
    Ok(written)
}

impl<'a> Written<'a> {
    fn nest(&mut self, nested: &'a TxnRequest) -> Result<(), ApiError> {
        let (then, otherwise) = (written(&nested.success)?, written(&nested.failure)?);
        for key in &then.puts {
            self.put(key, &BTreeSet::new())?;
        }
        for key in &otherwise.puts {
            self.put(key, &then.puts)?;
        }
        self.deleted.merge(then.deleted);
        self.deleted.merge(otherwise.deleted);
        Ok(())
    }

    fn put(&mut self, key: &'a [u8], exclusive: &BTreeSet<&'a [u8]>) -> Result<(), ApiError> {
        let again = !self.puts.insert(key) && !exclusive.contains(key);
        if again || self.deleted.contains(key) { Err(ApiError::DuplicateKey) } else { Ok(()) }
    }
}

/// Keys to be deleted: single ones, and spans that neither touch nor overlap, so that asking for one is one look-up.
#[derive(Default)]
struct Deleted<'a> {
    single: BTreeSet<&'a [u8]>,
    spans: BTreeMap<&'a [u8], &'a [u8]>,
}

impl<'a> Deleted<'a> {
    fn insert(&mut self, key: &'a [u8], range_end: &'a [u8]) {
        if range_end.is_empty() {
            self.single.insert(key);
        } else {
            self.span(key, range_end);
        }
    }

    fn span(&mut self, mut first: &'a [u8], mut end: &'a [u8]) {
        // So is a deletion without end, whose end is written as the lowest of all keys.
        if end <= first {
            return;
        }
        while let Some((&other, &other_end)) = self.before_or_at(end)
            && other_end >= first
        {
            self.spans.remove(other);
            (first, end) = (first.min(other), end.max(other_end));
        }
        self.spans.insert(first, end);
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.single.contains(key) || self.before_or_at(key).is_some_and(|(_, end)| key < *end)
    }

    fn before_or_at(&self, key: &[u8]) -> Option<(&&'a [u8], &&'a [u8])> {
        self.spans.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    fn merge(&mut self, other: Self) {
        self.single.extend(other.single);
        other.spans.into_iter().for_each(|(first, end)| self.span(first, end));
    }
}
