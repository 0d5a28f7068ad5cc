//! What an entry of etcd's log asks for: nothing, something of the v3 API, or something of the v2 API.
//!
//! Up to 3.5 members write themselves and the cluster version by the v2 API. 3.6 takes that over, and panics on everything else of it:
//! on users' writes, and on the reads by which a 3.5 with `--enable-v2` answers `/health`. 3.7 cannot read any of it. Source: etcd v3.6.14,
//! `server/etcdserver/server.go` (`applyEntryNormal`) and `apply_v2.go`; `raftpb.Entry`, `etcdserverpb.Request`.

use prost::Message;

/// What an entry is to a newer etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// Nothing, a change of members, or something that every release knows.
    Nothing,
    /// What members up to 3.5 say of themselves and of the cluster version.
    OfTheCluster,
    /// Anything else by the v2 API.
    OfUsers,
}

/// `raftpb.Entry`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    /// 0 is a request; others change members.
    #[prost(int32, optional, tag = "1")]
    pub(super) kind: Option<i32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) term: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) index: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(super) data: Option<Vec<u8>>,
}

/// `etcdserverpb.InternalRaftRequest`, of which all but one field is of v3.
#[derive(Clone, PartialEq, Message)]
struct OfV3 {
    #[prost(message, optional, tag = "2")]
    v2: Option<OfV2>,
}

/// `etcdserverpb.Request`. Go does not ask whether a text is UTF-8.
#[derive(Clone, PartialEq, Message)]
struct OfV2 {
    #[prost(bytes = "vec", optional, tag = "2")]
    method: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    path: Option<Vec<u8>>,
}

impl Entry {
    /// `None` where no etcd would understand it.
    pub(super) fn asks(&self) -> Option<Asks> {
        let data = self.data.as_deref().unwrap_or_default();
        if self.kind.unwrap_or_default() != 0 || data.is_empty() {
            return Some(Asks::Nothing);
        }
        // A bare request of v2 is none of v3: its method, where that has a message, is no message.
        match OfV3::decode(data) {
            Ok(OfV3 { v2: None }) => Some(Asks::Nothing),
            Ok(OfV3 { v2: Some(request) }) => Some(request.asks()),
            Err(_) => OfV2::decode(data).ok().map(|request| request.asks()),
        }
    }
}

impl OfV2 {
    fn asks(&self) -> Asks {
        let path = self.path.as_deref().unwrap_or_default();
        let is_put = self.method.as_deref() == Some(b"PUT");
        match is_put && (path == b"/0/version" || is_of_a_member(path)) {
            true => Asks::OfTheCluster,
            false => Asks::OfUsers,
        }
    }
}

/// `storeMemberAttributeRegexp`: `/0/members/` and 16 hexadecimal digits, then `/attributes`.
fn is_of_a_member(path: &[u8]) -> bool {
    let id = path.strip_prefix(b"/0/members/").and_then(|rest| rest.strip_suffix(b"/attributes"));
    id.is_some_and(|id| !id.is_empty() && id.len() <= 16 && id.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(data: Vec<u8>) -> Entry {
        Entry { data: Some(data), ..Entry::default() }
    }

    fn request(method: &str, path: &str) -> OfV2 {
        OfV2 { method: Some(method.into()), path: Some(path.into()) }
    }

    #[test]
    fn what_members_wrote_of_themselves_is_told_from_what_users_wrote() {
        for (method, path, asks) in [
            ("PUT", "/0/version", Asks::OfTheCluster),
            ("PUT", "/0/members/bdae9bbc11dd390d/attributes", Asks::OfTheCluster),
            ("PUT", "/0/members/1/attributes", Asks::OfTheCluster),
            ("PUT", "/0/members/bdae9bbc11dd390d/raftAttributes", Asks::OfUsers),
            ("PUT", "/0/members//attributes", Asks::OfUsers),
            ("PUT", "/0/members/1/2/attributes", Asks::OfUsers),
            ("PUT", "/1/0/version", Asks::OfUsers),
            ("PUT", "/2/users/root", Asks::OfUsers),
            ("DELETE", "/0/version", Asks::OfUsers),
            ("POST", "/1/queue", Asks::OfUsers),
            ("QGET", "", Asks::OfUsers),
            ("SYNC", "", Asks::OfUsers),
            ("", "", Asks::OfUsers),
        ] {
            let bare = request(method, path).encode_to_vec();
            assert_eq!(entry(bare).asks(), Some(asks), "{method} {path}");
            let within = OfV3 { v2: Some(request(method, path)) }.encode_to_vec();
            assert_eq!(entry(within).asks(), Some(asks), "{method} {path} within a request of v3");
        }
        let put = b"\x22\x06\n\x01k\x12\x01v\xa2\x06\n\x08\x86\xe8\xec\xf2\xec\xc4\xe8\x869".to_vec();
        // As a user of v3 may write it as a value.
        let lookalike =
            [b"\x22\x1d\n\x01k\x12\x18".to_vec(), request("PUT", "/1/old").encode_to_vec(), vec![0; 11]].concat();
        for (data, kind) in [(vec![], 0), (put, 0), (lookalike, 0), (b"\xff".to_vec(), 1)] {
            let entry = Entry { kind: Some(kind), ..entry(data) };
            assert_eq!(entry.asks(), Some(Asks::Nothing), "{entry:?}");
        }
        assert_eq!(entry(b"\xff\xff".to_vec()).asks(), None);
    }
}
