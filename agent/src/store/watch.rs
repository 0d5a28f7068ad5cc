//! Word that one of the shared keys may have changed.
//!
//! A watch brings it at once; where none can be had it comes by the clock. It is a hint to look, never a fact: what
//! changed is read from the store.

use std::{future::Future, sync::Arc, time::Duration};

use proto::etcdserverpb::{WatchCreateRequest, WatchRequest, watch_client::WatchClient, watch_request::RequestUnion};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::{Request, Status, metadata::MetadataValue};

use super::{Store, endpoint::Endpoints, range_of};
use crate::{
    keys::PREFIX,
    observe::{access::CALL, error::CallError},
};

/// How often word is given while there is no watch.
const WITHOUT_WATCH: Duration = Duration::from_millis(500);
/// How long the next answer of a watch is not read: one that never ends takes no processor.
const ANSWER_GAP: Duration = Duration::from_millis(10);
/// How long a watch may be silent before word is given all the same: its member may be frozen. Who waits looks by the clock, too.
const SILENCE: Duration = Duration::from_secs(10);

/// Waits for changes. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watch {
    word: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Begins to watch; must be called inside a tokio runtime.
    pub fn of(store: &Store) -> Self {
        let word = Arc::new(Notify::new());
        let endpoints =
            Endpoints::new(Arc::clone(store.endpoints().access()), Arc::clone(store.endpoints().excluded()));
        let task = tokio::spawn(follow(endpoints, Arc::clone(&word)));
        Self { word, task }
    }

    /// Waits until something may have changed since the last time this returned.
    pub async fn changed(&self) {
        self.word.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches through one member after the other, for ever.
async fn follow(endpoints: Endpoints, word: Arc<Notify>) {
    loop {
        let failure = match ticking(&word, endpoints.find(CALL)).await {
            Ok(address) => {
                let failure = watch(&endpoints, &address, &word).await;
                endpoints.distrust(&address);
                failure
            }
            Err(error) => error,
        };
        tracing::debug!(error = %failure, "no watch");
        ticking(&word, sleep(WITHOUT_WATCH)).await;
        word.notify_one();
    }
}

/// Gives word by the clock until this is over.
async fn ticking<T>(word: &Notify, until: impl Future<Output = T>) -> T {
    tokio::pin!(until);
    loop {
        match timeout(WITHOUT_WATCH, &mut until).await {
            Ok(done) => return done,
            Err(_) => word.notify_one(),
        }
    }
}

/// One watch, until it ends. What happened before it began is covered by the word at its creation.
async fn watch(endpoints: &Endpoints, address: &str, word: &Notify) -> CallError {
    let watch = async {
        let (requests, stream) = mpsc::channel(1);
        let created = WatchRequest { request_union: Some(RequestUnion::CreateRequest(range())) };
        // The receiver is ours: there is room for one.
        let _ = requests.send(created).await;
        let mut request = Request::new(ReceiverStream::new(stream));
        // A member that loses its leader ends the watch instead of being silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let (line, token) = endpoints.access().entry(address).await?;
        if let Some(token) = token {
            request.metadata_mut().insert("token", token);
        }
        let answers = timeout(CALL, WatchClient::new(line.channel.clone()).watch(request)).await;
        Ok::<_, CallError>((requests, answers.map_err(|_| CallError::TimedOut(CALL))??.into_inner()))
    };
    let (_open, mut answers) = match watch.await {
        Ok(open) => open,
        Err(error) => return error,
    };
    loop {
        let answer = tokio::select! {
            answer = timeout(SILENCE, answers.next()) => answer,
            () = endpoints.forbids(address) => return CallError::Unusable(format!("{address} is going down")),
        };
        match answer {
            Ok(Some(Ok(answer))) => {
                if let Some(cluster) = endpoints.access().directory().foreign(answer.header.as_ref()) {
                    return CallError::Foreign(cluster);
                }
                if answer.canceled {
                    return CallError::Said(Status::cancelled(answer.cancel_reason));
                }
                word.notify_one();
                sleep(ANSWER_GAP).await;
            }
            Err(_) => word.notify_one(),
            Ok(Some(Err(status))) => return status.into(),
            Ok(None) => return CallError::Unusable("the watch ended".to_owned()),
        }
    }
}

fn range() -> WatchCreateRequest {
    let (key, range_end) = range_of(PREFIX);
    WatchCreateRequest { key, range_end, ..Default::default() }
}
