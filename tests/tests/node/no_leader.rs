//! A member without a quorum says that it has no leader, as etcd does: to those who ask, and to those who wait.

use proto::etcdserverpb::{
    LeaseGrantRequest, LeaseKeepAliveRequest, PutRequest, RangeRequest, WatchCreateRequest, WatchRequest,
    kv_client::KvClient, lease_client::LeaseClient, watch_client::WatchClient, watch_request::RequestUnion,
};
use rustix::process::Signal;
use tests::{
    client::Client,
    cluster::{Cluster, Spec},
    on_both,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::{StreamExt, once, pending, wrappers::ReceiverStream};
use tonic::{Code, Request, Status};

use crate::QUICK;

on_both! {
    a_leader_that_loses_its_followers_says_so;
    a_follower_that_loses_its_leader_says_so;
}

async fn a_leader_that_loses_its_followers_says_so(system: System) {
    a_lone_member_says_so(system, true).await;
}

async fn a_follower_that_loses_its_leader_says_so(system: System) {
    a_lone_member_says_so(system, false).await;
}

async fn a_lone_member_says_so(system: System, leads: bool) {
    let Some(build) = build_or_skip(system, "3.6") else { return };
    let cluster = Cluster::up(&Spec { flags: QUICK.map(String::from).into(), ..Spec::new(build) }).await.expect("up");
    let layout = &cluster.layout;
    let leader = &layout.leader().await.expect("a leader").name;
    let (lone, others): (Vec<_>, Vec<_>) = {
        let lone = layout.members.iter().find(|member| (member.name == *leader) == leads).expect("three").name.clone();
        layout.members.iter().partition(|member| member.name == lone)
    };
    let client = layout.client(lone[0]).expect("a client");
    let wanting = [watch(&client, true), keep_alive(&client).await];
    let patient = watch(&client, false);
    served(&client).await.expect("there is a leader");

    for member in &others {
        member.end(Signal::KILL).expect("killed");
    }
    wait::until("it to have no leader", GENEROUS, || async {
        let status = client.status().await.map_err(|status| status.to_string())?;
        let has_leader = client.metric("etcd_server_has_leader").await.map_err(|error| error.to_string())?;
        if status.leader == 0 && has_leader == 0.0 { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await
    .expect("it says so");
    let status = client.status().await.expect("answered");
    assert_eq!(status.errors, ["etcdserver: no leader"], "{status:?}");
    is_no_leader(&served(&client).await.expect_err("refused"));
    let health = reqwest::get(format!("{}/health", lone[0].client_url)).await.expect("answered");
    assert_eq!(health.status(), 503);
    let text = health.text().await.expect("a body");
    assert!(text.contains("RAFT NO LEADER"), "{text}");
    for stream in wanting {
        is_no_leader(&stream.await.expect("no panic"));
    }
    assert!(!patient.is_finished(), "who does not ask for a leader waits");

    for member in &others {
        member.start().expect("started");
    }
    cluster.ready().await.expect("they are back");
    served(&client).await.expect("there is a leader again");
    let status = client.status().await.expect("answered");
    assert!(status.leader != 0 && status.errors.is_empty(), "{status:?}");
    assert!(!patient.is_finished(), "it goes on");
    patient.abort();
}

#[track_caller]
fn is_no_leader(status: &Status) {
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "etcdserver: no leader"));
}

fn wanting_leader<T>(request: T) -> Request<T> {
    let mut request = Request::new(request);
    request.metadata_mut().insert("hasleader", "true".parse().expect("plain"));
    request
}

/// A write and a read that want a leader.
async fn served(client: &Client) -> Result<(), Status> {
    let mut kv = KvClient::new(client.channel());
    kv.put(wanting_leader(PutRequest { key: "wants".into(), ..PutRequest::default() })).await?;
    kv.range(wanting_leader(RangeRequest { key: "wants".into(), ..RangeRequest::default() })).await?;
    Ok(())
}

/// A watch, with the status that it ends with.
fn watch(client: &Client, wants_leader: bool) -> JoinHandle<Status> {
    let create = WatchCreateRequest { key: "watched".into(), ..WatchCreateRequest::default() };
    let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let requests = once(request).chain(pending());
    let mut client = WatchClient::new(client.channel());
    tokio::spawn(async move {
        let request = if wants_leader { wanting_leader(requests) } else { Request::new(requests) };
        let mut answers = match client.watch(request).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return status,
        };
        loop {
            match answers.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Status::ok("it ended"),
                Err(status) => return status,
            }
        }
    })
}

/// A lease of a stream that wants a leader, with the status that it ends with.
async fn keep_alive(client: &Client) -> JoinHandle<Status> {
    let mut client = LeaseClient::new(client.channel());
    client.lease_grant(LeaseGrantRequest { ttl: 600, id: 1 }).await.expect("granted");
    let (requests, receiver) = mpsc::channel(1);
    requests.send(LeaseKeepAliveRequest { id: 1 }).await.expect("there is room");
    let mut answers =
        client.lease_keep_alive(wanting_leader(ReceiverStream::new(receiver))).await.expect("alive").into_inner();
    answers.message().await.expect("answered").expect("an answer");
    tokio::spawn(async move {
        let ended = answers.message().await;
        drop(requests);
        ended.err().unwrap_or_else(|| Status::ok("it ended"))
    })
}
