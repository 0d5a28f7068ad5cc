//! etcd's `Watch`: any number of watches over one stream.
//!
//! A stream is one task. It asks the store what is new for a watch when it is told that something is, and takes no more from it
//! than the client takes from the stream. Source: etcd, server/etcdserver/api/v3rpc/watch.go.

mod counts;
mod fragment;
mod hub;
mod index;
mod session;
mod watcher;

use proto::etcdserverpb::{WatchRequest, WatchResponse, watch_server::Watch};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{admission::wants_leader, context::ServiceContext};
use crate::api_error::ApiError;
use session::Session;

pub(super) use hub::Hub;

/// How many responses wait for a slow client.
const AHEAD: usize = 4;

#[async_trait]
impl Watch for ServiceContext {
    type WatchStream = ReceiverStream<Result<WatchResponse, Status>>;

    async fn watch(&self, request: Request<Streaming<WatchRequest>>) -> Result<Response<Self::WatchStream>, Status> {
        let wants_leader = wants_leader(request.metadata());
        self.admit(request.metadata()).await?;
        let (sender, responses) = mpsc::channel(AHEAD);
        tokio::spawn(stream(self.clone(), request.into_inner(), sender, wants_leader));
        Ok(Response::new(ReceiverStream::new(responses)))
    }
}

async fn stream(
    context: ServiceContext,
    requests: Streaming<WatchRequest>,
    responses: mpsc::Sender<Result<WatchResponse, Status>>,
    wants_leader: bool,
) {
    let session = Session::new(context.clone(), responses.clone());
    let end = tokio::select! {
        Err(end) = session.run(requests) => end,
        () = context.stopping.cancelled() => ApiError::Stopped.into(),
        () = context.leader_lost(wants_leader) => ApiError::NoLeader.into(),
        () = responses.closed() => return,
    };
    // The client may have gone.
    let _ = responses.send(Err(end)).await;
}
