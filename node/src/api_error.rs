//! Why a request is refused, in etcd's codes and words.
//!
//! Clients of etcd compare the text as well as the code, so both are etcd's to the letter
//! (`api/v3rpc/rpctypes/error.go`). Whatever serves gRPC takes them from here.

use thiserror::Error;

/// The gRPC status codes in use here, by their numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// The request is wrong whatever the state is.
    InvalidArgument = 3,
    /// What the request names is not there.
    NotFound = 5,
    /// The state does not allow it.
    FailedPrecondition = 9,
    /// A revision or a number is outside what there is.
    OutOfRange = 11,
}

/// A request that was refused; nothing was changed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ApiError {
    /// A key is empty.
    #[error("etcdserver: key is not provided")]
    EmptyKey,
    /// A put that keeps value or lease found no key to keep them from, or an operation of a transaction is empty.
    #[error("etcdserver: key not found")]
    KeyNotFound,
    /// A put that keeps the value carries one.
    #[error("etcdserver: value is provided")]
    ValueProvided,
    /// A put that keeps the lease carries one.
    #[error("etcdserver: lease is provided")]
    LeaseProvided,
    /// A transaction has more operations than the member takes.
    #[error("etcdserver: too many operations in txn request")]
    TooManyOperations,
    /// A transaction would write one key twice.
    #[error("etcdserver: duplicate key given in txn request")]
    DuplicateKey,
    /// An order or its target that etcd does not know.
    #[error("etcdserver: invalid sort option")]
    InvalidSortOption,
    /// The revision is below what compaction left.
    #[error("etcdserver: mvcc: required revision has been compacted")]
    Compacted,
    /// The revision has not been reached.
    #[error("etcdserver: mvcc: required revision is a future revision")]
    FutureRevision,
    /// There is no lease of this id.
    #[error("etcdserver: requested lease not found")]
    LeaseNotFound,
    /// There is a lease of this id already.
    #[error("etcdserver: lease already exists")]
    LeaseExists,
    /// A lease may not be granted for so long.
    #[error("etcdserver: too large lease TTL")]
    LeaseTtlTooLarge,
}

impl ApiError {
    /// The code that goes with the text.
    pub fn code(self) -> Code {
        match self {
            Self::EmptyKey
            | Self::KeyNotFound
            | Self::ValueProvided
            | Self::LeaseProvided
            | Self::TooManyOperations
            | Self::DuplicateKey
            | Self::InvalidSortOption => Code::InvalidArgument,
            Self::Compacted | Self::FutureRevision | Self::LeaseTtlTooLarge => Code::OutOfRange,
            Self::LeaseNotFound => Code::NotFound,
            Self::LeaseExists => Code::FailedPrecondition,
        }
    }
}
