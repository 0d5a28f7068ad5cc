use std::{convert::Infallible, time::Duration};

use ::http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    sync::mpsc,
    time::timeout,
};

use super::{fuzzing::PREFACE, *};

/// `:method: POST`, `:scheme: http`, `:path: /` (RFC 7541, appendix A).
const BEFORE: [u8; 3] = [0x83, 0x86, 0x84];
/// `https://www.example.com` in Huffman's code (RFC 7541, C.6.1).
const HUFFMAN: &[u8] = b"\x91\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3";

fn string(text: &str) -> Vec<u8> {
    assert!(text.len() < 0x7f);
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [.., a, b, c] = payload.len().to_be_bytes();
    [&[a, b, c, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A request that ends with its head.
fn request(stream: u8, block: &[u8]) -> Vec<u8> {
    frame(1, 0x5, stream, block)
}

/// What comes of these bytes, in pieces of so many, and whether what follows is not looked at.
fn passed_on(bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let (passed_on, frames) = fuzzing::passed_on(bytes, piece);
    (passed_on, frames.is_done())
}

#[test]
fn what_is_no_authority_becomes_one_of_the_same_length() {
    for (sent, read) in [
        ("http://127.0.0.1:2379", Some("http--@127.0.0.1:2379")),
        ("https://[::1]:2379", Some("https--@[::1]:2379")),
        ("unix://localhost:2379", Some("unix--@localhost:2379")),
        ("unix:///tmp/a_b.sock", Some("unix----tmp-a-b.sock")),
        ("/tmp/socket:0", Some("-tmp-socket-0")),
        ("%2Ftmp%2Fsocket", Some("-2Ftmp-2Fsocket")),
        ("#initially=[http://a:1;http://b:1]", Some("-initially--http---a-1-http---b-1-")),
        ("http://a\u{e4}:1", Some("http---a---1")),
        ("://", Some("---")),
        ("127.0.0.1:2379", None),
        ("user@host:1", None),
        ("localhost", None),
        ("", None),
    ] {
        let block =
            |value: &str| [&BEFORE[..], &[0x41], &string(value), &[0x40], &string("a"), &string("://")].concat();
        assert_eq!(block::mended(&block(sent)), read.map(block), "{sent}");
        assert!(read.is_none_or(|read| read.len() == sent.len()));
    }
}

#[test]
fn every_form_of_a_field_is_read() {
    let (sent, read) = (string("http://a:1"), string("http--@a:1"));
    // Added to the table, never indexed, not indexed (RFC 7541, section 6.2).
    for form in [0x41, 0x11, 0x01] {
        // The table's size first, twice; an index and a name that take more than one octet each.
        let before = [&[0x3f, 0xe1, 0x1f, 0x20, 0xff, 0x05, 0x7f, 0x03, 0x01, b'v'], &BEFORE[..], &[form]].concat();
        assert_eq!(block::mended(&[&before[..], &sent].concat()), Some([&before[..], &read].concat()), "{form}");
    }
    let huffman = [&BEFORE[..], &[0x41], HUFFMAN, &[0x84]].concat();
    assert_eq!(
        block::mended(&huffman),
        Some([&BEFORE[..], &[0x41], &string("https--@www.example.com"), &[0x84]].concat())
    );
    let long = "a".repeat(300);
    let block = |value: &str| [&[0x41, 0x7f, (308 - 0x7f) as u8 | 0x80, 1], value.as_bytes()].concat();
    assert_eq!(block::mended(&block(&format!("http://{long}-"))), Some(block(&format!("http--@{long}-"))));
}

#[test]
fn a_block_that_cannot_be_read_is_left_as_it_is() {
    let (name, value) = ([&BEFORE[..], &[0x41]].concat(), string("http://a:1"));
    for wrong in [
        &[][..],
        &[0x41],
        &[0x41, 0x7f],
        &[0x41, 0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
        &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff],
        // Huffman's code, with the end of a string in it.
        &[0x41, 0x84, 0xff, 0xff, 0xff, 0xff],
        &[&name[..], &value[..value.len() - 1]].concat(),
        // Nothing tells the name that is in the table from another.
        &[&[0x7e][..], &value].concat(),
    ] {
        assert_eq!(block::mended(wrong), None, "{wrong:x?}");
    }
    // What goes on in another frame is looked at as far as it goes.
    let cut = [&name[..], &value, &[0x40, 0x7f]].concat();
    assert_eq!(block::mended(&cut), Some([&name[..], &string("http--@a:1"), &[0x40, 0x7f]].concat()));
}

/// Two requests, with all that a frame may have, and others between.
fn of_3_4() -> (Vec<u8>, Vec<u8>) {
    let block =
        |authority: &str| [&BEFORE[..], &[0x41], &string(authority), &[0x40], &string("a"), &string("b")].concat();
    let settings = frame(4, 0, 0, &[0, 3, 0, 0, 0, 9]);
    let (priority, data, rest) = ([0, 0, 0, 0, 9], frame(0, 1, 1, b"http://"), frame(9, 0x4, 3, &[0xbe]));
    let stream = |first: &[u8], second: &[u8]| [PREFACE, &settings, first, &data, second, &rest, &data].concat();
    let (sent, read) = (block("http://a:1"), block("http--@a:1"));
    let padded = [&[3][..], &priority, &sent, b"pad"].concat();
    (
        stream(&frame(1, 0x2c, 1, &padded), &frame(1, 0, 3, &sent)),
        stream(&frame(1, 0x24, 1, &[&priority[..], &read].concat()), &frame(1, 0, 3, &read)),
    )
}

#[test]
fn wherever_a_read_ends_the_same_comes_of_it() {
    let (sent, read) = of_3_4();
    for piece in 1..=sent.len() {
        assert_eq!(passed_on(&sent, piece), (read.clone(), false), "{piece}");
    }
    for cut in 0..=sent.len() {
        let (mut frames, mut passed) = (Frames::new(), Vec::new());
        frames.take(&sent[..cut], &mut passed);
        assert!(read.starts_with(&passed), "what is not whole waits: {cut}");
        frames.take(&sent[cut..], &mut passed);
        assert_eq!(passed, read, "{cut}");
    }
}

#[test]
fn a_frame_that_grows_too_large_becomes_two() {
    let rest = vec![0x84; 16_384 - HUFFMAN.len() - 1];
    let read = [&[0x41][..], &string("https--@www.example.com"), &rest].concat();
    for (flags, first, second) in [(0x5, 0x1, 0x4), (0x1, 0x1, 0)] {
        let sent = frame(1, flags, 1, &[&[0x41][..], HUFFMAN, &rest].concat());
        let expected = [frame(1, first, 1, &read[..16_384]), frame(9, second, 1, &read[16_384..])].concat();
        let (mended, _) = passed_on(&[PREFACE, &sent].concat(), 4096);
        assert!(mended == [PREFACE, &expected].concat());
    }
}

#[test]
fn whoever_sends_none_is_not_looked_at_any_more() {
    let block = [&BEFORE[..], &[0x41], &string("a:1")].concat();
    let wrong = request(3, &[&BEFORE[..], &[0x41], &string("http://a:1")].concat());
    let padded_too_far = frame(1, 0x8, 1, &[9, 1]);
    for beginning in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"PRI * HTTP/1.1\r\n\r\n",
        b"\0",
        &[PREFACE, &request(1, &block)].concat(),
        &[PREFACE, &padded_too_far].concat(),
        &[PREFACE, &frame(1, 0x20, 1, &[1])].concat(),
    ] {
        let sent = [beginning, &wrong].concat();
        for piece in [1, 7, sent.len()] {
            assert_eq!(passed_on(&sent, piece), (sent.clone(), true), "{beginning:?}");
        }
    }
    // These are no requests yet.
    for beginning in [frame(1, 0x4, 1, &[]), frame(1, 0x4, 1, &vec![0x84; 16_385]), frame(0, 0, 0, &vec![1; 70_000])] {
        let (passed, is_done) = passed_on(&[PREFACE, &beginning].concat(), 1000);
        assert!(!is_done && passed.ends_with(&beginning));
    }
}

/// Numbers that anybody may have thrown, and the same each time (xorshift).
struct Dice(u64);

impl Dice {
    fn throw(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn whatever_comes_in_is_passed_on() {
    let (template, _) = of_3_4();
    for seed in 1..3000 {
        let mut dice = Dice(seed);
        dice.throw(9);
        let mut bytes = match seed % 3 {
            0 => template.clone(),
            1 => PREFACE.to_vec(),
            _ => Vec::new(),
        };
        for _ in 0..dice.throw(8) {
            let at = dice.throw(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = dice.throw(256) as u8;
            }
        }
        for _ in 0..dice.throw(6) {
            let payload: Vec<_> = (0..dice.throw(40)).map(|_| dice.throw(256) as u8).collect();
            bytes.extend(frame([1, 9, dice.throw(256) as u8][dice.throw(3)], dice.throw(256) as u8, 1, &payload));
        }
        bytes.extend((0..dice.throw(40)).map(|_| dice.throw(256) as u8));
        fuzz(&bytes);
    }
}

/// The table of one side, as Go's encoder keeps it (RFC 7541, section 4): newest first.
#[derive(Default)]
struct Encoder {
    table: Vec<(u8, String)>,
    added: usize,
}

impl Encoder {
    const MOST_BYTES: usize = 4096;

    /// By index where the table has it, else added to it; with the name as it stands in HPACK's own table.
    fn field(&mut self, (name, length): (u8, usize), value: &str) -> Vec<u8> {
        let field = (name, value.to_owned());
        if let Some(at) = self.table.iter().position(|other| *other == field) {
            let index = 62 + at;
            return if index < 127 { vec![0x80 | index as u8] } else { vec![0xff, (index - 127) as u8] };
        }
        self.added += usize::from(name == 1);
        self.table.insert(0, field);
        let bytes = |table: &[(u8, String)]| table.iter().map(|(_, value)| length + value.len() + 32).sum::<usize>();
        while bytes(&self.table) > Self::MOST_BYTES {
            self.table.pop();
        }
        [&[0x40 | name], &string(value)[..]].concat()
    }
}

/// Both tables stay equal, and the library that reads takes all: as `:authority` and the timeout are said by index or anew.
#[tokio::test]
async fn one_connection_has_as_many_requests_as_its_client_likes() {
    const REQUESTS: u8 = 120;
    let (client, server) = duplex(1 << 16);
    let (seen, mut was_seen) = mpsc::unbounded_channel();
    let service = service_fn(move |request: Request<Incoming>| {
        let authority = request.uri().authority().unwrap().to_string();
        seen.send((authority, request.headers()["via"].clone())).unwrap();
        async { Ok::<_, Infallible>(Response::new(tonic::body::Body::empty())) }
    });
    tokio::spawn(async move {
        Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(Mended::new(server)), service).await
    });
    let (mut reads, mut writes) = tokio::io::split(client);
    tokio::spawn(async move { tokio::io::copy(&mut reads, &mut tokio::io::sink()).await });
    writes.write_all(PREFACE).await.unwrap();
    let (authority, mut encoder) = ("http://127.0.0.1:2379", Encoder::default());
    for number in 0..REQUESTS {
        // Another value each time, as of `grpc-timeout`.
        let via = format!("{number}{}", "u".repeat(40));
        let block = [&BEFORE[..], &encoder.field((1, 10), authority), &encoder.field((60, 3), &via)].concat();
        writes.write_all(&request(2 * number + 1, &block)).await.unwrap();
        let seen = timeout(Duration::from_secs(20), was_seen.recv()).await.unwrap().unwrap();
        assert_eq!((&*seen.0, seen.1.to_str().unwrap()), ("http--@127.0.0.1:2379", &*via), "{number}");
    }
    assert!(encoder.added > 1, "the table never lost it");
}

/// Gives what it has, and notes where it is read to.
struct Noted {
    left: Vec<u8>,
    read_to: Vec<*const u8>,
}

impl AsyncRead for Noted {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (at, given) = (into.initialize_unfilled().as_ptr(), self.left.len().min(into.remaining()));
        self.read_to.push(at);
        let given: Vec<_> = self.left.drain(..given).collect();
        into.put_slice(&given);
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn after_its_first_request_a_connection_is_read_directly() {
    let first = [PREFACE, &request(1, &[&BEFORE[..], &[0x41], &string("a:1")].concat())].concat();
    let noted = Noted { left: [&first[..], &[7; 1000]].concat(), read_to: Vec::new() };
    let mut mended = Mended::new(noted);
    let mut bytes = vec![0; first.len()];
    timeout(Duration::from_secs(20), mended.read_exact(&mut bytes)).await.unwrap().unwrap();
    assert_eq!(bytes, first);
    mended.socket.read_to.clear();
    let mut bytes = [0; 1000];
    for at in 0..10 {
        mended.read_exact(&mut bytes[100 * at..][..100]).await.unwrap();
    }
    let read_to: Vec<_> = (0..10).map(|at| bytes[100 * at..].as_ptr()).collect();
    assert_eq!((mended.socket.read_to, mended.reading.is_none()), (read_to, true));
    assert_eq!(bytes, [7; 1000]);
}
