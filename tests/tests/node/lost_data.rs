//! A member that has lost its data directory, or the end of its log, has promised what it does not remember: nobody talks
//! to it any more, or it ends.

use std::{fs, path::PathBuf, time::Duration};

use rustix::process::Signal;
use tests::{
    member::Member,
    wait::{self, GENEROUS},
};
use tokio::time::timeout;

use crate::{
    QUICK, nobody_panicked,
    refusal::{last, refusal},
    trial::agreed,
    up,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_without_its_data_is_told_so_and_not_taken_back() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let layout = &cluster.layout;
    let [first, .., last] = &layout.members[..] else { panic!("three members") };
    let (others, lost) = (layout.client(first).expect("a client"), layout.client(last).expect("a client"));
    others.put("before", "1").await.expect("written");
    last.end(Signal::KILL).expect("gone");
    fs::remove_dir_all(last.dir.join("data")).expect("removed");
    last.start().expect("started");
    wait::until("the member to be told", GENEROUS, || async {
        let log = fs::read_to_string(last.log()).map_err(|error| error.to_string())?;
        if log.contains("has lost its data directory") { Ok(()) } else { Err(log) }
    })
    .await
    .expect("told");
    others.put("after", "2").await.expect("the others go on");
    let read = timeout(Duration::from_secs(1), lost.get("before")).await;
    assert!(!matches!(read, Ok(Ok(_))), "it has nothing to say: {read:?}");
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
    fs::File::options().write(true).open(&file).and_then(|file| file.set_len(end as u64)).expect("cut");

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
