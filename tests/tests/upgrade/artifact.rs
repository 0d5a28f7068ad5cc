//! Where the new release comes from: over a connection that breaks, from an archive, a folder, or a file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
use tests::{
    case::Case,
    cluster::sha256,
    ended::all_must_be,
    on_both,
    playbook::Upgrade,
    system::{Build, System},
    wait,
    web::Web,
};

on_both! {
    an_archive_is_fetched_over_connections_that_break, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: an archive is fetched by default"]
    each_host_has_the_release_in_another_form;
    an_agent_that_reads_its_artifact_can_be_interrupted, etcd #[ignore = "slow: the node's row shows the same"];
    an_archive_of_another_checksum_is_refused, etcd #[ignore = "slow: the node's row shows the same"];
}

/// A folder as etcd's own releases have it: executables beside their documentation.
fn folder(build: &Build, place: &Path) -> PathBuf {
    let folder = place.join(format!("{}-v{}-linux-amd64", build.system, build.release));
    fs::create_dir_all(folder.join("Documentation")).expect("a folder");
    let executables: &[&str] = match build.system {
        System::Node => &["node"],
        System::Etcd => &["etcd", "etcdctl"],
    };
    for name in executables {
        fs::copy(build.bin.join(name), folder.join(name)).expect("a copy");
    }
    fs::write(folder.join("README.md"), "# read me\n").expect("written");
    fs::write(folder.join("Documentation/README.md"), "# more\n").expect("written");
    folder
}

/// That folder, packed as etcd's own releases are.
fn archive(build: &Build, place: &Path) -> PathBuf {
    let folder = folder(build, place);
    let name = folder.file_name().expect("a name").to_owned();
    let archive = place.join(format!("{}.tar.gz", name.display()));
    let packed =
        Command::new("tar").arg("-C").arg(place).args(["-I", "gzip -1", "-cf"]).arg(&archive).arg(name).status();
    assert!(packed.expect("tar").success());
    archive
}

async fn an_archive_is_fetched_over_connections_that_break(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    let archive = archive(&case.to, &case.layout().dir);
    // Each host's first answer breaks in the middle, and one more.
    let web = Web::serve(&archive, 4).await.expect("a server");
    case.upgrade.source = web.url.replace(&case.to.release.to_string(), "{{version}}").into();
    let checksum = format!("sha256: \"{}\"", sha256(&archive).expect("readable"));
    case.upgrade.artifact = vec![checksum, format!("executable: {system}")];
    let rollout = case.begin().await;
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.done().await;
    let asked = web.asked();
    assert_eq!(asked.iter().filter(|from| **from == 0).count(), 3, "each host began once: {asked:?}");
    assert_eq!(asked.iter().filter(|from| **from > 0).count(), 4, "and went on where it broke: {asked:?}");
}

async fn each_host_has_the_release_in_another_form(system: System) {
    let Some(case) = Case::path(system, ("3.5", "3.6"), |_| {}).await else { return };
    let place = &case.layout().dir;
    let sources = [archive(&case.to, place), folder(&case.to, place), case.to.executable()];
    // An archive takes a loaded machine longer than a file.
    let rollout = case.strategy(&["join_window: 30s"]).begin().await;
    for (host, source) in sources.into_iter().enumerate() {
        rollout.write_one(host, &Upgrade { source, ..rollout.upgrade.clone() });
    }
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.done().await;
}

/// A file of nothing, as large as an artifact may be, stands for an archive that takes minutes to read.
async fn an_agent_that_reads_its_artifact_can_be_interrupted(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    let large = case.layout().dir.join("release.tar.gz");
    fs::File::create(&large).expect("made").set_len(4 << 30).expect("a length");
    case.upgrade.source = large.clone();
    let rollout = case.begin().await;
    let before = rollout.raft_status().await;
    let agent = rollout.start(0);
    let reads = || {
        let open = fs::read_dir(format!("/proc/{}/fd", agent.pid())).map_err(|error| error.to_string())?;
        let mut open = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        open.find(|path| *path == large).map(drop).ok_or_else(|| "it does not".to_owned())
    };
    wait::until_blocking("the agent to read its artifact", wait::GENEROUS, reads).expect("it reads");
    agent.process().expect("it runs").signal(Signal::INT).expect("told");
    let ended = agent.ended(wait::GENEROUS).await.expect("an end");
    ended.must_be(10, "interrupted");
    assert_eq!(rollout.raft_status().await, before);
    rollout.end(0).await;
}

async fn an_archive_of_another_checksum_is_refused(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    let archive = archive(&case.to, &case.layout().dir);
    let web = Web::serve(&archive, 0).await.expect("a server");
    case.upgrade.source = web.url.clone().into();
    case.upgrade.artifact = vec![format!("sha256: \"{}\"", "0".repeat(64))];
    let rollout = case.begin().await;
    let before = rollout.raft_status().await;
    for agent in rollout.all("run").await {
        agent.must_be(3, "unprepared");
        assert!(agent.message().contains(&sha256(&archive).expect("readable")[..12]), "{}", agent.message());
    }
    assert_eq!(rollout.raft_status().await, before);
    rollout.end(0).await;
}
