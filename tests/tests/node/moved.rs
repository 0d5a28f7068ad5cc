//! Members reach each other elsewhere than they were founded: by https from now on, one after the other, with real `etcdctl`
//! (etcd, "Runtime reconfiguration", "Update a member").

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rustix::process::Signal;
use tests::{
    certificates::Certificates,
    cluster::Layout,
    member::Member,
    ports::Ports,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

use crate::{QUICK, nobody_panicked, trial::Trial, up};

struct Etcdctl(PathBuf);

impl Etcdctl {
    /// `etcdctl member update`, at one member.
    fn moves(&self, at: &Member, id: u64, peer_urls: &str) -> Output {
        let mut command = Command::new(&self.0);
        command.args(["--endpoints", &at.client_url, "member", "update", &format!("{id:x}")]);
        command.arg(format!("--peer-urls={peer_urls}")).output().expect("it runs")
    }

    #[track_caller]
    fn is_refused(&self, at: &Member, id: u64, peer_urls: &str, words: &str) {
        let output = self.moves(at, id, peer_urls);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{words}: {output:?}");
    }
}

fn by_https(member: &Member) -> String {
    format!("https://127.0.0.1:{}", member.peer_port)
}

/// Its own and the others' peer URLs as they are once all have been moved: founders are known by host and port.
fn moved(flags: &[String], members: &[Member]) -> Vec<String> {
    let urls: Vec<_> =
        members.iter().map(|member| (by_https(member).replacen("https", "http", 1), by_https(member))).collect();
    let moved = |flag: &String| urls.iter().fold(flag.clone(), |flag, (from, to)| flag.replace(from, to));
    flags.iter().map(moved).collect()
}

fn peer_flags(folder: &Path) -> Vec<String> {
    let files = Certificates::create(folder).expect("made");
    vec![
        format!("--peer-cert-file={}", files.server.cert.display()),
        format!("--peer-key-file={}", files.server.key.display()),
        format!("--peer-trusted-ca-file={}", files.ca.display()),
        "--peer-client-cert-auth=true".into(),
    ]
}

async fn peer_urls(layout: &Layout, at: &Member) -> Vec<Vec<String>> {
    let listed = layout.client(at).expect("a client").members().await.expect("listed");
    let of = |member: &Member| listed.iter().find(|listed| listed.name == member.name).expect("it is listed");
    layout.members.iter().map(|member| of(member).peer_urls.clone()).collect()
}

/// Whether somebody answers there without TLS.
fn speaks_plainly(member: &Member) -> bool {
    let mut plain = TcpStream::connect(("127.0.0.1", member.peer_port)).expect("connected");
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("sent");
    let mut said = [0; 9];
    // A frame of settings; an alert of TLS begins with 21.
    plain.read_exact(&mut said).is_ok() && said[3] == 4
}

#[tokio::test(flavor = "multi_thread")]
async fn members_go_from_http_to_https_one_after_the_other() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let etcdctl = Etcdctl(etcd.bin.join("etcdctl"));
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let mut trial = Trial::begin(cluster).await;
    let layout = trial.cluster.layout.clone();
    let [first, second, third] = &layout.members[..] else { panic!("three members") };
    let ids = ids(&layout).await;
    etcdctl.is_refused(first, 4711, &by_https(first), "etcdserver: member not found");
    etcdctl.is_refused(first, ids[0], &format!("http://127.0.0.1:{}", second.peer_port), "Peer URLs already exists");
    etcdctl.is_refused(first, ids[0], "http://127.0.0.1:0", "given member URLs are invalid");
    assert!(speaks_plainly(first));

    // First all learn how to call by https. Then one is moved, and after it is back the next; the third while the second is
    // away, which hears of it when it comes back.
    let tls = peer_flags(&layout.dir.join("tls"));
    for at in 0..3 {
        let member = &mut trial.cluster.layout.members[at];
        let flags = [member.flags.clone(), tls.clone()].concat();
        member.start_anew(flags).expect("started");
        trial.cluster.ready().await.expect("it serves");
    }
    for (at, asked) in [(0, second), (2, first), (1, third)] {
        let member = &layout.members[at];
        let others_away = at == 2;
        if others_away {
            second.end(Signal::KILL).expect("killed");
        }
        let output = etcdctl.moves(asked, ids[at], &by_https(member));
        assert!(output.status.success(), "{output:?}");
        if others_away {
            trial.cluster.layout.members[1].start().expect("started");
            trial.cluster.ready().await.expect("who is moved is reached where it still is");
        }
        let flags = moved(&trial.cluster.layout.members[at].flags, &layout.members);
        let member = &mut trial.cluster.layout.members[at];
        member.end(Signal::KILL).expect("killed");
        member.start_anew(flags).expect("started");
        trial.cluster.ready().await.expect("it serves");
        assert!(!speaks_plainly(&layout.members[at]));
    }

    let wanted: Vec<_> = layout.members.iter().map(|member| vec![by_https(member)]).collect();
    for at in &layout.members {
        wait::until("it to have heard of it", GENEROUS, || async {
            let found = peer_urls(&layout, at).await;
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await
        .expect("moved");
    }
    for member in &trial.cluster.layout.members {
        member.end(Signal::KILL).expect("killed");
    }
    for member in &trial.cluster.layout.members {
        member.start().expect("started");
    }
    trial.cluster.ready().await.expect("all find each other again");
    trial.end().await;
}

/// Where the leader stands in the list, and its id.
async fn leader(layout: &Layout) -> (usize, u64) {
    let status = layout.client(&layout.members[0]).expect("a client").status().await.expect("answered");
    let ids = ids(layout).await;
    let at = ids.iter().position(|id| *id == status.leader).expect("it is a member");
    (at, ids[at])
}

async fn ids(layout: &Layout) -> Vec<u64> {
    let mut ids = Vec::new();
    for member in &layout.members {
        let status = layout.client(member).expect("a client").status().await.expect("answered");
        ids.push(status.header.expect("signed").member_id);
    }
    ids
}

async fn all_serve(layout: &Layout) {
    for member in &layout.members {
        let client = layout.client(member).expect("a client");
        client.put("served", &member.name).await.expect("written");
        let found = client.get("served").await.expect("read");
        assert_eq!(found.map(|found| found.value), Some(member.name.clone().into_bytes()));
    }
}

/// The URL of somebody who takes connections and says nothing.
fn somebody(keeps_them: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for connection in listener.incoming() {
            kept.extend(connection.ok().filter(|_| keeps_them));
        }
    });
    format!("http://127.0.0.1:{port}")
}

