//! Requests that take longer than `--warning-unary-request-duration`, in the words and with the keys of etcd
//! (`logUnaryRequestStats` in server/etcdserver/api/v3rpc/interceptor.go).
//!
//! What was asked is kept until it is known how long it took: so much of it as costs nothing to keep. No value is in it, as with etcd;
//! of a long key no more than its beginning.

use std::{
    fmt,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use prost::Message;
use proto::etcdserverpb::{
    DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp,
    TxnRequest, TxnResponse,
};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::context::ServiceContext;
use crate::{mvcc::Listing, slow::Slow};

tokio::task_local! {
    /// Who asks, where a request is answered.
    pub(super) static REMOTE: Option<SocketAddr>;
}

/// What is said of one, beside how long it took.
#[derive(Debug)]
pub(super) struct Stats {
    pub(super) request_count: i64,
    pub(super) request_bytes: i64,
    pub(super) response_count: i64,
    pub(super) response_bytes: i64,
    pub(super) content: String,
}

impl Stats {
    /// Of a request that is none of KV's: etcd says the same of it.
    pub(super) fn of_other() -> Self {
        let none = -1;
        let content = String::new();
        Self { request_count: none, request_bytes: none, response_count: none, response_bytes: none, content }
    }
}

/// Says it, where that is not too often.
pub(super) fn say(slow: &Slow, took: Duration, remote: Option<SocketAddr>, method: &str, stats: &Stats) {
    let Some(not_said) = slow.may_say() else { return };
    let started = SystemTime::now().checked_sub(took).unwrap_or(SystemTime::UNIX_EPOCH);
    tracing::warn!(
        "start time" = %prost_types::Timestamp::from(started),
        "time spent" = ?took,
        remote = remote.map_or_else(|| "No remote client info.".to_owned(), |at| at.to_string()),
        "response type" = method,
        "request count" = stats.request_count,
        "request size" = stats.request_bytes,
        "response count" = stats.response_count,
        "response size" = stats.response_bytes,
        "request content" = stats.content,
        "not said" = (not_said > 0).then_some(not_said),
        "request stats"
    );
}

/// The beginning of a key.
#[derive(Clone, Copy)]
pub(super) struct Key {
    bytes: [u8; 64],
    length: usize,
}

impl Key {
    fn of(key: &[u8]) -> Self {
        let mut bytes = [0; 64];
        let kept = key.len().min(bytes.len());
        bytes[..kept].copy_from_slice(&key[..kept]);
        Self { bytes, length: key.len() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.length.min(self.bytes.len());
        let more = if kept < self.length { "..." } else { "" };
        write!(f, "\"{}{more}\"", self.bytes[..kept].escape_ascii())
    }
}

/// What was asked, and when.
pub(super) struct Asked {
    began: Instant,
    bytes: usize,
    what: What,
}

#[derive(Clone, Copy)]
pub(super) enum What {
    Range { key: Key, end: Key, limit: i64, revision: i64, is_serializable: bool },
    Put { key: Key, value_bytes: usize, lease: i64 },
    Delete { key: Key, end: Key },
    Txn { compared: usize, success: usize, failure: usize },
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |f: &mut fmt::Formatter<'_>, end: &Key| match end.length {
            0 => Ok(()),
            _ => write!(f, " range_end:{end}"),
        };
        match self {
            Self::Range { key, end: until, limit, revision, is_serializable } => {
                write!(f, "key:{key}")?;
                end(f, until)?;
                for (name, number) in
                    [("limit", limit), ("revision", revision)].into_iter().filter(|(_, number)| **number != 0)
                {
                    write!(f, " {name}:{number}")?;
                }
                if *is_serializable { f.write_str(" serializable:true") } else { Ok(()) }
            }
            Self::Put { key, value_bytes, lease } => {
                write!(f, "key:{key} value_size:{value_bytes}")?;
                if *lease == 0 { Ok(()) } else { write!(f, " lease:{lease}") }
            }
            Self::Delete { key, end: until } => {
                write!(f, "key:{key}")?;
                end(f, until)
            }
            Self::Txn { compared, success, failure } => {
                write!(f, "compare:<size:{compared}> success:<size:{success}> failure:<size:{failure}>")
            }
        }
    }
}

/// A request of KV.
pub(super) trait Timed: Message {
    /// As gRPC names it.
    const METHOD: &str;
    /// What it is answered with.
    type Answer: Message;

    fn what(&self) -> What;

    /// How many things it asks for, and how many it was answered.
    fn counts(answer: Option<&Self::Answer>, what: What) -> (i64, i64);
}

impl Timed for RangeRequest {
    const METHOD: &str = "/etcdserverpb.KV/Range";
    type Answer = RangeResponse;

    fn what(&self) -> What {
        What::Range {
            key: Key::of(&self.key),
            end: Key::of(&self.range_end),
            limit: self.limit,
            revision: self.revision,
            is_serializable: self.serializable,
        }
    }

    fn counts(answer: Option<&RangeResponse>, _: What) -> (i64, i64) {
        (0, answer.map_or(0, |answer| answer.count))
    }
}

impl Timed for PutRequest {
    const METHOD: &str = "/etcdserverpb.KV/Put";
    type Answer = PutResponse;

    fn what(&self) -> What {
        What::Put { key: Key::of(&self.key), value_bytes: self.value.len(), lease: self.lease }
    }

