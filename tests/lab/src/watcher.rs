//! A watch that is never given up: whatever ends it, it goes on through the next member, from the revision after the
//! last that it was told.
//!
//! It watches keys of which nothing but single puts is made. Where no other key is written meanwhile, every revision is one
//! event, and any gap, repetition or disorder shows in the numbers alone. Where others are, a gap shows by a write that was
//! acknowledged and not told.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use proto::{
    Revision,
    etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse, watch_client::WatchClient, watch_request},
    mvccpb::Event,
};
use tokio::{sync::mpsc, task::AbortHandle, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::{
    Error,
    client::{Access, Client},
    wait,
    workload::Acked,
};

/// Under load a member that tells nothing for so long is stuck, and a client goes elsewhere.
const PATIENCE: Duration = Duration::from_secs(1);
/// Before the next member is tried.
const PAUSE: Duration = Duration::from_millis(5);

/// A watch at work; it ends with the value.
#[derive(Debug)]
pub struct Watcher {
    seen: Arc<Mutex<Seen>>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Seen {
    /// Before this nothing was watched.
    first: Revision,
    /// Whether no other keys are written.
    is_alone: bool,
    /// The key and the value of each event, by its revision.
    events: BTreeMap<i64, (String, String)>,
    /// The first thing that was wrong.
    fault: Option<String>,
    /// How often it went on elsewhere.
    streams: usize,
}

impl Seen {
    /// The first revision that it was not yet told of.
    fn next(&self) -> Revision {
        self.events.last_key_value().map_or(self.first, |(newest, _)| Revision(newest + 1))
    }

    fn take(&mut self, event: Event, through: &str) {
        let kv = event.kv.unwrap_or_default();
        let due = self.next().0;
        let is_due = if self.is_alone { kv.mod_revision == due } else { kv.mod_revision >= due };
        if !is_due && self.fault.is_none() {
            self.fault = Some(format!("{through} told revision {} where {due} was due", kv.mod_revision));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.events.insert(kv.mod_revision, (text(&kv.key), text(&kv.value)));
    }
}

impl Watcher {
    /// Begins to watch all keys with this prefix, from this revision on, through one member after the other. No other keys
    /// are written.
    ///
    /// # Errors
    /// An endpoint is no URL.
    pub fn start(endpoints: &[String], access: &Access, prefix: &str, first: Revision) -> Result<Self, Error> {
        Self::begin(endpoints, access, prefix, first, true)
    }

    /// The same where others write other keys.
    ///
    /// # Errors
    /// An endpoint is no URL.
    pub fn start_among_others(
        endpoints: &[String],
        access: &Access,
        prefix: &str,
        first: Revision,
    ) -> Result<Self, Error> {
        Self::begin(endpoints, access, prefix, first, false)
    }

    fn begin(
        endpoints: &[String],
        access: &Access,
        prefix: &str,
        first: Revision,
        is_alone: bool,
    ) -> Result<Self, Error> {
        let members = endpoints.iter().map(|url| Ok((url.clone(), Client::new(url, access)?)));
        let members = members.collect::<Result<Vec<_>, Error>>()?;
        let access = access.clone();
        let seen = Arc::new(Mutex::new(Seen { first, is_alone, events: BTreeMap::new(), fault: None, streams: 0 }));
        let (told, prefix) = (seen.clone(), prefix.to_owned());
        let task = tokio::spawn(async move {
            let mut members = members;
            for turn in (0..members.len()).cycle() {
                let (url, member) = &mut members[turn];
                // Why a stream ended does not matter: the next one goes on.
                let _ = follow(member, url, &prefix, &told).await;
                tokio::time::sleep(PAUSE).await;
                // Of a token that is no longer known a watch is not told as other calls are.
                if access.user.is_some()
                    && let Ok(anew) = Client::new(url, &access)
                {
                    *member = anew;
                }
            }
        });
        Ok(Self { seen, task: task.abort_handle() })
    }

    /// How often it has gone on elsewhere.
    pub fn streams(&self) -> usize {
        locked(&self.seen).streams
    }

    /// Waits until it was told of this revision, and judges all that it was told.
    ///
    /// # Errors
    /// It never was, or there was a gap, a repetition or disorder, or a write that was acknowledged is not among the events.
    pub async fn judge(&self, last: Revision, acked: &[Acked]) -> Result<usize, Error> {
        wait::until(&format!("the watch to come to revision {}", last.0), wait::GENEROUS, || async {
            let seen = locked(&self.seen);
            let is_there = seen.next() > last || seen.fault.is_some();
            is_there.then_some(()).ok_or_else(|| format!("it waits for {}", seen.next().0))
        })
        .await?;
        let seen = locked(&self.seen);
        if let Some(fault) = &seen.fault {
            return Err(fault.clone().into());
        }
        for write in acked.iter().filter(|write| write.revision >= seen.first) {
            let (key, value) = (write.key.clone(), write.value.to_string());
            let told = seen.events.get(&write.revision.0);
            if told != Some(&(key, value)) {
                return Err(format!("no event says {write:?}, but {told:?}").into());
            }
        }
        Ok(seen.events.len())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn follow(member: &Client, url: &str, prefix: &str, seen: &Mutex<Seen>) -> Result<(), Status> {
    let late = |_| Status::deadline_exceeded("the client's patience");
    // Kept open for as long as the stream is read.
    let from = locked(seen).next();
    let (_requests, mut stream) = timeout(PATIENCE, open(member, prefix, from)).await.map_err(late)??;
    locked(seen).streams += 1;
    loop {
        let Some(answer) = timeout(PATIENCE, stream.message()).await.map_err(late)?? else { return Ok(()) };
        let mut seen = locked(seen);
        answer.events.into_iter().for_each(|event| seen.take(event, url));
        if answer.canceled {
            return Ok(());
        }
    }
}

async fn open(
    member: &Client,
    prefix: &str,
    from: Revision,
) -> Result<(mpsc::Sender<WatchRequest>, Streaming<WatchResponse>), Status> {
    let mut range_end = prefix.as_bytes().to_vec();
    // The first key after all that begin so; no prefix used here ends in 0xff.
    range_end.iter_mut().last().into_iter().for_each(|last| *last += 1);
    let key = prefix.into();
    let create = WatchCreateRequest { key, range_end, start_revision: from.0, ..WatchCreateRequest::default() };
    let request = WatchRequest { request_union: Some(watch_request::RequestUnion::CreateRequest(create)) };
    let (send, requests) = mpsc::channel(1);
    let closed = |_| Status::cancelled("nobody reads");
    send.send(request).await.map_err(closed)?;
    let request = member.request(ReceiverStream::new(requests)).await?;
    Ok((send, member.outcome(WatchClient::new(member.channel()).watch(request).await).await?))
}
