//! What is not restored: a member that may have served, and a cluster beside one that serves.

use std::{fs, path::Path};

use rustix::process::Signal;
use serde_json::Value;
use tests::{agent::Agent, ended::all_must_be, on_both, rollout::Ends as _, system::System};

use super::{Saved, archives, saved, until_read};

on_both! {
    a_member_that_may_have_served_is_not_made_again, node #[ignore = "slow: etcd's row shows the same"];
    what_is_in_hand_does_not_replace_a_cluster_that_serves_by_now, node #[ignore = "slow: etcd's row shows the same"];
    a_record_that_cannot_be_written_is_told_with_what_was_done, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Where the old data of a member is.
fn archive(data: &Path) -> std::path::PathBuf {
    let mut entries =
        fs::read_dir(data.parent().expect("a folder")).expect("read").map(|entry| entry.expect("an entry"));
    let is_archive = |name: &str| name.starts_with("data.archived-");
    entries.find(|entry| is_archive(&entry.file_name().to_string_lossy())).expect("an archive").path()
}

impl Saved {
    fn record(&self, index: usize) -> std::path::PathBuf {
        self.case.member(index).state_dir().join("restore")
    }

    /// As an agent leaves it that is killed before it writes that all is done.
    fn is_placing_again(&self, index: usize) {
        let mut record: Value =
            serde_json::from_slice(&fs::read(self.record(index)).expect("read")).expect("an object");
        record["phase"] = "placing".into();
        fs::write(self.record(index), record.to_string()).expect("written");
    }
}

async fn a_member_that_may_have_served_is_not_made_again(system: System) {
    let Some(saved) = saved(system).await else { return };
    all_must_be(&saved.all(&["--discard-cluster"]).await, 0, "restored");
    saved.must_be_as_saved().await;
    let (data, member) = (saved.data(2), saved.case.member(2));
    let (old, kept) = (archive(&data), data.with_file_name("kept"));
    member.end(Signal::TERM).expect("ended");
    fs::rename(&data, &kept).expect("moved");
    for is_placing in [false, true] {
        if is_placing {
            saved.is_placing_again(2);
        }
        let record = fs::read(saved.record(2)).expect("read");
        // Data of the old cluster in its place, as a person puts it back; then none at all.
        fs::rename(&old, &data).expect("moved");
        for more in [&[][..], &["--check"], &["--discard-cluster"]] {
            saved.start(2, more).ends().await.must_be(3, "unprepared");
        }
        fs::rename(&data, &old).expect("moved");
        for more in [&[][..], &["--check"], &["--discard-cluster"]] {
            saved.start(2, more).ends().await.must_be(3, "data_gone");
        }
        assert_eq!(fs::read(saved.record(2)).expect("read"), record);
        assert!(!data.exists() && !member.is_running());
    }
    // What is in hand may be given up, and is no more forgotten by that.
    saved.start(2, &["--give-up"]).ends().await.must_be(0, "given_up");
    saved.start(2, &["--give-up"]).ends().await.must_be(3, "unprepared");
    saved.start(2, &[]).ends().await.must_be(3, "unprepared");
    // Without the record the new cluster says that it has served, whatever lies in its place.
    fs::remove_file(saved.record(2)).expect("gone");
    fs::rename(&old, &data).expect("moved");
    saved.start(2, &["--discard-cluster"]).ends().await.must_be(3, "unprepared");
    fs::rename(&data, &old).expect("moved");
    // With its data it goes on.
    fs::rename(&kept, &data).expect("moved");
    saved.start(2, &["--discard-cluster"]).ends().await.must_be(0, "restored");
    saved.must_be_as_saved().await;
}

async fn what_is_in_hand_does_not_replace_a_cluster_that_serves_by_now(system: System) {
    let Some(saved) = saved(system).await else { return };
    for index in [1, 2] {
        saved.case.member(index).end(Signal::KILL).expect("killed");
    }
    assert!(saved.is_killed_at("renameat2", 1, &[]).await, "old and new data are exchanged by it");
    for index in [1, 2] {
        saved.case.member(index).start().expect("started");
    }
    assert!(until_read(&saved.case.client(1), "since").await, "the old cluster serves again");
    for more in [&["--check"][..], &[]] {
        saved.start(0, more).ends().await.must_be(3, "cluster_serves");
    }
    assert_eq!(archives(&saved.data(0)), 0, "nothing was exchanged");
    let run = || async { Agent::start("run", &saved.playbooks[0], &["--yes"]).expect("started").ends().await };
    run().await.must_be(3, "restoring");
    saved.start(0, &["--give-up"]).ends().await.must_be(0, "given_up");
    run().await.must_succeed();
    assert!(saved.case.member(0).is_running());
    assert!(until_read(&saved.case.client(0), "since").await, "it has its old data");
    // It was never in the new cluster, and so may still be.
    let agents = saved.all(&["--discard-cluster"]).await;
    all_must_be(&agents, 0, "restored");
    saved.must_be_as_saved().await;
}

#[allow(clippy::panic, reason = "a test that cannot go on fails")]
async fn a_record_that_cannot_be_written_is_told_with_what_was_done(system: System) {
    let Some(saved) = saved(system).await else { return };
    // The first record says that it begins; another file may be replaced before the one that says that it is done.
    for nth in 2..=4 {
        let name = format!("from-{nth}");
        let more = ["--again", &name, "--discard-cluster"];
        let agent = saved.start_under_strace("renameat", &format!("error=ENOSPC:when={nth}+"), &more).ends().await;
        assert_eq!(agent.exit, Some(1), "{agent}");
        assert!(!agent.said("left").contains("nothing was touched"), "{agent}");
        if archives(&saved.data(0)) > 0 {
            assert_eq!(agent.reason(), "state_dir", "{agent}");
            assert!(agent.said("left").contains(&*archive(&saved.data(0)).to_string_lossy()), "{agent}");
            all_must_be(&saved.all(&more).await, 0, "restored");
            return;
        }
    }
    panic!("the last record was never the one that failed");
}

mod etcd_alone {
    use super::*;

    fn members_of(saved: &Saved, index: usize) -> String {
        let flag = "--listen-peer-urls=";
        let member = saved.case.member(index);
        let url = member.flags.iter().find_map(|flags| flags.strip_prefix(flag)).expect("a URL");
        format!(
            "{{ members: {{ {}: [\"{url}\"] }}, tool: {} }}",
            member.name,
            saved.case.from.bin.join("etcdutl").display()
        )
    }

    /// A playbook of the first host, by which it would be the new cluster alone.
    fn goes_alone(saved: &Saved, endpoints: Vec<String>) {
        let mut upgrade = saved.case.upgrade.clone();
        upgrade.extra.retain(|line| !line.starts_with("restore:"));
        upgrade.extra.push(format!("restore: {}", members_of(saved, 0)));
        upgrade.endpoints = endpoints;
        saved.case.write_one(0, &upgrade);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_host_makes_no_cluster_beside_one_that_its_endpoints_do_not_lead_to() {
        let Some(saved) = saved(System::Etcd).await else { return };
        let own = saved.case.layout().endpoints()[0].clone();
        goes_alone(&saved, vec![own]);
        saved.case.member(0).end(Signal::TERM).expect("ended");
        for more in [&[][..], &["--discard-cluster"]] {
            saved.start(0, more).ends().await.must_be(3, "cluster_serves");
        }
        assert_eq!(archives(&saved.data(0)), 0);
        // The others may go first.
        for index in [1, 2] {
            saved.case.member(index).end(Signal::TERM).expect("ended");
        }
        saved.start(0, &[]).ends().await.must_be(0, "restored");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_tells_nobody_whether_it_serves_is_judged_by_its_voters() {
        let Some(saved) = saved(System::Etcd).await else { return };
        goes_alone(&saved, Vec::new());
        saved.case.client(0).enable_auth("secret", ("guest", "welcome")).await.expect("auth is on");
        let pids = saved.case.pids();
        for more in [&[][..], &["--discard-cluster"]] {
            saved.start(0, more).ends().await.must_be(3, "cluster_serves");
        }
        assert_eq!(saved.case.pids(), pids);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_tells_nobody_who_has_served_has_no_member_made_again() {
        let Some(saved) = saved(System::Etcd).await else { return };
        all_must_be(&saved.all(&["--discard-cluster"]).await, 0, "restored");
        saved.must_be_as_saved().await;
        saved.case.client(0).enable_auth("secret", ("guest", "welcome")).await.expect("auth is on");
        saved.case.member(2).end(Signal::KILL).expect("killed");
        fs::remove_dir_all(saved.data(2)).expect("gone");
        fs::remove_file(saved.record(2)).expect("gone");
        saved.start(2, &[]).ends().await.must_be(3, "auth_refused");
        assert!(!saved.data(2).exists());
    }
}
