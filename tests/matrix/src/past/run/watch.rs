//! A watch of everything through one member, judged as it is told: every revision, each once, in order.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lab::client::{Access, Client};
use proto::etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse, watch_client::WatchClient, watch_request};
use tokio::{sync::mpsc, task::AbortHandle};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// For so long a member may take to create it; one that is starting may never answer.
const CREATED: Duration = Duration::from_secs(5);
/// Before the member is asked again.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    task: Option<AbortHandle>,
}

#[derive(Debug, Default)]
struct Seen {
    last: i64,
    /// The first thing that was wrong.
    fault: Option<String>,
}

impl Watch {
    /// Of all that comes after this revision.
    pub(super) fn after(last: i64) -> Self {
        Self { seen: Arc::new(Mutex::new(Seen { last, fault: None })), task: None }
    }

    /// Goes on through this member, each time with the rights that clients have then.
    pub(super) fn follow(&mut self, url: String, access: Arc<Mutex<Access>>) {
        self.pause();
        let seen = Arc::clone(&self.seen);
        let task = tokio::spawn(async move {
            // A client of its own each time: that its token is no longer known a watch is not told as other calls are.
            loop {
                let now = locked(&access).clone();
                let Ok(client) = Client::new(&url, &now) else { return };
                // Why a stream ended does not matter: the next one goes on.
                let _ = follow(&client, &seen).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        self.task = Some(task.abort_handle());
    }

    /// Reads no more, until it is to go on.
    pub(super) fn pause(&mut self) {
        self.task.take().into_iter().for_each(|task| task.abort());
    }

    /// The last revision that it was told, or what was wrong.
    pub(super) fn last(&self) -> Result<i64, String> {
        let seen = locked(&self.seen);
        seen.fault.clone().map_or(Ok(seen.last), Err)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.pause();
    }
}

impl Seen {
    /// Nothing but a compaction may leave a gap, and the events of one revision come in one answer.
    fn take(&mut self, answer: &WatchResponse) {
        let before = self.last;
        for event in &answer.events {
            let kv = event.kv.clone().unwrap_or_default();
            let is_due = kv.mod_revision == self.last + 1 || kv.mod_revision == self.last && self.last > before;
            if !is_due && self.fault.is_none() {
                let key = String::from_utf8_lossy(&kv.key).into_owned();
                self.fault = Some(format!("told revision {} of {key} after {}", kv.mod_revision, self.last));
            }
            self.last = self.last.max(kv.mod_revision);
        }
        if answer.canceled {
            self.last = self.last.max(answer.compact_revision);
        }
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn follow(client: &Client, seen: &Mutex<Seen>) -> Result<(), Status> {
    let late = |_| Status::deadline_exceeded("no watch was created");
    let next = locked(seen).last + 1;
    let (send, mut stream) = tokio::time::timeout(CREATED, open(client, next)).await.map_err(late)??;
    // The first answer says that it is created. What comes later may let one wait: nothing else tells an event that is lost.
    let mut answer = tokio::time::timeout(CREATED, stream.message()).await.map_err(late)??;
    while let Some(told) = answer {
        locked(seen).take(&told);
        if told.canceled {
            break;
        }
        answer = stream.message().await?;
    }
    // Kept open for as long as the stream is read.
    drop(send);
    Ok(())
}

async fn open(
    client: &Client,
    start_revision: i64,
) -> Result<(mpsc::Sender<WatchRequest>, Streaming<WatchResponse>), Status> {
    let all = vec![0];
    let create =
        WatchCreateRequest { key: all.clone(), range_end: all, start_revision, ..WatchCreateRequest::default() };
    let request = WatchRequest { request_union: Some(watch_request::RequestUnion::CreateRequest(create)) };
    let (send, requests) = mpsc::channel(1);
    send.send(request).await.map_err(|_| Status::cancelled("nobody reads"))?;
    let request = client.request(ReceiverStream::new(requests)).await?;
    let mut watch = WatchClient::new(client.channel()).max_decoding_message_size(usize::MAX);
    Ok((send, client.outcome(watch.watch(request).await).await?))
}

#[cfg(test)]
mod tests {
    use proto::mvccpb::{Event, KeyValue};

    use super::*;

    fn told(last: i64, answers: &[&[i64]]) -> Result<i64, String> {
        let watch = Watch::after(last);
        for revisions in answers {
            let event = |revision: &i64| Event {
                kv: Some(KeyValue { mod_revision: *revision, ..KeyValue::default() }),
                ..Event::default()
            };
            let events = revisions.iter().map(event).collect();
            locked(&watch.seen).take(&WatchResponse { events, ..WatchResponse::default() });
        }
        watch.last()
    }

    #[test]
    fn every_revision_comes_once_and_in_order() {
        for (answers, expected) in [
            (&[&[5, 5, 6][..], &[7]][..], Ok(7)),
            (&[&[5], &[5]], Err("told revision 5 of  after 5")),
            (&[&[4]], Err("told revision 4 of  after 4")),
            (&[&[5, 7]], Err("told revision 7 of  after 5")),
            (&[&[5, 6], &[8]], Err("told revision 8 of  after 6")),
        ] {
            assert_eq!(told(4, answers), expected.map_err(String::from), "{answers:?}");
        }
    }

    #[test]
    fn a_compaction_may_leave_a_gap() {
        let watch = Watch::after(4);
        let gone = WatchResponse { canceled: true, compact_revision: 9, ..WatchResponse::default() };
        locked(&watch.seen).take(&gone);
        assert_eq!(watch.last(), Ok(9));
    }
}
