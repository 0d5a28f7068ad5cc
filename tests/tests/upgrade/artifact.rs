//! Where the new release comes from: over a connection that breaks, from an archive, a folder, or a file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tests::{cluster::sha256, etcd::Etcd, playbook::Upgrade, rollout::Rollout, standing::Standing, web::Web};

use crate::{all_done, cluster};

/// A folder as etcd's own releases have it: executables beside their documentation.
fn folder(etcd: &Etcd, place: &Path) -> PathBuf {
    let folder = place.join(format!("etcd-v{}-linux-amd64", etcd.release));
    fs::create_dir_all(folder.join("Documentation")).expect("a folder");
    for name in ["etcd", "etcdctl"] {
        fs::copy(etcd.bin.join(name), folder.join(name)).expect("a copy");
    }
    fs::write(folder.join("README.md"), "# etcd\n").expect("written");
    fs::write(folder.join("Documentation/README.md"), "# more\n").expect("written");
    folder
}

/// That folder, packed as etcd's own releases are.
fn archive(etcd: &Etcd, place: &Path) -> PathBuf {
    let folder = folder(etcd, place);
    let name = folder.file_name().expect("a name").to_owned();
    let archive = place.join(format!("{}.tar.gz", name.display()));
    let packed =
        Command::new("tar").arg("-C").arg(place).args(["-I", "gzip -1", "-cf"]).arg(&archive).arg(name).status();
    assert!(packed.expect("tar").success());
    archive
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_fetched_over_connections_that_break() {
    let Some((cluster, to)) = cluster("3.4", "3.5", |_| {}).await else { return };
    let archive = archive(&to, &cluster.layout.dir);
    // Each host's first answer breaks in the middle, and one more.
    let web = Web::serve(&archive, 4).await.expect("a server");
    let upgrade = Upgrade {
        source: web.url.replace(&to.release.to_string(), "{{version}}").into(),
        artifact: vec![format!("sha256: \"{}\"", sha256(&archive).expect("readable")), "executable: etcd".into()],
        ..Upgrade::new(&cluster.layout, &to)
    };
    let playbooks = upgrade.write(&cluster.layout).expect("playbooks");
    let rollout = Rollout::begin(&cluster.layout, playbooks, &to.release).await.expect("under way");
    all_done(&rollout.run_all().await.expect("ended"));
    rollout.done().await.expect("sound");
    let asked = web.asked();
    assert_eq!(asked.iter().filter(|from| **from == 0).count(), 3, "each host began once: {asked:?}");
    assert_eq!(asked.iter().filter(|from| **from > 0).count(), 4, "and went on where it broke: {asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_has_the_release_in_another_form() {
    let Some((cluster, to)) = cluster("3.5", "3.6", |_| {}).await else { return };
    let place = cluster.layout.dir.clone();
    let sources = [archive(&to, &place), folder(&to, &place), to.executable()];
    let hosts = cluster.layout.members.iter().zip(sources);
    let playbooks = hosts.map(|(member, source)| {
        let mut upgrade = Upgrade { source, ..Upgrade::new(&cluster.layout, &to) };
        // An archive takes a loaded machine longer than a file.
        upgrade.strategy.push("gather: 30s".into());
        upgrade.write_host(&cluster.layout, &[member]).expect("a playbook")
    });
    let rollout = Rollout::begin(&cluster.layout, playbooks.collect(), &to.release).await.expect("under way");
    all_done(&rollout.run_all().await.expect("ended"));
    rollout.done().await.expect("sound");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_of_another_checksum_is_refused() {
    let Some((cluster, to)) = cluster("3.4", "3.5", |_| {}).await else { return };
    let archive = archive(&to, &cluster.layout.dir);
    let web = Web::serve(&archive, 0).await.expect("a server");
    let upgrade = Upgrade {
        source: web.url.clone().into(),
        artifact: vec![format!("sha256: \"{}\"", "0".repeat(64))],
        ..Upgrade::new(&cluster.layout, &to)
    };
    let playbooks = upgrade.write(&cluster.layout).expect("playbooks");
    let rollout = Rollout::begin(&cluster.layout, playbooks, &to.release).await.expect("under way");
    let before = Standing::of(&cluster.layout).await.expect("seen");
    for agent in rollout.run_all().await.expect("ended") {
        agent.must_be(3, "unprepared");
        assert!(agent.message().contains(&sha256(&archive).expect("readable")[..12]), "{}", agent.message());
    }
    assert_eq!(Standing::of(&cluster.layout).await.expect("seen"), before);
    assert_eq!(rollout.sound().await.expect("sound").observed.outages, []);
}
