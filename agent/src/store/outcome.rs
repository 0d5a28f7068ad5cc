//! What became of a call: done, refused, or nobody knows.
//!
//! Pure: reads answers and errors. Only the server's own words are a no; whatever was not answered may have been done.

use proto::Revision;
use tonic::Code;

use super::{Snapshot, reading::Oversize};
use crate::observe::error::CallError;

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxnAnswer {
    /// All conditions held, all changes were made.
    Yes { revision: Revision },
    /// A condition did not hold, nothing was changed.
    No(Snapshot),
    /// Nor was anything changed here, but the keys that came with it are more than is read.
    Oversize(Oversize),
    /// A lease to bind a key to has ended, nothing was changed.
    LeaseGone,
    /// The cluster refuses it, nothing was changed; sending it again is of no use.
    Refused(String),
    /// It may have been carried out, may be carried out yet, or never.
    Unknown(Unknown),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unknown(pub String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// They are more than is read.
    #[error(transparent)]
    Oversize(#[from] Oversize),
    #[error(transparent)]
    Unknown(#[from] Unknown),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGranted {
    /// The cluster refuses it in so many words: its space is used up, for one.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Unknown(#[from] Unknown),
}

/// Whether an error of a read is over in a moment, or is one member's alone.
pub(super) fn is_passing(error: &CallError) -> bool {
    matches!(error.code(), None | Some(Code::Unavailable))
}

pub(super) fn is_space_used_up(error: &CallError) -> bool {
    error.says("etcdserver: mvcc: database space exceeded")
}

pub(super) fn is_lease_gone(error: &CallError) -> bool {
    error.says("etcdserver: requested lease not found")
}

/// What an error says about a transaction's outcome. "Database space exceeded" is no refusal: etcd says so of
/// transactions that it has just carried out, too.
pub(super) fn failed(error: &CallError) -> TxnAnswer {
    if is_lease_gone(error) {
        return TxnAnswer::LeaseGone;
    }
    // Without a token: the login failed for a moment, and nothing is known of an earlier sending.
    if error.says("etcdserver: user name is empty") {
        return TxnAnswer::Unknown(Unknown(error.to_string()));
    }
    match error.code() {
        Some(Code::InvalidArgument | Code::PermissionDenied | Code::FailedPrecondition | Code::Unimplemented) => {
            TxnAnswer::Refused(error.to_string())
        }
        _ => TxnAnswer::Unknown(Unknown(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;
    use crate::observe::access::TXN;

    #[test]
    fn only_the_servers_own_refusal_is_a_no() {
        for (error, expected) in [
            (CallError::TimedOut(TXN), "unknown"),
            (said(Code::Unavailable, "etcdserver: request timed out"), "unknown"),
            (said(Code::Unavailable, "etcdserver: leader changed"), "unknown"),
            (said(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"), "unknown"),
            (said(Code::NotFound, "etcdserver: requested lease not found"), "lease gone"),
            (said(Code::NotFound, "something else"), "unknown"),
            (said(Code::Unauthenticated, "etcdserver: invalid auth token"), "unknown"),
            (said(Code::InvalidArgument, "etcdserver: user name is empty"), "unknown"),
            (said(Code::PermissionDenied, "etcdserver: permission denied"), "refused"),
            (said(Code::InvalidArgument, "etcdserver: request is too large"), "refused"),
        ] {
            let answer = match failed(&error) {
                TxnAnswer::LeaseGone => "lease gone",
                TxnAnswer::Refused(_) => "refused",
                TxnAnswer::Unknown(_) => "unknown",
                TxnAnswer::Yes { .. } | TxnAnswer::No(_) | TxnAnswer::Oversize(_) => "answered",
            };
            assert_eq!(answer, expected, "{error}");
        }
    }

    fn said(code: Code, message: &str) -> CallError {
        CallError::from(Status::new(code, message))
    }
}
