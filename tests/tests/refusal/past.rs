//! What their past has left in members' databases, and 3.6 would believe. Of etcd alone.

use std::{fs, path::Path};

use rustix::process::Signal;
use tests::{
    case::Case,
    ended::all_must_be,
    etcdctl::Etcdctl,
    mounted::Mounted,
    newcomers::data,
    rollout::{Ends as _, Rollout},
    skip::{build_or_skip, skip},
    system::System,
    wait::{self, GENEROUS},
};

use crate::{is_refused, untouched};

/// Which keeps two stores of the members, that may differ.
const DOUBTFUL: &str = "3.5.1";

/// Three members that were restored from a snapshot of four by `etcdctl` 3.4, which leaves the fourth in their databases; on a 3.5 that
/// lists them by the other store (etcd#20967).
async fn restored() -> Option<Case> {
    let (old, doubtful) = (build_or_skip(System::Etcd, "3.4")?, build_or_skip(System::Etcd, DOUBTFUL)?);
    let mut case = Case::path(System::Etcd, ("3.4", "3.6"), |_| {}).await?;
    let newcomers = case.newcomers(1);
    let fourth = case.add_by_hand(&newcomers.members[0]).await;
    let (tool, snapshot) = (Etcdctl::new(&old, None), case.layout().dir.join("snapshot"));
    tool.run(&[case.member(0).client_url.clone()], &["snapshot", "save", text(&snapshot)]).await;
    let members = &case.layout().members;
    members.iter().chain([&fourth]).for_each(|member| member.end(Signal::TERM).expect("ended"));
    let all: Vec<_> = members.iter().map(|member| format!("{}={}", member.name, member.peer_url())).collect();
    for member in members {
        fs::remove_dir_all(data(member)).expect("it had data");
        let (own, data) = (member.peer_url(), data(member));
        let told = [
            &["snapshot", "restore", text(&snapshot), "--name", &member.name, "--data-dir", text(&data)][..],
            &["--initial-cluster", &all.join(","), "--initial-advertise-peer-urls", &own],
        ];
        tool.run(&[], &told.concat()).await;
        member.install(&doubtful).expect("installed");
        member.start().expect("started");
    }
    case.cluster.ready().await.expect("ready again");
    case.upgrade.from = ">=3.5.1, <3.6".into();
    Some(case)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// How `agent check` of this way ends, by what a gate in CI would see: the exit code, the hazards for which it is refused, the message.
pub(crate) async fn checked(case: &Case, to: &str, more: &[&str]) -> (i32, Vec<String>, String) {
    let endpoints = case.layout().endpoints().join(",");
    let mut command = tokio::process::Command::new(tests::agent::executable().expect("an agent"));
    command.args(["check", "--to", to, "--endpoints", &endpoints, "--output", "json"]).args(more).kill_on_drop(true);
    let output = tokio::time::timeout(GENEROUS, command.output()).await.expect("it ends").expect("it runs");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
    let hazards = said["check"]["hazards"].as_array().into_iter().flatten();
    let refused = hazards.filter(|hazard| hazard["act"] == "refuse" && hazard["accepted"] == false);
    let refused = refused.map(|hazard| hazard["id"].as_str().expect("an id").to_owned()).collect();
    (output.status.code().expect("it ends by itself"), refused, said["message"].as_str().expect("words").to_owned())
}

/// A member that was just started may not be ready, and then no way is clear.
pub(crate) async fn clear(case: &Case, to: &str, more: &[&str]) {
    let clear = wait::until("the way to be clear", GENEROUS, || async {
        let (exit, _, message) = checked(case, to, more).await;
        (exit == 0).then_some(()).ok_or(message)
    });
    clear.await.expect("it is clear");
}

async fn refused_by_each(rollout: &Rollout, words: &[&str]) {
    rollout.one("plan", 1).await.must_be(3, "hazard");
    for agent in is_refused(rollout, [0, 1, 2], (3, "hazard"), words).await {
        assert!(agent.said("next").contains("agent hazards --explain "), "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_a_restore_left_are_found_before_they_come_back() {
    let Some(case) = restored().await else { return };
    let Some(sound) = build_or_skip(System::Etcd, "3.5") else { return };
    let accepted = ["--accept-hazard", "floor-36"];
    let (exit, refused, message) = checked(&case, &case.to.release.to_string(), &accepted).await;
    assert_eq!((exit, &refused[..]), (3, &["zombie-members".to_owned()][..]), "{message}");
    // Nothing that a database shows matters on the way to 3.5.30, which mends it.
    clear(&case, &sound.release.to_string(), &accepted).await;
    // So the whole way is clear as well, by that patch; the hop behind it has to be looked at again.
    clear(&case, &case.to.release.to_string(), &["--via", &sound.release.to_string()]).await;
    let case = case.strategy(&["accept_hazards: [floor-36]"]);
    let mut rollout = case.begin().await;
    refused_by_each(&rollout, &["zombie-members, of m", "which shows it by "]).await;

    // Where it could not be read, nobody knows: a host without room for it takes nobody down either.
    let own = rollout.member(0).state_dir();
    match Mounted::tmpfs(&own, 8 << 20) {
        Ok(small) => {
            is_refused(&rollout, [0], (3, "unprepared"), &["m1: whether its database is fit", "has room for"]).await;
            drop(small);
        }
        Err(error) => skip(&format!("no file system can be mounted: {error}")),
    }

    // As the remedy says: that patch on all of them, and another look.
    for index in 0..3 {
        let member = rollout.member(index);
        member.install(&sound).expect("installed");
        member.end(Signal::TERM).expect("ended");
        member.start().expect("started");
        rollout.cluster.ready().await.expect("ready again");
    }
    clear(&rollout, &rollout.to.release.to_string(), &[]).await;
    all_must_be(&rollout.together().await, 0, "done");
    rollout.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voter_that_would_be_a_learner_again_is_found() {
    let Some(case) = Case::path(System::Etcd, (DOUBTFUL, "3.6"), |_| {}).await else { return };
    let newcomers = case.newcomers(1);
    case.promote_by_hand(&newcomers.members[0]).await;
    let (exit, refused, message) = checked(&case, &case.to.release.to_string(), &["--accept-hazard", "floor-36"]).await;
    assert_eq!((exit, &refused[..]), (3, &["learner-returns".to_owned()][..]), "{message}");
    let (exit, refused, message) = checked(
        &case,
        &case.to.release.to_string(),
        &["--accept-hazard", "floor-36", "--accept-hazard", "learner-returns"],
    )
    .await;
    assert_eq!((exit, refused.len()), (0, 0), "{message}");
    assert!(message.ends_with("but for floor-36, learner-returns"), "{message}");
    let case = case.strategy(&["join_window: 2s"]);
    let rollout = case.begin().await;
    let more = ["--accept-hazard", "floor-36"];
    let agent = rollout.start_with("run", 0, &more).ends().await;
    agent.must_be(3, "hazard");
    assert!(agent.message().contains("learner-returns, of m1"), "{agent}");
    untouched(rollout).await;
}
