//! Which keys are read, and how much of them at most: one Txn of Ranges, so one moment of the store.
//!
//! Pure: requests, and what comes of answers. Only names that are ours are asked for, so that what others put beside them
//! costs nobody anything; and none without a limit, so that a key of ours that somebody filled is a refusal that names it.

use proto::{
    LeaseId, Revision,
    etcdserverpb::{RangeRequest, RangeResponse, RequestOp, TxnResponse, request_op::Request, response_op::Response},
    mvccpb::KeyValue,
};
use tonic::Code;

use super::{RawKey, Snapshot, range_of};
use crate::{keys::PREFIX, observe::error::CallError};

/// The most keys below one folder: hosts of one cluster, many times over.
pub const MOST_KEYS: usize = 256;
/// The most bytes of one value; what agents write has a few hundred.
pub const MOST_BYTES: usize = 256 * 1024;
/// The most bytes of one answer.
pub const MOST_ANSWERED: usize = 16 * 1024 * 1024;

const SINGLE: [&str; 3] = ["run", "baton", "step"];
const FOLDERS: [&str; 3] = ["agents/", "abandoned/", "hosts/"];

/// What agents share is larger than any agent makes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Oversize {
    #[error("the key {PREFIX}{key} holds {bytes} bytes, and no agent writes more than {MOST_BYTES} into one")]
    Value {
        /// The key, without the prefix.
        key: String,
        /// Its size, or the least it can be.
        bytes: usize,
    },
    #[error("more than {MOST_KEYS} keys lie below {PREFIX}{folder}")]
    Keys { folder: &'static str },
    /// None by itself.
    #[error("the keys below {PREFIX} hold more than {MOST_ANSWERED} bytes together")]
    Together,
}

/// The Ranges that read every key.
pub(super) fn ranges() -> Vec<RequestOp> {
    let single = SINGLE.map(|name| RangeRequest { key: full(name), ..Default::default() });
    let folders = FOLDERS.map(|folder| {
        let (key, range_end) = range_of(&format!("{PREFIX}{folder}"));
        RangeRequest { key, range_end, limit: MOST_KEYS as i64, ..Default::default() }
    });
    let op = |range| RequestOp { request: Some(Request::RequestRange(range)) };
    single.into_iter().chain(folders).map(op).collect()
}

/// A name as the store knows it.
pub(super) fn full(key: &str) -> Vec<u8> {
    [PREFIX.as_bytes(), key.as_bytes()].concat()
}

/// The keys that answer [`ranges`]; `None` where the answer is none to that.
pub(super) fn snapshot(answer: TxnResponse) -> Option<Result<Snapshot, Oversize>> {
    let revision = Revision(answer.header.map_or(0, |header| header.revision));
    let mut keys = Vec::new();
    let mut names = SINGLE.into_iter().chain(FOLDERS);
    for op in answer.responses {
        let (Some(name), Some(Response::ResponseRange(range))) = (names.next(), op.response) else { return None };
        if is_cut(&range) {
            return Some(Err(Oversize::Keys { folder: name }));
        }
        keys.extend(range.kvs.into_iter().filter_map(raw_key));
    }
    names.next().is_none().then_some(Ok(Snapshot { revision, keys }))
}

fn is_cut(range: &RangeResponse) -> bool {
    range.more || range.kvs.len() > MOST_KEYS
}

/// `None` for a key that is no text: none of ours.
pub(super) fn raw_key(kv: KeyValue) -> Option<RawKey> {
    let key = String::from_utf8(kv.key).ok()?;
    Some(RawKey {
        key: key.strip_prefix(PREFIX)?.to_owned(),
        value: kv.value,
        created: Revision(kv.create_revision),
        modified: Revision(kv.mod_revision),
        lease: Some(LeaseId(kv.lease)).filter(|lease| lease.0 != 0),
    })
}

/// Whether a call failed because what was answered is more than this side takes (tonic's own words).
pub(super) fn is_too_large(error: &CallError) -> bool {
    error.code() == Some(Code::OutOfRange) && error.to_string().contains("decoded message length too large")
}

#[cfg(test)]
mod tests {
    use proto::etcdserverpb::{ResponseHeader, ResponseOp};

    use super::*;

    fn range(keys: &[&str], more: bool) -> ResponseOp {
        let kv = |key: &&str| KeyValue { key: full(key), mod_revision: 5, lease: 3, ..Default::default() };
        let kvs = keys.iter().map(kv).collect();
        ResponseOp { response: Some(Response::ResponseRange(RangeResponse { kvs, more, ..Default::default() })) }
    }

    fn answer(responses: Vec<ResponseOp>) -> TxnResponse {
        TxnResponse { header: Some(ResponseHeader { revision: 9, ..Default::default() }), responses, succeeded: true }
    }

    #[test]
    fn every_range_is_bounded_and_of_our_own_names() {
        for op in ranges() {
            let Some(Request::RequestRange(range)) = op.request else { panic!("{op:?}") };
            assert!(range.key.starts_with(PREFIX.as_bytes()) && range.key.len() > PREFIX.len(), "{range:?}");
            assert_eq!(range.range_end.is_empty(), range.limit == 0, "{range:?}");
        }
    }

    #[test]
    fn an_answer_is_one_moment_or_says_which_folder_is_too_full() {
        let whole = |more: [bool; 3]| {
            let single = [range(&["run"], false), range(&[], false), range(&["step"], false)];
            let folders = [range(&["agents/a"], more[0]), range(&[], more[1]), range(&["hosts/a"], more[2])];
            snapshot(answer(single.into_iter().chain(folders).collect()))
        };
        let read = whole([false, false, false]).unwrap().unwrap();
        let names: Vec<_> = read.keys.iter().map(|key| key.key.as_str()).collect();
        assert_eq!((read.revision, names), (Revision(9), vec!["run", "step", "agents/a", "hosts/a"]));
        assert_eq!(read.keys[0].lease, Some(LeaseId(3)));
        for (more, folder) in
            [([true, false, false], "agents/"), ([false, true, false], "abandoned/"), ([false, false, true], "hosts/")]
        {
            assert_eq!(whole(more), Some(Err(Oversize::Keys { folder })));
        }
        assert_eq!(snapshot(answer(vec![range(&["run"], false)])), None, "an answer to another question");
        assert_eq!(snapshot(answer(vec![ResponseOp { response: None }; 6])), None);
    }
}
