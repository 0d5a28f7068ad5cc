//! Answers that say whose they are: each carries a header with the member and the cluster that it comes from.

use proto::{
    batonpb::ListResponse,
    etcdserverpb::{
        AuthUserGetResponse, DowngradeResponse, FeatureGateStatusResponse, HashKvResponse, LeaseGrantResponse,
        LeaseKeepAliveResponse, LeaseRevokeResponse, LeaseTimeToLiveResponse, MemberAddResponse, MemberListResponse,
        MemberPromoteResponse, MemberRemoveResponse, MoveLeaderResponse, RangeResponse, ResponseHeader, StatusResponse,
        TxnResponse,
    },
};

pub trait Answered {
    /// Who says so; etcd leaves it out of some answers.
    fn header(&self) -> Option<&ResponseHeader>;
}

macro_rules! answered {
    ($($answer:ty),* $(,)?) => {
        $(impl Answered for $answer {
            fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }
        })*
    };
}

answered!(
    AuthUserGetResponse,
    DowngradeResponse,
    FeatureGateStatusResponse,
    HashKvResponse,
    LeaseGrantResponse,
    LeaseKeepAliveResponse,
    LeaseRevokeResponse,
    LeaseTimeToLiveResponse,
    ListResponse,
    MemberAddResponse,
    MemberListResponse,
    MemberPromoteResponse,
    MemberRemoveResponse,
    MoveLeaderResponse,
    RangeResponse,
    StatusResponse,
    TxnResponse,
);
