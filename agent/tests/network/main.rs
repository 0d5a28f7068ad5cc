//! What somebody on the network may try who answers for a member: to get the password, to be believed, to keep the
//! agent busy for ever. Source: agent/TRUST.md.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod believed;
mod bounded;
mod liar;
mod secrets;

use std::{collections::BTreeMap, time::Duration};

use agent::{observe::Observer, playbook::cluster::Cluster};
use prost::Message;
use proto::etcdserverpb::{Member, MemberListResponse, RangeResponse, ResponseHeader, StatusResponse};

use liar::{Heard, Reply};

/// The cluster that tests are about, and another one.
const CLUSTER: u64 = 0xc;
const ANOTHER: u64 = 0xd;

/// gRPC's codes.
const INVALID_ARGUMENT: u16 = 3;
const FAILED_PRECONDITION: u16 = 9;
const UNIMPLEMENTED: u16 = 12;
const UNAVAILABLE: u16 = 14;
const UNAUTHENTICATED: u16 = 16;

fn cluster(endpoints: &[&str]) -> Cluster {
    Cluster {
        name: "orders".to_owned(),
        endpoints: endpoints.iter().map(|url| (*url).to_owned()).collect(),
        election_timeout: Duration::from_secs(1),
        tls: None,
        auth: None,
        http: BTreeMap::new(),
    }
}

fn observer(endpoints: &[&str]) -> Observer {
    Observer::connect(&cluster(endpoints)).unwrap()
}

fn header(cluster_id: u64, member_id: u64) -> Option<ResponseHeader> {
    Some(ResponseHeader { cluster_id, member_id, revision: 1, raft_term: 2 })
}

fn member(id: u64, urls: &[&str]) -> Member {
    let client_urls = urls.iter().map(|url| (*url).to_owned()).collect();
    Member { id, name: format!("m{id}"), client_urls, ..Default::default() }
}

fn status(cluster: u64, id: u64) -> StatusResponse {
    StatusResponse {
        header: header(cluster, id),
        version: "3.5.30".to_owned(),
        leader: 1,
        raft_term: 2,
        raft_index: 9,
        raft_applied_index: 9,
        ..Default::default()
    }
}

/// A member that is well: who it is, and whom it lists.
fn well(cluster: u64, id: u64, members: Vec<Member>) -> impl Fn(&Heard) -> Reply + Send + Sync + 'static {
    move |heard| match heard.method.as_str() {
        "Maintenance/Status" => Reply::Says(status(cluster, id).encode_to_vec()),
        "Cluster/MemberList" => {
            Reply::Says(MemberListResponse { header: header(cluster, id), members: members.clone() }.encode_to_vec())
        }
        "KV/Range" => Reply::Says(RangeResponse { header: header(cluster, id), ..Default::default() }.encode_to_vec()),
        _ => Reply::Refuses(UNIMPLEMENTED, "no such call"),
    }
}
