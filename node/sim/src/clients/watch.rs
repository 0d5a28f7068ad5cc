//! One watch over everything from the first revision on, at one member after the other: it is told every change once.

use std::time::Duration;

use proto::{
    etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse, watch_request::RequestUnion},
    mvccpb::event::EventType,
};
use simulated_disk::Chance;
use tokio::time::{sleep, timeout};

use super::{
    Client,
    registers::{DELETED, number},
};

pub(super) async fn run(client: Client, mut chance: Chance) {
    let mut next = 1;
    loop {
        follow(&client, &mut next, &mut chance).await;
        sleep(Duration::from_millis(50)).await;
    }
}

async fn follow(client: &Client, next: &mut i64, chance: &mut Chance) -> Option<()> {
    let create = WatchCreateRequest {
        key: b"r/".to_vec(),
        range_end: b"r0".to_vec(),
        start_revision: *next,
        ..Default::default()
    };
    let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    // The stream of requests stays open.
    let requests = futures_util::StreamExt::chain(tokio_stream::iter([request]), tokio_stream::pending());
    let mut watches = client.watches(chance);
    let call = watches.watch(requests);
    let mut answers = timeout(Duration::from_secs(3), call).await.ok()?.ok()?.into_inner();
    // Elsewhere after a while: whoever hears nothing does not know whether there is nothing.
    let patience = Duration::from_millis(1000 + chance.below(8000) as u64);
    while let Some(answer) = timeout(patience, answers.message()).await.ok()?.ok()? {
        if answer.compact_revision > 0 {
            let mut seen = client.seen.lock().unwrap();
            seen.gone.push(*next..answer.compact_revision);
            *next = (*next).max(answer.compact_revision);
        }
        if answer.canceled {
            return None;
        }
        take(client, next, &answer);
    }
    Some(())
}

fn take(client: &Client, next: &mut i64, answer: &WatchResponse) {
    let mut seen = client.seen.lock().unwrap();
    let started = *next;
    for event in &answer.events {
        let Some(pair) = &event.kv else { continue };
        if pair.mod_revision < started {
            seen.faults.push(format!(
                "the watch tells of revision {} again, or too late: {started} is next",
                pair.mod_revision
            ));
        }
        let key = String::from_utf8_lossy(&pair.key).into_owned();
        let number = match event.r#type() {
            EventType::Put => number(&pair.value).unwrap_or_default(),
            EventType::Delete => DELETED,
        };
        seen.watched.push((pair.mod_revision, key, number));
        *next = (*next).max(pair.mod_revision + 1);
    }
}