/// Nobody can dial the one that leads, but it reaches everybody: so it stays leader. What their clients ask, the others call back.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_url_is_wrong_is_called_back_by_those_that_cannot_dial_it() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let etcdctl = Etcdctl(etcd.bin.join("etcdctl"));
    let Some(mut cluster) = up("3.6", &QUICK).await else { return };
    let (at, id) = leader(&cluster.layout).await;
    let followers = [(at + 1) % 3, (at + 2) % 3];
    let right = format!("http://127.0.0.1:{}", cluster.layout.members[at].peer_port);
    let ports = Ports::lease(1).expect("a port");
    let of_another = format!("http://127.0.0.1:{}", ports.numbers[0]);
    let [silent, closing] = [true, false].map(somebody);
    let of_clients = &cluster.layout.members[at].client_url.clone();
    // Where nobody listens, where another member does, and where somebody does who is none.
    for wrong in ["http://127.0.0.1:1", &of_another, &silent, &closing, of_clients] {
        let output = etcdctl.moves(&cluster.layout.members[at], id, wrong);
        assert!(output.status.success(), "{output:?}");
        for follower in followers {
            let member = &mut cluster.layout.members[follower];
            let listens = |flag: &String| match flag.starts_with("--listen-peer-urls=") && !flag.contains(&of_another) {
                true if follower == followers[1] => format!("{flag},{of_another}"),
                _ => flag.clone(),
            };
            let flags = member.flags.iter().map(listens).collect();
            member.end(Signal::KILL).expect("killed");
            member.start_anew(flags).expect("started");
            cluster.ready().await.expect("it serves");
        }
        all_serve(&cluster.layout).await;
        assert_eq!(leader(&cluster.layout).await, (at, id), "another leads: nothing was shown");
    }
    let output = etcdctl.moves(&cluster.layout.members[followers[0]], id, &right);
    assert!(output.status.success(), "{output:?}");
    nobody_panicked(&cluster.layout);
}

/// Nobody can dial one that follows, but it reaches everybody: it gets what the leader has, and leads when it is asked to.
#[tokio::test(flavor = "multi_thread")]
async fn a_follower_whose_url_is_wrong_takes_part_and_may_lead() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let etcdctl = Etcdctl(etcd.bin.join("etcdctl"));
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let layout = &cluster.layout;
    let (at, _) = leader(layout).await;
    let follower = (at + 1) % 3;
    let (member, id) = (&layout.members[follower], ids(layout).await[follower]);
    let output = etcdctl.moves(&layout.members[at], id, "http://127.0.0.1:1");
    assert!(output.status.success(), "{output:?}");
    // Whoever has a connection keeps it: each begins anew, and the one whose URL is wrong last.
    for at in [at, (at + 2) % 3, follower] {
        layout.members[at].end(Signal::KILL).expect("killed");
        layout.members[at].start().expect("started");
        cluster.ready().await.expect("it serves");
    }
    all_serve(layout).await;
    layout.make_leader(member).await.expect("it leads");
    all_serve(layout).await;
    for member in &layout.members {
        member.end(Signal::KILL).expect("killed");
    }
    for member in &layout.members {
        member.start().expect("started");
    }
    cluster.ready().await.expect("all find each other");
    all_serve(layout).await;
    nobody_panicked(layout);
}
