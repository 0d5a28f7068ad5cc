//! TLS on both ports: who is let in, what is said of who is not, and files that change while members run.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use rustix::process::Signal;
use serde_json::Value;
use tests::{
    certificates::{Authority, Certificates, Identity},
    client::{Access, Client},
    cluster::{Cluster, Spec},
    member::Member,
    skip::build_or_skip,
    system::System,
    wait,
};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::nobody_panicked;

const HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];
/// The one host whose certificates clients may show.
const ALLOWED: &str = "client.baton.test";
const REVOKED: u64 = 4711;

/// Three members whose files an authority of the test's own has given out.
async fn up(more: impl FnOnce(&Authority) -> Vec<String>) -> Option<(Cluster, Authority)> {
    let build = build_or_skip(System::Node, "3.6")?;
    let mut cluster = Cluster::laid_out(&Spec { tls: true, ..Spec::new(build) }).expect("laid out");
    let authority = Authority::create(&cluster.layout.dir.join("tls")).expect("made");
    authority.identity("member", &HOSTS, |_| {}).expect("made");
    authority.identity("client", &[ALLOWED], |_| {}).expect("made");
    let more = more(&authority);
    cluster.layout.members.iter_mut().for_each(|member| member.flags.extend(more.clone()));
    cluster.begin().await.expect("up");
    Some((cluster, authority))
}

fn client(member: &Member, ca: &Path, shown: &Identity) -> Client {
    let certificates = Certificates { ca: ca.to_owned(), server: shown.clone(), client: shown.clone() };
    Client::new(&member.client_url, &Access { certificates: Some(certificates), user: None }).expect("a client")
}

async fn until_it_says(member: &Member, words: &str) {
    let said = wait::until(words, wait::GENEROUS, || async {
        let log = fs::read_to_string(member.log()).unwrap_or_default();
        if log.contains(words) { Ok(()) } else { Err(log) }
    });
    said.await.expect("it is said");
}

