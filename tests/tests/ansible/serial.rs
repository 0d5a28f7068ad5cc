//! Not all hosts at once: two forks for five hosts, and one host after the other.

use tests::system::System;

use crate::{play::Stage, site::Site};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: five hosts"]
async fn two_forks_are_enough_for_five_hosts() {
    let Some(site) = Site::up(System::Node, 5).await else { return };
    let site = site.with_agents();
    let Some(stage) = Stage::new(&site) else { return };
    let played = stage.play(&["--forks", "2", "-e", "baton_require_complete=true"]).await;
    played.must_succeed();
    for host in 1..=5 {
        let run = played.run_on(host);
        assert!(run["changed"] == true && (run["cluster"] == "partial" || run["cluster"] == "done"), "{run}");
    }
    site.is_upgraded(&[true; 5]).await;
    site.nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: all hosts at once run by default"]
async fn one_host_after_the_other_ends_with_the_last() {
    let Some(site) = Site::up(System::Etcd, 3).await else { return };
    let site = site.with_agents();
    let Some(stage) = Stage::new(&site) else { return };
    let played = stage.play(&["-e", "serial=1", "-e", "baton_require_complete=true"]).await;
    played.must_succeed();
    for (host, cluster) in [(1, "partial"), (2, "partial"), (3, "done")] {
        let run = played.run_on(host);
        assert_eq!((&run["cluster"], &run["changed"]), (&cluster.into(), &true.into()), "{run}");
    }
    site.is_upgraded(&[true; 3]).await;
    site.nothing_is_lost().await;
}

/// Once every member was down, none of two forks' hosts has a quorum before the others have had their turn.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: five hosts more"]
async fn members_that_are_all_down_are_started_by_two_forks() {
    let Some(mut site) = Site::up(System::Node, 5).await else { return };
    site.stop_all().await;
    let site = site.with_agents();
    let Some(stage) = Stage::new(&site) else { return };
    let played = stage.play(&["--forks", "2", "-e", "baton_require_complete=true"]).await;
    played.must_succeed();
    // To start its member is a change, too.
    assert_eq!(played.changed(), ["h1", "h2", "h3", "h4", "h5"]);
    site.is_upgraded(&[true; 5]).await;
}
