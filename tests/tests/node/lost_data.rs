//! A member that has lost its data directory, or the end of its log, has promised what it does not remember: nobody talks
//! to it any more, or it ends.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    QUICK, nobody_panicked,
    refusal::{last, refusal},
    trial::agreed,
    up,
};
use rustix::process::Signal;
use tests::{
    member::Member,
    wait::{self, GENEROUS},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_without_its_data_ends_at_every_start_and_is_not_taken_back() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let layout = &cluster.layout;
    let [first, .., last] = &layout.members[..] else { panic!("three members") };
    let others = layout.client(first).expect("a client");
    others.put("before", "1").await.expect("written");
    last.end(Signal::KILL).expect("gone");
    fs::remove_dir_all(last.dir.join("data")).expect("removed");
    for start in 1..=4 {
        let said = refusal(last, &last.flags).await;
        assert!(said.contains("has lost its data directory: "), "start {start}: {said}");
    }
    others.put("after", "2").await.expect("the others go on");
    nobody_panicked(layout);
}

/// One disk is lost, and the only other member that is there was away for what was written last: the two do not go on without
/// it, however often the one that lost its disk is started.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_a_disk_that_is_lost_while_others_are_away() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let layout = &cluster.layout;
    let [first, second, third] = &layout.members[..] else { panic!("three members") };
    let writer = layout.client(first).expect("a client");
    agreed(&cluster).await;
    second.end(Signal::KILL).expect("killed");
    for number in 0..5 {
        writer.put(&format!("acked{number}"), "1").await.expect("two of three are there");
    }
    for member in [first, third] {
        member.end(Signal::KILL).expect("killed");
    }
    fs::remove_dir_all(third.dir.join("data")).expect("removed");
    second.start().expect("started");
    for start in 1..=4 {
        let said = refusal(third, &third.flags).await;
        assert!(said.contains("has lost its data directory: "), "start {start}: {said}");
    }
    first.start().expect("started");
    let reader = layout.client(second).expect("a client");
    wait::until("the two to serve", GENEROUS, || async {
        reader.get("acked4").await.map_err(|error| error.to_string()).map(drop)
    })
    .await
    .expect("they serve");
    for number in 0..5 {
        let read = reader.get(&format!("acked{number}")).await.expect("read");
        assert_eq!(read.map(|pair| pair.value).as_deref(), Some(&b"1"[..]), "acked{number}");
    }
    nobody_panicked(layout);
}

/// The file that a member's log is written to, and its bytes up to the last that is not zero.
fn log_of(member: &Member) -> (PathBuf, usize) {
    let file = last(&member.dir.join("data/wal"), "wal");
    let bytes = fs::read(&file).expect("readable");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("it holds something") + 1;
    (file, end)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_has_lost_the_end_of_its_log_ends_and_says_why() {
    let Some(cluster) = up("3.6", &[]).await else { return };
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader");
    let member = layout.members.iter().find(|member| member.name != leader.name).expect("a follower");
    let others = layout.client(leader).expect("a client");
    others.put("before", "1").await.expect("written");
    agreed(&cluster).await;
    let (file, end) = log_of(member);
    for number in 0..20 {
        others.put(&format!("k{number}"), "v").await.expect("written");
    }
    agreed(&cluster).await;
    member.end(Signal::KILL).expect("killed");
    let whole = fs::read(&file).expect("readable");
    // As a disk that has never taken it: the file is as long as it was.
    let mut lost = whole.clone();
    lost[end..].fill(0);
    fs::write(&file, lost).expect("lost");

    for _ in ["at once", "and as often as it is started"] {
        let said = refusal(member, &member.flags).await;
        assert!(said.contains("its disk has lost the end of its log: it had acknowledged entry "), "{said}");
        assert!(said.contains("remove the member, empty its data directory and add it again"), "{said}");
        println!("{said}");
    }
    others.put("after", "2").await.expect("the others go on");
    assert_eq!(layout.leader().await.expect("a leader").name, leader.name, "nobody was disturbed");
    assert!(
        fs::read_to_string(leader.log()).expect("a log").contains("has lost the end of its log"),
        "the leader knows"
    );

    fs::write(&file, whole).expect("brought back");
    member.start().expect("started");
    cluster.ready().await.expect("it is back");
    agreed(&cluster).await;
    nobody_panicked(layout);
}

/// Alone and in pairs: whatever is missing, the rest says that it was there.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_data_directory_that_is_missing_is_named_at_the_start() {
    let Some(cluster) =
        up("3.6", &[&QUICK[..], &["--snapshot-count=5", "--snapshot-catchup-entries=1"]].concat()).await
    else {
        return;
    };
    let layout = &cluster.layout;
    let client = layout.client(&layout.members[0]).expect("a client");
    for number in 0..30 {
        client.put(&format!("k{number}"), "v").await.expect("written");
    }
    agreed(&cluster).await;
    let member = &layout.members[2];
    member.end(Signal::KILL).expect("killed");
    let (data, whole) = (member.dir.join("data"), member.dir.join("whole"));
    fs::rename(&data, &whole).expect("put aside");
    for (kept, named) in [
        (&["snap", "identity"][..], "wal/*.wal"),
        (&["wal", "identity"], "snap/*.snap"),
        (&["wal", "snap"], "identity"),
        (&["identity"], "wal/*.wal"),
        (&["wal"], "identity"),
        (&["snap"], "identity"),
    ] {
        fs::create_dir(&data).expect("made");
        for part in kept {
            copy(&whole.join(part), &data.join(part));
        }
        for _ in ["at once", "and as often as it is started"] {
            let said = refusal(member, &member.flags).await;
            assert!(said.contains(&format!("data/{named} is missing, and the rest")), "{kept:?} are left: {said}");
        }
        fs::remove_dir_all(&data).expect("removed");
    }
    fs::rename(&whole, &data).expect("brought back");
    member.start().expect("started");
    cluster.ready().await.expect("it is back");
    agreed(&cluster).await;
    nobody_panicked(layout);
}