/// That the line about this has etcd's words and keys.
fn is_rejection(member: &Member, side: &str, why: &str) {
    let log = fs::read_to_string(member.log()).expect("a log");
    let says = |line: &Value| {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        text("msg") == format!("rejected connection on {side} endpoint")
            && text("why") == why
            && text("remote-addr").starts_with("127.0.0.1:")
            && !text("error").is_empty()
            && line["server-name"].is_string()
    };
    assert!(
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).any(|line| says(&line)),
        "{side}, {why}: {log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_let_in_is_told_apart_in_the_log() {
    let more = |authority: &Authority| {
        let revoked = authority.revoke(&[REVOKED]).expect("written");
        vec![format!("--client-crl-file={}", revoked.display()), format!("--client-cert-allowed-hostname={ALLOWED}")]
    };
    let Some((cluster, authority)) = up(more).await else { return };
    let layout = &cluster.layout;
    let member = &layout.members[0];
    layout.client(member).expect("a client").put("k", "v").await.expect("who is allowed writes");
    let other = Authority::create(&layout.dir.join("other")).expect("made");
    let revoked = authority.identity("revoked", &[ALLOWED], |params| params.serial_number = Some(REVOKED.into()));
    for (shown, words) in [
        (authority.expired("expired"), "its certificate has expired"),
        (revoked, "its certificate is revoked"),
        (
            authority.identity("stranger", &["elsewhere.baton.test"], |_| {}),
            "its certificate is of none who is allowed",
        ),
        (other.identity("other", &[ALLOWED], |_| {}), "its certificate is not signed by a trusted authority"),
    ] {
        let refused = client(member, &authority.ca, &shown.expect("made")).get("k").await;
        assert!(refused.is_err(), "{words}: {refused:?}");
        until_it_says(member, words).await;
    }
    until_it_says(member, "client certificate authentication failed").await;
    let ca = Certificate::from_pem(fs::read(&authority.ca).expect("read"));
    let bare = Endpoint::from_shared(member.client_url.clone()).expect("a URL");
    let bare = bare.tls_config(ClientTlsConfig::new().ca_certificate(ca)).expect("TLS").connect().await;
    if let Ok(channel) = bare {
        let request = proto::etcdserverpb::RangeRequest { key: b"k".to_vec(), ..Default::default() };
        let answer = proto::etcdserverpb::kv_client::KvClient::new(channel).range(request).await;
        assert!(answer.is_err(), "without a certificate: {answer:?}");
    }
    until_it_says(member, "it shows no certificate").await;
    is_rejection(member, "client", "it shows no certificate");
    for port in [member.client_port, member.peer_port] {
        let mut plain = TcpStream::connect((HOSTS[0], port)).expect("connected");
        plain.write_all(b"GET /health HTTP/1.0\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP"), "port {port} answered {answer:?}");
    }
    until_it_says(member, "it does not speak TLS").await;
    until_it_says(member, "rejected connection on peer endpoint").await;
    // A message of the handshake out of turn, again and again.
    for _ in 0..30 {
        let mut stranger = TcpStream::connect((HOSTS[0], member.client_port)).expect("connected");
        stranger.write_all(b"\x16\x03\x01\x00\x08\x14\x00\x00\x04done").expect("sent");
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    let log = fs::read_to_string(member.log()).expect("a log");
    let of_it = |line: &&str| line.contains("Finished") || line.contains("andshake");
    assert!(log.lines().filter(of_it).count() < 5, "a line for each: {log}");
    is_rejection(member, "client", "it does not speak TLS");
    is_rejection(member, "peer", "it does not speak TLS");
    nobody_panicked(layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_is_replaced_while_members_run() {
    let Some((cluster, old)) = up(|_| Vec::new()).await else { return };
    let layout = &cluster.layout;
    let before = Identity { cert: layout.dir.join("before.pem"), key: layout.dir.join("before.key") };
    let in_use = layout.certificates.clone().expect("TLS");
    for (from, to) in [(&in_use.client.cert, &before.cert), (&in_use.client.key, &before.key)] {
        fs::copy(from, to).expect("copied");
    }
    let new = Authority::create(&layout.dir.join("new")).expect("made");
    let (server, of_client) = (new.identity("member", &HOSTS, |_| {}), new.identity("client", &[], |_| {}));
    let (server, of_client) = (server.expect("made"), of_client.expect("made"));
    // Half of them: what cannot be used changes nothing.
    fs::copy(&server.key, &in_use.server.key).expect("copied");
    let (first, old_ca) = (&layout.members[0], layout.dir.join("old.pem"));
    fs::copy(&old.ca, &old_ca).expect("copied");
    client(first, &old_ca, &before).put("k", "1").await.expect("the old files are in use");
    until_it_says(first, "cannot be used: the old ones stay in use").await;
    for (from, to) in [
        (&server.cert, &in_use.server.cert),
        (&new.ca, &in_use.ca),
        (&of_client.cert, &in_use.client.cert),
        (&of_client.key, &in_use.client.key),
    ] {
        fs::copy(from, to).expect("copied");
    }
    for member in &layout.members {
        client(member, &new.ca, &of_client).put("k", "2").await.expect("the new files are in use");
        let refused = client(member, &new.ca, &before).get("k").await;
        assert!(refused.is_err(), "the old authority vouches for nobody: {refused:?}");
    }
    // It and the others meet each other anew.
    first.end(Signal::TERM).expect("asked");
    first.start().expect("started");
    cluster.ready().await.expect("it is back");
    nobody_panicked(layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_a_strangers_certificate_is_no_member() {
    let Some((cluster, _authority)) = up(|_| Vec::new()).await else { return };
    let layout = &cluster.layout;
    let other = Authority::create(&layout.dir.join("other")).expect("made");
    let strange = other.identity("member", &HOSTS, |_| {}).expect("made");
    let mut odd = layout.members[2].clone();
    odd.end(Signal::KILL).expect("killed");
    odd.flags.push(format!("--peer-cert-file={}", strange.cert.display()));
    odd.flags.push(format!("--peer-key-file={}", strange.key.display()));
    odd.start().expect("started");
    until_it_says(&layout.members[0], "its certificate is not signed by a trusted authority").await;
    until_it_says(&odd, "cannot shake hands with a member").await;
    layout.client(&layout.members[0]).expect("a client").put("k", "v").await.expect("the others go on");
    odd.end(Signal::KILL).expect("killed");
    layout.members[2].start().expect("started");
    cluster.ready().await.expect("it is back");
    nobody_panicked(layout);
}
