//! Long answers in parts, for clients that ask for it (etcd, `sendFragments`).

use std::mem;

use prost::Message;
use proto::etcdserverpb::WatchResponse;

use crate::mvcc::field_bytes;

/// Cuts a response so that no part has more bytes than `longest`, but for one event that has more by itself. All parts but
/// the last say that more follows.
pub(super) fn cut(mut response: WatchResponse, longest: usize) -> Vec<WatchResponse> {
    let events = mem::take(&mut response.events);
    let empty = response.encoded_len();
    let mut parts = vec![Vec::new()];
    let mut bytes = empty;
    for event in events {
        let size = field_bytes(&event);
        if bytes + size > longest && bytes > empty {
            parts.push(Vec::new());
            bytes = empty;
        }
        bytes += size;
        if let Some(part) = parts.last_mut() {
            part.push(event);
        }
    }
    let last = parts.len() - 1;
    let part = |(at, events)| WatchResponse { events, fragment: at < last, ..response.clone() };
    parts.into_iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use proto::mvccpb::{Event, KeyValue};

    use super::*;

    fn response(values: &[usize]) -> WatchResponse {
        let event = |length: &usize| Event {
            kv: Some(KeyValue { value: vec![7; *length], ..KeyValue::default() }),
            ..Event::default()
        };
        WatchResponse { watch_id: 3, events: values.iter().map(event).collect(), ..WatchResponse::default() }
    }

    #[test]
    fn a_response_is_cut_before_it_is_too_long_and_nothing_is_lost() {
        for (values, longest, expected) in [
            (&[][..], 100, &[0][..]),
            (&[10, 10], 100, &[2]),
            (&[40, 40, 40], 100, &[2, 1]),
            (&[200, 10], 100, &[1, 1]), // too long by itself: it goes alone
            (&[10, 200, 10], 100, &[1, 1, 1]),
        ] {
            let whole = response(values);
            let parts = cut(whole.clone(), longest);
            let counts: Vec<_> = parts.iter().map(|part| part.events.len()).collect();
            assert_eq!(counts, expected, "{values:?}");
            assert!(parts.iter().all(|part| part.encoded_len() <= longest || part.events.len() == 1), "{values:?}");
            let follows: Vec<_> = parts.iter().map(|part| part.fragment).collect();
            assert!(follows.split_last().is_some_and(|(last, before)| !last && before.iter().all(|more| *more)));
            let events: Vec<_> = parts.into_iter().flat_map(|part| part.events).collect();
            assert_eq!(events, whole.events, "{values:?}");
        }
    }
}
