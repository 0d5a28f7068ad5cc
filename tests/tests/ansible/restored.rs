//! A cluster of units that has lost its majority, made anew on all hosts by one play.

use tests::{
    client::{Access, Client},
    system::System,
};

use crate::{
    play::Stage,
    site::{Site, UNIT},
};

async fn has(url: &str, key: &str) -> bool {
    let client = Client::new(url, &Access::default()).expect("a client");
    client.get(key).await.expect("it serves").is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_lost_two_disks_is_restored_by_one_play() {
    let Some(site) = Site::clusters(System::Etcd, System::Etcd.main_job(), &[3]).await else { return };
    let site = site.with_agents().with_units().await;
    let Some(stage) = Stage::new(&site) else { return };
    let window = ["-e", "join_window=60s"];
    stage.play(&window).await.must_succeed();

    let endpoints = site.endpoints();
    let client = Client::new(&endpoints[0], &Access::default()).expect("a client");
    client.put("saved", "value").await.expect("put");
    let first = &site.hosts[0];
    first.must(&["mkdir", "-m", "700", "/srv/backups"]).expect("made");
    first.must(&["/usr/local/bin/agent", "backup", "/etc/baton/upgrade.yaml", "--dir", "/srv/backups"]).expect("saved");
    let name = first.must(&["ls", "/srv/backups"]).expect("listed");
    client.put("since", "value").await.expect("put");
    for host in &site.hosts[1..] {
        host.must(&["systemctl", "stop", UNIT]).expect("stopped");
        host.must(&["rm", "-rf", "/srv/member/data"]).expect("gone");
    }
    let utl = site.to.bin.join("etcdutl");
    site.hosts.iter().for_each(|host| host.install(&utl, "/usr/local/bin/etcdutl").expect("copied"));

    let saved = first.path("/srv/backups").join(name.trim());
    let src = format!("baton_restore_src={}", saved.display());
    let arguments = ["-e", &src, "-e", "baton_restore_from=/srv/saved.db"];
    let planned = stage.restore(&[&["--check"][..], &arguments].concat()).await;
    planned.must_succeed();
    assert!(first.must(&["pgrep", "-x", "etcd"]).is_ok(), "nothing was touched");

    let played = stage.restore(&arguments).await;
    played.must_succeed();
    assert_eq!(played.changed(), ["h1", "h2", "h3"]);
    for url in &endpoints {
        assert!(has(url, "saved").await && !has(url, "since").await, "{url}");
    }
    assert!(first.must(&["sh", "-c", "ls -d /srv/member/data.archived-*"]).is_ok(), "its old data is kept");
    for host in &site.hosts {
        assert_eq!(host.must(&["systemctl", "is-active", UNIT]).expect("it is told").trim(), "active");
    }
    let again = stage.restore(&arguments).await;
    again.must_succeed();
    assert!(again.changed().is_empty(), "{}", again.text);
}
