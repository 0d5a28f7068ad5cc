//! A member served in this process, asked by real `etcdctl`, by a client of its own, and beside a real etcd.

// A test binary of several files: what is allowed in tests is allowed in all of it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

mod another_story;
mod beside_etcd;
mod by_etcdctl;
mod counted;
mod etcdctl;
mod feature;
mod http;
mod lease;
mod members;
mod metrics;
mod quota;
#[path = "../real/mod.rs"]
mod real;
mod release;
mod rubbish;
mod served;
mod standard;
mod stop;
mod stream;
mod traffic;
mod turns;
mod watch;
mod watch_beside_etcd;