    fn counts(_: Option<&PutResponse>, _: What) -> (i64, i64) {
        (1, 0)
    }
}

impl Timed for DeleteRangeRequest {
    const METHOD: &str = "/etcdserverpb.KV/DeleteRange";
    type Answer = DeleteRangeResponse;

    fn what(&self) -> What {
        What::Delete { key: Key::of(&self.key), end: Key::of(&self.range_end) }
    }

    fn counts(answer: Option<&DeleteRangeResponse>, _: What) -> (i64, i64) {
        (0, answer.map_or(0, |answer| answer.deleted))
    }
}

impl Timed for TxnRequest {
    const METHOD: &str = "/etcdserverpb.KV/Txn";
    type Answer = TxnResponse;

    fn what(&self) -> What {
        let count = |operations: &Vec<RequestOp>| operations.len();
        What::Txn { compared: self.compare.len(), success: count(&self.success), failure: count(&self.failure) }
    }

    fn counts(answer: Option<&TxnResponse>, what: What) -> (i64, i64) {
        let asked = match (what, answer) {
            (What::Txn { success, .. }, Some(answer)) if answer.succeeded => success as i64,
            (What::Txn { failure, .. }, Some(_)) => failure as i64,
            _ => 0,
        };
        (asked, 0)
    }
}

impl ServiceContext {
    /// Answers a request, and says so where that took too long.
    pub(super) async fn timed<R: Timed>(
        &self,
        request: Request<R>,
        answer: impl AsyncFnOnce(Request<R>) -> Result<Response<R::Answer>, Status>,
    ) -> Result<Response<R::Answer>, Status> {
        let asked =
            Asked { began: Instant::now(), bytes: request.get_ref().encoded_len(), what: request.get_ref().what() };
        let answered = answer(request).await;
        let (took, slow) = (asked.began.elapsed(), &self.calls.slow);
        if slow.is_slow(took) {
            let stats = stats::<R>(&asked, answered.as_ref().ok());
            say(slow, took, REMOTE.try_with(|remote| *remote).ok().flatten(), R::METHOD, &stats);
        }
        answered
    }
}

fn stats<R: Timed>(asked: &Asked, answered: Option<&Response<R::Answer>>) -> Stats {
    let answer = answered.map(Response::get_ref);
    let (request_count, response_count) = R::counts(answer, asked.what);
    // Beside a long answer the message is empty.
    let (response_count, response_bytes) = match answered.and_then(|answered| answered.extensions().get::<Listing>()) {
        Some(listing) => (listing.count(), listing.bytes()),
        None => (response_count, answer.map_or(0, Message::encoded_len)),
    };
    Stats {
        request_count,
        request_bytes: asked.bytes as i64,
        response_count,
        response_bytes: response_bytes as i64,
        content: asked.what.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::mvcc::Store;

    #[test]
    fn an_answer_counts_the_same_however_it_is_sent() {
        let mut store = Store::default();
        for key in 0..3 {
            store.put(PutRequest { key: vec![key], value: vec![7; 40_000], ..PutRequest::default() }).unwrap();
        }
        let range = RangeRequest { key: vec![0], range_end: vec![0], limit: 2, ..RangeRequest::default() };
        let asked = Asked { began: Instant::now(), bytes: range.encoded_len(), what: range.what() };
        let at_once = Response::new(store.range(&range).unwrap());
        let mut in_pieces = Response::new(RangeResponse::default());
        in_pieces.extensions_mut().insert(store.list(&range).unwrap());
        for answered in [at_once, in_pieces] {
            let stats = stats::<RangeRequest>(&asked, Some(&answered));
            assert_eq!((stats.response_count, stats.response_bytes / 1000), (3, 80), "{stats:?}");
        }
    }

    #[test]
    fn what_was_asked_is_told_without_values() {
        let value = b"secret".to_vec();
        let put = PutRequest { key: b"a\n".to_vec(), value: value.clone(), lease: 7, ..PutRequest::default() };
        let range = RangeRequest { key: b"a".to_vec(), range_end: b"b".to_vec(), limit: 3, ..RangeRequest::default() };
        let long = RangeRequest { key: vec![b'k'; 65], serializable: true, ..RangeRequest::default() };
        let delete = DeleteRangeRequest { key: b"a".to_vec(), range_end: vec![0], ..DeleteRangeRequest::default() };
        let txn = TxnRequest { success: vec![RequestOp::default(); 2], ..TxnRequest::default() };
        for (what, expected) in [
            (put.what(), r#"key:"a\n" value_size:6 lease:7"#.to_owned()),
            (range.what(), r#"key:"a" range_end:"b" limit:3"#.to_owned()),
            (long.what(), format!(r#"key:"{}..." serializable:true"#, "k".repeat(64))),
            (delete.what(), r#"key:"a" range_end:"\x00""#.to_owned()),
            (txn.what(), "compare:<size:0> success:<size:2> failure:<size:0>".to_owned()),
        ] {
            assert_eq!(what.to_string(), expected);
        }
    }

    #[test]
    fn of_a_transaction_the_branch_that_was_taken_counts() {
        let what = What::Txn { compared: 1, success: 2, failure: 3 };
        let answer = |succeeded| TxnResponse { succeeded, ..TxnResponse::default() };
        for (answer, expected) in [(Some(answer(true)), 2), (Some(answer(false)), 3), (None, 0)] {
            assert_eq!(TxnRequest::counts(answer.as_ref(), what), (expected, 0));
        }
    }
}
