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
    /// There is no room, or too much is asked at once.
    ResourceExhausted = 8,
    /// The state does not allow it.
    FailedPrecondition = 9,
    /// A revision or a number is outside what there is.
    OutOfRange = 11,
    /// It may go better later, or elsewhere.
    Unavailable = 14,
    DataLoss = 15,
}

/// A request that was refused, or whose outcome was not heard: one that timed out may have been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ApiError {
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
    /// The request is larger than what may stand in the log.
    #[error("etcdserver: request is too large")]
    RequestTooLarge,
    /// The keys that a transaction reads are more than there are: it names some of them again and again.
    #[error("etcdserver: the transaction was performed, and its answer would be larger than all that is stored")]
    AnswerTooLarge,
    #[error("etcdserver: too many requests")]
    TooManyRequests,
    /// The state is as large as it may be, or was so and the alarm still stands.
    #[error("etcdserver: mvcc: database space exceeded")]
    NoSpace,
    /// Members hold different data.
    #[error("etcdserver: corrupt cluster")]
    Corrupt,
    /// Not etcd's: what is added to must be a decimal number.
    #[error("etcdserver: the key holds no decimal number that could be added to")]
    NoCounter,
    #[error("etcdserver: the sum is no number of 64 bits")]
    CounterTooLarge,
    #[error("etcdserver: no leader")]
    NoLeader,
    /// This member does not lead, and the request is for the one that does.
    #[error("etcdserver: not leader")]
    NotLeader,
    /// Another member leads now.
    #[error("etcdserver: leader changed")]
    LeaderChanged,
    /// This member is on its way out.
    #[error("etcdserver: server stopped")]
    Stopped,
    /// There was no answer in time.
    #[error("etcdserver: request timed out")]
    Timeout,
    /// There was no answer in time, and the leader went meanwhile.
    #[error("etcdserver: request timed out, possibly due to previous leader failure")]
    TimeoutLeaderFail,
    /// There was no answer in time, and the connection to the leader was lost.
    #[error("etcdserver: request timed out, possibly due to connection lost")]
    TimeoutConnectionLost,
    /// What was committed when the request came was not applied in time.
    #[error("etcdserver: request timed out, waiting for the applied index took too long")]
    TimeoutWaitAppliedIndex,
    /// A learner does not serve this.
    #[error("etcdserver: rpc not supported for learner")]
    NotSupportedForLearner,
    /// Leadership cannot be handed to this one.
    #[error("etcdserver: bad leader transferee")]
    BadLeaderTransferee,
    /// There is no member of this id.
    #[error("etcdserver: member not found")]
    MemberNotFound,
    /// What is to be a member's peer URLs is none.
    #[error("etcdserver: given member URLs are invalid")]
    BadMemberUrls,
    /// Another member is reached there.
    #[error("etcdserver: Peer URLs already exists")]
    PeerUrlExists,
    #[error("etcdserver: member ID already exist")]
    MemberExists,
    /// Too few voters have ever started for what is asked.
    #[error("etcdserver: re-configuration failed due to not enough started members")]
    NotEnoughStarted,
    /// Too few voters answer for what is asked.
    #[error("etcdserver: unhealthy cluster")]
    Unhealthy,
    #[error("etcdserver: too many learner members in cluster")]
    TooManyLearners,
    #[error("etcdserver: can only promote a learner member")]
    NotALearner,
    /// It has not started, is behind, or has not said yet which features it wants.
    #[error("etcdserver: can only promote a learner member which is in sync with leader")]
    LearnerNotReady,
    /// A feature is on that it does not know or does not want (KEP-4647, "Learner").
    #[error("etcdserver: the learner's --cluster-feature-gates would turn off a feature that is on")]
    LearnerTurnsOff,
    /// What a downgrade is to lead to is no version.
    #[error("etcdserver: wrong downgrade target version format")]
    WrongDowngradeTarget,
    /// A downgrade leads one minor down, to one that there is a release of.
    #[error("etcdserver: invalid downgrade target version")]
    InvalidDowngradeTarget,
    /// The cluster has no version yet that could be lowered.
    #[error("etcdserver: cluster version not found during downgrade")]
    ClusterVersionUnavailable,
    #[error("etcdserver: cluster has a downgrade job in progress")]
    DowngradeInProcess,
    /// None is under way.
    #[error("etcdserver: no inflight downgrade job")]
    NoInflightDowngrade,
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
            | Self::InvalidSortOption
            | Self::RequestTooLarge
            | Self::BadMemberUrls
            | Self::WrongDowngradeTarget
            | Self::InvalidDowngradeTarget => Code::InvalidArgument,
            Self::Compacted | Self::FutureRevision | Self::LeaseTtlTooLarge | Self::CounterTooLarge => Code::OutOfRange,
            Self::LeaseNotFound | Self::MemberNotFound => Code::NotFound,
            Self::MemberExists
            | Self::NotEnoughStarted
            | Self::TooManyLearners
            | Self::NotALearner
            | Self::LearnerNotReady
            | Self::LearnerTurnsOff
            | Self::LeaseExists
            | Self::NotLeader
            | Self::NotSupportedForLearner
            | Self::BadLeaderTransferee
            | Self::PeerUrlExists
            | Self::NoCounter
            | Self::ClusterVersionUnavailable
            | Self::DowngradeInProcess
            | Self::NoInflightDowngrade => Code::FailedPrecondition,
            Self::AnswerTooLarge | Self::TooManyRequests | Self::NoSpace => Code::ResourceExhausted,
            Self::NoLeader
            | Self::Unhealthy
            | Self::LeaderChanged
            | Self::Stopped
            | Self::Timeout
            | Self::TimeoutLeaderFail
            | Self::TimeoutConnectionLost
            | Self::TimeoutWaitAppliedIndex => Code::Unavailable,
            Self::Corrupt => Code::DataLoss,
        }
    }
}
