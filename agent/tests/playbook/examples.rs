//! Playbooks without a mistake: what they mean, and that their normal form means the same.

use std::{fs, path::Path, time::Duration};

use agent::playbook::{Hop, Kind, Playbook, Runtime, Source};
use proto::Release;

use super::{REPLACE, RESTART, SCALE, SOUND, parse, without_secrets};

#[test]
fn each_example_is_read_and_its_normal_form_is_equal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let playbook = Playbook::load(&file).unwrap_or_else(|error| panic!("{error}"));
        assert_same_when_normal(&playbook);
    }
}

fn assert_same_when_normal(playbook: &Playbook) {
    let playbook = without_secrets(playbook.clone());
    let normal = playbook.to_yaml().unwrap();
    let again = Playbook::parse(&normal, Path::new("/elsewhere/normal.yaml"));
    assert_eq!(again.unwrap_or_else(|error| panic!("{error}\n{normal}")), playbook);
}

#[test]
fn the_normal_form_has_the_defaults_filled_in() {
    for source in [SOUND, RESTART, SCALE, REPLACE] {
        assert_same_when_normal(&parse(source).unwrap());
    }
    let file = Path::new("/etc/baton/upgrade.yaml");
    insta::assert_snapshot!("normal_upgrade", Playbook::parse(SOUND, file).unwrap().to_yaml().unwrap());
    insta::assert_snapshot!("normal_scale", Playbook::parse(SCALE, file).unwrap().to_yaml().unwrap());
    insta::assert_snapshot!("normal_replace", Playbook::parse(REPLACE, file).unwrap().to_yaml().unwrap());
    insta::assert_snapshot!("normal_restart", Playbook::parse(RESTART, file).unwrap().to_yaml().unwrap());
}

/// By `artifacts`, or by one `artifact` and the releases in between.
#[test]
fn a_way_over_several_releases_is_hop_after_hop() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/upgrade-hops.yaml");
    let source = fs::read_to_string(folder).unwrap();
    let hops_of = |source: &str| {
        let playbook = parse(source).unwrap_or_else(|error| panic!("{error}"));
        let hop = |hop: &Hop| (hop.from.to_string(), hop.to.to_string(), hop.artifact.source.clone());
        playbook.kind.hops().unwrap().iter().map(hop).collect::<Vec<_>>()
    };
    let by_release = hops_of(&source);
    let ways: Vec<_> = by_release.iter().map(|(from, to, _)| (from.as_str(), to.as_str())).collect();
    assert_eq!(ways, [(">=3.4.37, <3.5", "3.5.33"), ("=3.5.33", "3.6.14"), ("=3.6.14", "3.7.1")]);
    let (start, end) = (source.find("\nartifacts:").unwrap(), source.find("\nnodes:").unwrap());
    let one = "\nhops: [3.5.33, 3.6.14]\nartifact: { source: \"/srv/etcd-v{{version}}\", executable: etcd }\n";
    let of_one = hops_of(&format!("{}{one}{}", &source[..start], &source[end..]));
    let paths = of_one.iter().map(|(_, _, source)| serde_json::to_value(source).unwrap()["source"].clone());
    assert_eq!(paths.collect::<Vec<_>>(), ["/srv/etcd-v3.5.33", "/srv/etcd-v3.6.14", "/srv/etcd-v3.7.1"]);
    assert_same_when_normal(&parse(&source).unwrap());
}

#[test]
fn a_playbook_means_what_it_says() {
    let playbook = Playbook::parse(SOUND, Path::new("/etc/baton/upgrade.yaml")).unwrap();
    let Kind::Upgrade(hops) = &playbook.kind else { panic!("{:?}", playbook.kind) };
    let Hop { from, to, artifact } = hops.last();
    assert_eq!(from.to_string(), ">=3.5.32, <3.6");
    assert_eq!(to, &Release::new(3, 6, 14));
    let Source::Url { url, sha256 } = &artifact.source else { panic!("{:?}", artifact.source) };
    assert_eq!(url, "https://mirror.example/etcd-v3.6.14.tar.gz");
    assert_eq!(sha256.to_string(), "0123456789abcdef".repeat(4));
    assert_eq!(playbook.state_dir, Path::new("/etc/baton/state"));
    assert_eq!(playbook.cluster.auth.as_ref().unwrap().password_file, Path::new("/etc/baton/password"));
    assert_eq!(playbook.strategy.stall_timeout, Duration::from_secs(600));

    let Runtime::Process(process) = &playbook.nodes[0].runtime else { panic!() };
    let words = process.command_line(&playbook.nodes[0].context(to)).unwrap();
    assert_eq!(words, ["/opt/1/current", "--name", "orders-1", "--new"]);
    let Runtime::Command(command) = &playbook.node("orders-2").unwrap().runtime else { panic!() };
    assert_eq!(command.status, ["/etc/baton/status"]);
    assert_eq!(command.start[0], "sv");
}

#[test]
fn what_is_not_said_has_its_default() {
    let playbook = Playbook::parse(RESTART, Path::new("restart.yaml")).unwrap();
    assert_eq!(playbook.kind, Kind::Restart { id: "OPS-1742".into() });
    assert_eq!(playbook.target(), None);
    assert_eq!(playbook.state_dir, Path::new("/var/lib/baton/orders"));
    assert_eq!(playbook.cluster.election_timeout, Duration::from_secs(1));
    let Runtime::Process(process) = &playbook.nodes[0].runtime else { panic!() };
    assert_eq!(process.log, Path::new("/var/lib/baton/orders/orders-1.log"));
}

#[test]
fn members_are_named_and_a_newcomer_has_its_place() {
    let scale = Playbook::parse(SCALE, Path::new("/etc/baton/scale.yaml")).unwrap();
    assert_eq!(scale.kind, Kind::Scale { members: ["orders-1", "orders-2", "orders-3"].map(String::from).into() });
    let node = scale.node("orders-3").unwrap();
    assert_eq!(node.peer_urls, ["http://10.0.0.3:2380"]);
    assert_eq!(node.data_dir.as_deref(), Some(Path::new("/etc/baton/data/3")));
    let replace = parse(REPLACE).unwrap();
    assert_eq!(replace.kind, Kind::Replace { member: "orders-2".into(), by: "orders-4".into() });
    for playbook in [&scale, &replace] {
        assert!(playbook.nodes.iter().all(|node| node.may_join) && playbook.target().is_none());
    }
    // In whatever order they are written: hosts compare them.
    let other = parse(&SCALE.replace("[orders-1, orders-2, orders-3]", "[orders-3, orders-1, orders-2]")).unwrap();
    assert_eq!(other.kind, scale.kind);
    // It may be a member already, and one that comes back by its name was one.
    let bare = SCALE.lines().filter(|line| !line.contains("peer_urls") && !line.contains("data_dir"));
    assert!(parse(&bare.collect::<Vec<_>>().join("\n")).is_ok());
    assert!(parse(&REPLACE.replace("by: orders-4", "by: orders-2")).is_ok());
}

#[test]
fn https_endpoints_go_with_certificates() {
    let source = RESTART.replace("http://10.0.0.1:2379]", "https://10.0.0.1:2379/], tls: { ca: ca.pem }");
    let playbook = parse(&source).unwrap();
    assert_eq!(playbook.cluster.endpoints, ["https://10.0.0.1:2379"]);
    assert!(playbook.cluster.tls.unwrap().ca.is_absolute());
}
