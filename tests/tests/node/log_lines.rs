//! Lines of the log that those look for who know etcd's: with its words and its keys.

use std::fs;

use serde_json::Value;
use tests::{
    cluster::{Cluster, Spec},
    member::Member,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

use crate::up;

const SERVING: &str = "serving client traffic insecurely; this is strongly discouraged!";

/// The first line with these words, once there is one, and how many lines come before it.
async fn line(member: &Member, words: &str) -> (usize, Value) {
    let found = wait::until(words, GENEROUS, || async {
        let log = fs::read_to_string(member.log()).unwrap_or_default();
        let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).enumerate();
        lines.find(|(_, line)| line["msg"] == words).ok_or(log)
    });
    found.await.expect("it is said")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_says_with_what_and_where_clients_are_served() {
    let Some(cluster) = up("3.6", &["--snapshot-catchup-entries=1000"]).await else { return };
    let member = &cluster.layout.members[0];
    let (place, settings) = line(member, "starting an etcd server").await;
    assert_eq!(place, 0, "it comes first");
    assert_eq!(settings["snapshot-catchup-entries"], 1000);
    assert_eq!(settings["name"], member.name);
    assert_eq!(settings["etcd-version"], "3.6.0");
    assert_eq!(settings["quota-backend-bytes"], 2_147_483_648_u64);
    assert_eq!(settings["listen-client-urls"], member.client_url);
    let (_, serving) = line(member, SERVING).await;
    assert_eq!(format!("http://{}", serving["address"].as_str().unwrap_or_default()), member.client_url);
    assert_eq!(serving["traffic"], "grpc+http");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_clients_come_by_grpc_and_where_by_http_is_said_apart() {
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let flags = vec!["--listen-client-http-urls=http://127.0.0.1:0".to_owned()];
    let cluster = Cluster::laid_out(&Spec { size: 1, flags, ..Spec::new(build) }).expect("laid out");
    let member = &cluster.layout.members[0];
    member.start().expect("started");
    line(member, "ready to serve client requests").await;
    let log = fs::read_to_string(member.log()).expect("a log");
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let served: Vec<_> = lines
        .filter(|line| line["msg"] == SERVING)
        .map(|line| ["traffic", "address"].map(|key| line[key].as_str().unwrap_or_default().to_owned()))
        .collect();
    let [[first, address], [second, by_http]] = &served[..] else { unreachable!("two addresses: {log}") };
    assert_eq!((&**first, &*format!("http://{address}")), ("grpc", &*member.client_url));
    assert_eq!(second, "http");
    let health = reqwest::get(format!("http://{by_http}/health")).await.expect("answered");
    assert!(health.status().is_success(), "{by_http}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_told_without_its_value_and_not_too_often() {
    const SECRET: &str = "a-value-that-is-nobodys-business";
    let flags = ["--experimental-warning-unary-request-duration=1us", "--warning-apply-duration=1ns"];
    let Some(cluster) = up("3.6", &flags).await else { return };
    let member = &cluster.layout.members[0];
    let client = cluster.layout.client(member).expect("a client");
    // Again, where others have taken the lines of a second.
    let stats = wait::until("the put to be told", GENEROUS, || async {
        client.put("a-key", SECRET).await.map_err(|error| format!("{error:?}"))?;
        let log = fs::read_to_string(member.log()).unwrap_or_default();
        let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| line["msg"] == "request stats" && line["response type"] == "/etcdserverpb.KV/Put").ok_or(log)
    });
    let stats = stats.await.expect("told");
    assert_eq!(stats["level"], "warn");
    assert_eq!(stats["request content"], format!(r#"key:"a-key" value_size:{}"#, SECRET.len()));
    assert_eq!((&stats["request count"], &stats["response count"]), (&1.into(), &0.into()));
    assert_eq!(stats["request size"], SECRET.len() + "a-key".len() + 4);
    assert!(stats["remote"].as_str().is_some_and(|remote| remote.starts_with("127.0.0.1:")), "{stats}");
    assert!(stats["start time"].is_string() && stats["time spent"].is_string(), "{stats}");
    let (_, applied) = line(member, "apply request took too long").await;
    assert!(applied["took"].is_string() && applied["expected-duration"] == "1ns", "{applied}");
    let told = || {
        let log = fs::read_to_string(member.log()).expect("a log");
        log.lines().filter(|line| line.contains(r#""msg":"request stats""#)).count() as u64
    };
    let (before, begun) = (told(), std::time::Instant::now());
    for number in 0..300 {
        client.put(&format!("flood-{number}"), SECRET).await.expect("written");
    }
    let told = told() - before;
    assert!(told <= 10 * (begun.elapsed().as_secs() + 2), "{told} lines in {:?}", begun.elapsed());
    let log = fs::read_to_string(member.log()).expect("a log");
    assert!(!log.contains(SECRET), "{log}");
}