/// What was written while two were there outlives them: a copy from before the last start of one of them counts that start once
/// more, and the third member knows it from the start that it has heard of. Killed, it knows that from the end of its log alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_from_before_a_start_that_another_has_heard_of_is_not_taken_back() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let layout = &cluster.layout;
    let [first, second, third] = &layout.members[..] else { panic!("three members") };
    let (data, older) = (first.dir.join("data"), first.dir.join("older"));
    agreed(&cluster).await;
    first.end(Signal::KILL).expect("killed");
    copy(&data, &older);
    first.start().expect("started");
    cluster.ready().await.expect("it is back, and has said so");
    agreed(&cluster).await;
    third.end(Signal::KILL).expect("killed");
    let writer = layout.client(second).expect("a client");
    wait::until("the two to serve", GENEROUS, || async {
        writer.put("acked", "1").await.map_err(|error| error.to_string()).map(drop)
    })
    .await
    .expect("they serve");
    for member in [first, second] {
        member.end(Signal::KILL).expect("killed");
    }
    fs::remove_dir_all(&data).expect("removed");
    copy(&older, &data);
    third.start().expect("started");
    for start in 1..=3 {
        let said = refusal(first, &first.flags).await;
        assert!(said.contains("has lost its data directory: it has an older copy of it"), "start {start}: {said}");
    }
    second.start().expect("started");
    let reader = layout.client(third).expect("a client");
    wait::until("the two to serve", GENEROUS, || async {
        reader.get("acked").await.map_err(|error| error.to_string()).map(drop)
    })
    .await
    .expect("they serve");
    assert!(reader.get("acked").await.expect("read").is_some(), "what was acknowledged is there");
    nobody_panicked(layout);
}

/// A part that is of another time than the rest says so itself, without anybody who knows better.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_data_directory_that_is_older_than_the_rest_is_named_at_the_start() {
    let flags = [&QUICK[..], &["--snapshot-count=5", "--snapshot-catchup-entries=1"]].concat();
    let Some(cluster) = up("3.6", &flags).await else { return };
    let layout = &cluster.layout;
    let client = layout.client(&layout.members[0]).expect("a client");
    let member = &layout.members[2];
    let (data, older, whole) = (member.dir.join("data"), member.dir.join("older"), member.dir.join("whole"));
    for round in 0..3 {
        for number in 0..20 {
            client.put(&format!("k{number}"), &round.to_string()).await.expect("written");
        }
        agreed(&cluster).await;
        member.end(Signal::KILL).expect("killed");
        if round == 0 {
            copy(&data, &older);
        }
        if round < 2 {
            member.start().expect("started");
            cluster.ready().await.expect("it is back");
        }
    }
    fs::rename(&data, &whole).expect("put aside");
    let say = async |named: &str| {
        for _ in ["at once", "and as often as it is started"] {
            let said = refusal(member, &member.flags).await;
            assert!(
                said.contains(&format!("data/{named} is an older copy than the rest of the data directory")),
                "{said}"
            );
            assert!(said.contains("remove the member, empty its data directory and add it again"), "{said}");
        }
    };
    for part in ["wal", "snap", "identity"] {
        copy(&whole, &data);
        remove(&data.join(part));
        copy(&older.join(part), &data.join(part));
        say(part).await;
        fs::remove_dir_all(&data).expect("removed");
    }
    copy(&whole, &data);
    fs::remove_file(data.join("wal/starts")).expect("removed");
    let said = refusal(member, &member.flags).await;
    assert!(said.contains("data/wal/starts is missing, and the rest"), "{said}");
    fs::remove_dir_all(&data).expect("removed");

    fs::rename(&whole, &data).expect("brought back");
    member.start().expect("started");
    cluster.ready().await.expect("it is back");
    agreed(&cluster).await;
    nobody_panicked(layout);
}

/// A file, or a folder of files.
fn remove(path: &Path) {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
}

/// A file, or a folder of files.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir(to).expect("made");
        for entry in fs::read_dir(from).expect("readable") {
            let entry = entry.expect("an entry");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).expect("copied");
    }
}
