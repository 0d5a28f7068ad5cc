//! What a real etcd of one member answers.

use std::path::PathBuf;

use proto::{
    etcdserverpb::{
        HashKvRequest, HashKvResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, ResponseHeader,
        WatchCreateRequest, WatchRequest, kv_client::KvClient, lease_client::LeaseClient,
        maintenance_client::MaintenanceClient, watch_client::WatchClient, watch_request::RequestUnion,
    },
    mvccpb::Event,
};
use tonic::{Request, Status, transport::Channel};

use crate::{
    answer::Answer,
    random::Step,
    real::{self, PATIENCE},
};

/// Where etcd is, or `None` once it was said why it is not.
pub fn folder() -> Option<PathBuf> {
    real::folder("3_6")
}

/// A running member; dropped, it is killed.
pub struct Etcd {
    _running: real::Etcd,
    channel: Channel,
}

impl Etcd {
    /// Starts a member with nothing in it and waits until it answers.
    pub async fn start(folder: &std::path::Path) -> Self {
        let running = real::Etcd::start(folder, &[]).await;
        Self { channel: running.channel.clone(), _running: running }
    }

    /// What etcd answers; of the header only the revision.
    pub async fn answer(&mut self, step: Step) -> Result<Answer, Status> {
        let mut kv = KvClient::new(self.channel.clone());
        let mut lease = LeaseClient::new(self.channel.clone());
        let mut answer = match step {
            Step::Put(request) => Answer::Put(kv.put(request).await?.into_inner()),
            Step::Delete(request) => Answer::Delete(kv.delete_range(request).await?.into_inner()),
            Step::Range(request) => Answer::Range(kv.range(request).await?.into_inner()),
            Step::Txn(request) => Answer::Txn(kv.txn(request).await?.into_inner()),
            Step::Compact(request) => Answer::Compact(kv.compact(request).await?.into_inner()),
            Step::Grant(request) => Answer::Grant(lease.lease_grant(request).await?.into_inner()),
            Step::Revoke(request) => Answer::Revoke(lease.lease_revoke(request).await?.into_inner()),
        };
        strip(match &mut answer {
            Answer::Put(response) => &mut response.header,
            Answer::Delete(response) => &mut response.header,
            Answer::Range(response) => &mut response.header,
            Answer::Txn(response) => &mut response.header,
            Answer::Compact(response) => &mut response.header,
            Answer::Grant(response) => &mut response.header,
            Answer::Revoke(response) => &mut response.header,
        });
        Ok(answer)
    }

    /// The hash at a revision.
    pub async fn hash(&self, revision: i64) -> Result<HashKvResponse, Status> {
        let mut client = MaintenanceClient::new(self.channel.clone());
        let mut response = client.hash_kv(HashKvRequest { revision }).await?.into_inner();
        strip(&mut response.header);
        Ok(response)
    }

    /// What a lease was granted for and holds.
    pub async fn time_to_live(&self, id: i64) -> LeaseTimeToLiveResponse {
        let mut client = LeaseClient::new(self.channel.clone());
        let mut response =
            client.lease_time_to_live(LeaseTimeToLiveRequest { id, keys: true }).await.unwrap().into_inner();
        strip(&mut response.header);
        response.keys.sort();
        response
    }

    /// What a watch of all keys with `prev_kv` is told from `start` up to `newest`.
    pub async fn events(&self, start: i64, newest: i64) -> Vec<Event> {
        let create = WatchCreateRequest {
            key: vec![0],
            range_end: vec![0],
            start_revision: start,
            prev_kv: true,
            ..WatchCreateRequest::default()
        };
        let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        let (sender, requests) = tokio::sync::mpsc::channel(1);
        sender.send(create).await.unwrap();
        let mut client = WatchClient::new(self.channel.clone());
        let mut requests = Request::new(tokio_stream::wrappers::ReceiverStream::new(requests));
        requests.set_timeout(PATIENCE);
        let mut responses = client.watch(requests).await.unwrap().into_inner();
        let mut events = Vec::new();
        let seen = |events: &[Event]| events.last().and_then(|event| event.kv.as_ref()).map_or(0, |kv| kv.mod_revision);
        while seen(&events) < newest {
            let response = responses.message().await.unwrap().unwrap();
            assert!(!response.canceled, "{response:?}");
            events.extend(response.events);
        }
        events
    }
}

fn strip(header: &mut Option<ResponseHeader>) {
    *header = header.take().map(|header| ResponseHeader { revision: header.revision, ..ResponseHeader::default() });
}
