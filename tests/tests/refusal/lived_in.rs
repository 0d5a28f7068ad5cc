//! A cluster with a past that is to go from 3.4 to 3.7, with each thing in its way, one after the other: refused, and untouched.

use tests::{
    case::Case,
    member::Member,
    past::{had_users, replaced, restored},
    playbook::started_by_the_agent,
    rollout::Rollout,
    system::System,
};

use crate::{differing, is_refused, v2};

/// Old flags that somebody has left in the playbook: from which release on, which, and what is said of it.
const FLAGS: [(&str, &str, &str, &str); 4] = [
    (">=3.5", "--logger=capnslog", "unprepared", "`capnslog`"),
    (">=3.6", "--enable-v2", "unprepared", "enable-v2"),
    (">=3.7", "--experimental-initial-corrupt-check", "unprepared", "experimental-initial-corrupt-check"),
    (">=3.5", "--unsafe-no-fsync", "hazard", "no-fsync"),
];

/// As the agent starts it; the v2 API is on until 3.5, as it was all the time.
fn told(member: &Member, args: &str, env: &str) -> Vec<String> {
    let mut lines = started_by_the_agent(member);
    lines.retain(|line| !line.contains(v2::ON));
    lines.push(format!("args: [{{ for: \"<3.6\", add: [{}] }}{args}]", v2::ON));
    lines.extend((!env.is_empty()).then(|| format!("env: {{ {env} }}")));
    lines
}

fn with_flag<const AT: usize>(member: &Member) -> Vec<String> {
    let (releases, flag, ..) = FLAGS[AT];
    told(member, &format!(", {{ for: \"{releases}\", add: [{flag}] }}"), "")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: minutes, and 3.7 is built from source"]
async fn each_hazard_in_the_way_of_a_cluster_with_a_past_is_refused_and_touches_nothing() {
    let case = Case::path(System::Etcd, ("3.4", "3.7"), |spec| {
        spec.flags.extend([v2::ON, "--snapshot-count=10"].map(str::to_owned));
    });
    let Some(mut case) = case.await.and_then(|case| case.over(&["3.5", "3.6"])) else { return };
    restored(&case).await;
    replaced(&case, "m3", false).await;
    replaced(&case, "m2", true).await;
    had_users(&case).await;
    case = case.strategy(&["join_window: 1s", "accept_hazards: [v2-still-on]"]);
    case.upgrade.runtime = |member| told(member, "", "");
    let mut rollout = case.begin().await;
    let (sound, before) = (rollout.upgrade.clone(), rollout.pids());
    rollout.one("plan", 0).await.must_be(0, "planned");

    let flags = [with_flag::<0>, with_flag::<1>, with_flag::<2>, with_flag::<3>];
    for (runtime, (.., reason, words)) in flags.into_iter().zip(FLAGS) {
        rollout.upgrade.runtime = runtime;
        stands_in_the_way(&rollout, reason, &[words]).await;
    }
    rollout.upgrade.runtime = |member| told(member, "", "ETCD_LOG_PACKAGE_LEVELS: etcdserver=INFO");
    stands_in_the_way(&rollout, "hazard", &["setting-lost", "ETCD_LOG_PACKAGE_LEVELS"]).await;
    rollout.upgrade.runtime = |member| told(member, "", "GODEBUG: x509sha1=1");
    stands_in_the_way(&rollout, "hazard", &["environment-differs", "GODEBUG"]).await;
    rollout.upgrade = sound.clone();

    rollout.upgrade.between.remove(0);
    stands_in_the_way(&rollout, "hazard", &["skip-minor-36"]).await;
    rollout.upgrade = sound;

    v2::ask(&rollout, reqwest::Method::PUT, "old").await;
    v2::snapshots(&rollout).await;
    stands_in_the_way(&rollout, "hazard", &["v2-content-snap", "the start fails"]).await;
    v2::ask(&rollout, reqwest::Method::DELETE, "old").await;
    v2::snapshots(&rollout).await;
    rollout.one("plan", 0).await.must_be(0, "planned");

    // The last, as nothing makes it good again. What clients have seen is not whole on such a cluster: the watch over it is not asked.
    differing::a_write_is_missed(&rollout).await;
    stands_in_the_way(&rollout, "hazard", &["data-differs"]).await;
    assert_eq!(rollout.pids(), before, "nobody was stopped");
}

async fn stands_in_the_way(rollout: &Rollout, reason: &str, words: &[&str]) {
    rollout.write();
    is_refused(rollout, 0..3, (3, reason), words).await;
    assert!(rollout.keys().await.is_empty(), "{words:?}: no key is left");
    println!("refused: {words:?}");
}
