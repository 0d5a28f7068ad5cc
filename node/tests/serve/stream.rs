//! A watch stream: what is asked on it, and what it says.

use std::collections::BTreeMap;

use proto::{
    etcdserverpb::{
        WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
        watch_client::WatchClient, watch_request::RequestUnion,
    },
    mvccpb::Event,
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming, transport::Channel};

use crate::real::PATIENCE;

/// An open stream.
pub struct Stream {
    requests: Option<mpsc::Sender<WatchRequest>>,
    /// etcd answers nothing, headers neither, before it was asked something.
    opening: Option<JoinHandle<Result<Streaming<WatchResponse>, Status>>>,
    responses: Option<Streaming<WatchResponse>>,
}

/// A watch of a range from a revision on.
pub fn watch(key: &str, range_end: &str, start_revision: i64) -> WatchCreateRequest {
    WatchCreateRequest { key: key.into(), range_end: range_end.into(), start_revision, ..WatchCreateRequest::default() }
}

impl Stream {
    /// Opens a stream.
    pub fn open(channel: &Channel) -> Self {
        Self::open_with(channel, &[])
    }

    /// Opens a stream with metadata.
    pub fn open_with(channel: &Channel, metadata: &[(&'static str, &str)]) -> Self {
        let (requests, receiver) = mpsc::channel(100);
        let mut request = Request::new(ReceiverStream::new(receiver));
        for (key, value) in metadata {
            request.metadata_mut().append(*key, value.parse().unwrap());
        }
        let mut client = WatchClient::new(channel.clone()).max_decoding_message_size(usize::MAX);
        let opening = tokio::spawn(async move { Ok(client.watch(request).await?.into_inner()) });
        Self { requests: Some(requests), opening: Some(opening), responses: None }
    }

    async fn ask(&self, request: RequestUnion) {
        let requests = self.requests.as_ref().expect("it was said that there is no more to say");
        requests.send(WatchRequest { request_union: Some(request) }).await.unwrap();
    }

    /// Asks for a watch.
    pub async fn create(&self, request: WatchCreateRequest) {
        self.ask(RequestUnion::CreateRequest(request)).await;
    }

    /// Asks for a watch, and waits until it is there.
    pub async fn created(&mut self, request: WatchCreateRequest) -> WatchResponse {
        self.create(request).await;
        let response = self.next().await;
        assert!(response.created && !response.canceled, "{response:?}");
        response
    }

    /// Ends a watch.
    pub async fn cancel(&self, watch_id: i64) {
        self.ask(RequestUnion::CancelRequest(WatchCancelRequest { watch_id })).await;
    }

    /// Asks how far all are.
    pub async fn ask_progress(&self) {
        self.ask(RequestUnion::ProgressRequest(WatchProgressRequest {})).await;
    }

    /// Closes this side of the stream.
    pub fn say_no_more(&mut self) {
        self.requests = None;
    }

    /// The next response; there must be one.
    pub async fn next(&mut self) -> WatchResponse {
        self.message().await.unwrap().expect("the stream has ended")
    }

    /// The next response, or how the stream ended.
    pub async fn message(&mut self) -> Result<Option<WatchResponse>, Status> {
        timeout(PATIENCE, self.wait()).await.expect("the stream says nothing")
    }

    async fn wait(&mut self) -> Result<Option<WatchResponse>, Status> {
        if let Some(opening) = &mut self.opening {
            let opened = opening.await.unwrap();
            self.opening = None;
            self.responses = Some(opened?);
        }
        self.responses.as_mut().unwrap().message().await
    }

    /// The next so many events, of one watch, however they are put together.
    pub async fn events(&mut self, count: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while events.len() < count {
            let response = self.next().await;
            assert!(!response.events.is_empty(), "{response:?}");
            events.extend(response.events);
        }
        assert_eq!(events.len(), count);
        events
    }

    /// What each watch is told, in words, until so many things are said.
    pub async fn told(&mut self, count: usize) -> BTreeMap<i64, Vec<String>> {
        let mut told: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        while told.values().map(Vec::len).sum::<usize>() < count {
            let response = self.next().await;
            let words = told.entry(response.watch_id).or_default();
            if response.created {
                words.push("created".into());
            }
            words.extend(response.events.iter().map(|event| format!("{event:?}")));
            if response.canceled {
                words.push(format!("canceled, {}: {}", response.compact_revision, response.cancel_reason));
            }
            if response.watch_id == -1 && !response.created {
                words.push(format!("all at {}", response.header.unwrap().revision));
            }
        }
        told
    }
}
