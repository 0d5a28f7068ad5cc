//! Watches: nothing is missed, told twice or split, however far behind a watch is and however slow its client.

use std::time::{Duration, Instant};

use node::serve::ServeOptions;
use prost::Message;
use proto::{
    etcdserverpb::{PutRequest, RequestOp, TxnRequest, WatchCreateRequest, request_op::Request},
    mvccpb::Event,
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    metrics::Page,
    real::PATIENCE,
    served::{Served, Setup, options},
    stream::{Stream, watch},
};

fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: key.into(), value: value.into(), ..PutRequest::default() }
}

fn revision(event: &Event) -> i64 {
    event.kv.as_ref().unwrap().mod_revision
}

/// Writes one key so often.
async fn write(served: &Served, times: usize, value: &str) {
    let mut kv = served.kv();
    for _ in 0..times {
        kv.put(put("a", value)).await.unwrap();
    }
}

/// Writes keys in one transaction.
async fn write_together(served: &Served, keys: usize, value: &str) {
    let puts = (0..keys).map(|key| RequestOp { request: Some(Request::RequestPut(put(&format!("t{key:03}"), value))) });
    served.kv().txn(TxnRequest { success: puts.collect(), ..TxnRequest::default() }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_far_behind_is_told_all_of_it_in_pieces() {
    let served = Served::start().await;
    write(&served, 2500, "v").await;
    let mut stream = Stream::open(&served.channel());
    stream.created(watch("a", "", 2)).await;
    let mut next = 2;
    let mut pieces = 0;
    while next < 2502 {
        let response = stream.next().await;
        assert!(response.events.len() <= 1000, "{} events at once", response.events.len());
        for event in &response.events {
            assert_eq!(revision(event), next);
            next += 1;
        }
        // The newest, as etcd's (`syncWatchers`): a client goes on from its events.
        assert_eq!(response.header.unwrap().revision, 2501);
        pieces += 1;
    }
    assert_eq!(pieces, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_is_told_at_once_however_many_changes_it_has() {
    let served = Served::start().await;
    // The bound falls in the middle of the tenth.
    for _ in 0..12 {
        write_together(&served, 101, "v").await;
    }
    let mut stream = Stream::open(&served.channel());
    stream.created(watch("t", "u", 2)).await;
    let mut told = Vec::new();
    while told.len() < 12 * 101 {
        let response = stream.next().await;
        assert!(response.events.len() % 101 == 0, "{} events: a revision is split", response.events.len());
        told.extend(response.events.iter().map(revision));
    }
    assert!(told.is_sorted());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_cut_up_for_a_watch_that_asks_for_it() {
    let served = Served::start().await;
    let value = "v".repeat(140_000);
    write_together(&served, 10, &value).await;
    let mut stream = Stream::open(&served.channel());
    let whole = WatchCreateRequest { prev_kv: true, ..watch("t", "u", 0) };
    stream.created(WatchCreateRequest { fragment: true, ..whole.clone() }).await;
    stream.created(whole).await;
    // With what was before, one revision is more than a message of a client may be.
    write_together(&served, 10, &value).await;
    let mut told = [Vec::new(), Vec::new()];
    while told.iter().map(Vec::len).sum::<usize>() < 20 {
        let response = stream.next().await;
        let mine = &mut told[response.watch_id as usize];
        assert!(response.watch_id == 0 || response.events.len() == 10);
        assert!(response.watch_id == 1 || response.encoded_len() <= 2 << 20);
        mine.extend(response.events);
        assert_eq!(response.fragment, mine.len() < 10);
    }
    assert_eq!(told[0], told[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_asks_again_from_where_it_was_hears_each_change_once() {
    let served = Served::start().await;
    let writer = tokio::spawn({
        let mut kv = served.kv();
        async move {
            for _ in 0..600 {
                kv.put(put("a", "v")).await.unwrap();
            }
        }
    });
    let mut next = 2;
    while next < 602 {
        let mut stream = Stream::open(&served.channel());
        stream.created(watch("a", "", next)).await;
        for event in stream.next().await.events {
            assert_eq!(revision(&event), next);
            next += 1;
        }
    }
    writer.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_for_a_time_to_come_waits_for_it() {
    let served = Served::start().await;
    let mut stream = Stream::open(&served.channel());
    stream.created(watch("a", "", 5)).await;
    // Nobody knows how far it is.
    stream.ask_progress().await;
    write(&served, 5, "v").await;
    let told: Vec<_> = stream.events(2).await.iter().map(revision).collect();
    assert_eq!(told, [5, 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_watches_of_one_stream_are_told_each_its_own() {
    let served = Served::start().await;
    let mut stream = Stream::open(&served.channel());
    for number in 0..300 {
        stream.created(watch(&format!("t{number:03}"), "", 0)).await;
    }
    for _ in 0..5 {
        write_together(&served, 120, "v").await;
    }
    let mut told = vec![Vec::new(); 300];
    for _ in 0..120 * 5 {
        if told.iter().map(Vec::len).sum::<usize>() == 120 * 5 {
            break;
        }
        let response = stream.next().await;
        told[response.watch_id as usize].extend(response.events);
    }
    for (number, events) in told.iter().enumerate() {
        let expected: &[i64] = if number < 120 { &[2, 3, 4, 5, 6] } else { &[] };
        assert_eq!(events.iter().map(revision).collect::<Vec<_>>(), expected, "watch {number}");
        let key = format!("t{number:03}");
        assert!(events.iter().all(|event| event.kv.as_ref().unwrap().key == key.as_bytes()));
    }
}

/// What a client does not read stays in the store; its stream holds a few pieces of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_takes_no_memory() {
    let served = Served::start().await;
    let (value, times) = ("v".repeat(100_000), 400);
    let mut slow: Vec<_> = Vec::new();
    for _ in 0..10 {
        let mut stream = Stream::open(&served.channel());
        stream.created(watch("a", "", 0)).await;
        slow.push(stream);
    }
    let before = resident_bytes();
    let mut kv = served.kv();
    for _ in 0..times {
        kv.put(put("a", &value)).await.unwrap();
    }
    let stored = value.len() * times;
    let taken = resident_bytes().saturating_sub(before);
    // Ten streams that held it all would be ten times what is stored. The tests beside this one count, too.
    assert!(taken < stored * 6, "{taken} bytes for {stored}");
    for mut stream in slow {
        assert_eq!(stream.events(times).await.len(), times);
    }
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_told_to_the_watches_that_ask_for_it_and_hear_nothing_else() {
    let period = Duration::from_millis(200);
    let options = ServeOptions { progress_interval: period, ..options() };
    let served = Served::set_up(Setup { options, ..Setup::default() }).await;
    let mut stream = Stream::open(&served.channel());
    stream.created(watch("none", "", 0)).await;
    stream.created(WatchCreateRequest { progress_notify: true, ..watch("none", "", 0) }).await;
    let mut written = 1;
    loop {
        let response = stream.next().await;
        assert!(response.watch_id == 1 && response.events.is_empty(), "{response:?}");
        let since = Instant::now();
        write(&served, 3, "v").await;
        written += 3;
        if since.elapsed() < period / 2 {
            // So the next time was after that.
            let told = stream.next().await.header.unwrap().revision;
            assert_eq!(told, written, "how far it is by then, not how far it was the time before");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_on_demand_comes_after_all_that_it_speaks_of() {
    let served = Served::start().await;
    // More than goes to a client that does not read yet, so that it asks while it is behind.
    for _ in 0..30 {
        write_together(&served, 100, &"v".repeat(10_000)).await;
    }
    let mut stream = Stream::open(&served.channel());
    stream.create(watch("t", "u", 2)).await;
    stream.ask_progress().await;
    let mut told = 1;
    loop {
        let response = stream.next().await;
        told = response.events.last().map_or(told, revision);
        if response.watch_id == -1 {
            assert_eq!((response.header.unwrap().revision, told), (31, 31));
            break;
        }
    }
}

/// A watch that hears of a change before the others are there is ahead of what the client asked for.
#[tokio::test(flavor = "multi_thread")]
async fn progress_on_demand_comes_while_much_is_written() {
    let served = Served::start().await;
    let mut stream = Stream::open(&served.channel());
    stream.created(watch("a", "", 0)).await;
    stream.created(watch("none", "", 0)).await;
    let mut writers = JoinSet::new();
    for _ in 0..8 {
        let mut kv = served.kv();
        writers.spawn(async move {
            loop {
                kv.put(put("a", "v")).await.unwrap();
            }
        });
    }
    let asked = async {
        let mut told = 1;
        for _ in 0..200 {
            stream.ask_progress().await;
            loop {
                let response = stream.next().await;
                told = response.events.last().map_or(told, revision);
                if response.watch_id == -1 {
                    assert!(response.header.unwrap().revision >= told, "{response:?} after {told}");
                    break;
                }
            }
        }
    };
    timeout(PATIENCE, asked).await.expect("a question without an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_cancelled_is_slow_no_more() {
    let served = Served::start().await;
    // More than goes to a client that does not read yet, so that it is cancelled while it is behind.
    for _ in 0..100 {
        write_together(&served, 101, &"v".repeat(300)).await;
    }
    let mut stream = Stream::open(&served.channel());
    stream.create(watch("t", "u", 2)).await;
    stream.cancel(0).await;
    while !stream.next().await.canceled {}
    let none_is_slow = async {
        while Page::of(&served).await.value("etcd_debugging_mvcc_slow_watcher_total", "") > 0.0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, none_is_slow).await.expect("there is no watch");
}

/// A client may say all that it has to say, and listen on.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_client_has_no_more_to_say_is_told_on() {
    let served = Served::start().await;
    let mut stream = Stream::open(&served.channel());
    stream.created(watch("a", "", 0)).await;
    stream.say_no_more();
    write(&served, 2, "v").await;
    assert_eq!(stream.events(2).await.len(), 2);
}
