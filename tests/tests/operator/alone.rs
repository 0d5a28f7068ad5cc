//! A member that comes back and has forgotten all others, by whoever's hand: nothing makes that good, so it is said at once.

use tests::{case::Case, rollout::Ends as _, system::System};

/// Ends the member with this pid, and starts it anew as the cluster's only one; the rest is its command line.
const FORCED: &str = "kill -TERM $0; while kill -0 $0 2>/dev/null; do sleep 0.1; done; \
                      ETCD_FORCE_NEW_CLUSTER=true setsid \"$@\" >/dev/null 2>&1 </dev/null &";

/// Real etcd alone has the flag.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_whose_command_makes_a_cluster_of_one_says_so() {
    let Some(case) = Case::of(System::Etcd).await else { return };
    let rollout = case.begin().await;
    let member = rollout.layout().members[0].clone();
    let pid = rollout.pids()[0].expect("it runs").to_string();
    let line = [member.binary().display().to_string()].into_iter().chain(member.flags.clone());
    let words = ["--", "/bin/sh", "-c", FORCED, &pid].map(str::to_owned).into_iter().chain(line);
    let words: Vec<_> = words.collect();
    let ended = rollout.start_with("guard", 0, &words.iter().map(String::as_str).collect::<Vec<_>>()).ends().await;
    ended.must_be(1, "alone");
    for other in &rollout.layout().members[1..] {
        assert!(ended.message().contains(&other.name), "{ended}");
    }
    assert!(member.is_running(), "it was left as it is");
}
