//! Every path of releases, with every size of cluster.

use std::time::Instant;

use tests::{playbook::Upgrade, rollout::Rollout};

use crate::{all_done, cluster};

async fn upgrades(from: &str, to: &str, size: usize, tls: bool) {
    let wanted = |spec: &mut tests::cluster::Spec| (spec.size, spec.tls) = (size, tls);
    let Some((cluster, to)) = cluster(from, to, wanted).await else { return };
    let playbooks = Upgrade::new(&cluster.layout, &to).write(&cluster.layout).expect("playbooks");
    let rollout = Rollout::begin(&cluster.layout, playbooks, &to.release).await.expect("under way");
    let began = Instant::now();
    let agents = rollout.run_all().await.expect("ended");
    let took = began.elapsed();
    all_done(&agents);
    let seen = rollout.done().await.expect("sound");
    assert_eq!(seen.observed.outages.len(), size, "each member went down once: {:?}", seen.observed);
    eprintln!("{size} members in {took:.1?}, longest write gap {:.0?}", seen.longest_write_gap);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_go_from_3_4_to_3_5() {
    upgrades("3.4", "3.5", 3, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_members_go_from_3_4_to_3_5() {
    upgrades("3.4", "3.5", 5, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seven_members_go_from_3_4_to_3_5() {
    upgrades("3.4", "3.5", 7, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_go_from_3_5_to_3_6() {
    upgrades("3.5", "3.6", 3, false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: more members on a path that three of them show"]
async fn five_members_go_from_3_5_to_3_6() {
    upgrades("3.5", "3.6", 5, false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: more members on a path that three of them show"]
async fn seven_members_go_from_3_5_to_3_6() {
    upgrades("3.5", "3.6", 7, false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.7 is built from source"]
async fn three_members_go_from_3_6_to_3_7() {
    upgrades("3.6", "3.7", 3, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_tls_go_from_3_4_to_3_5() {
    upgrades("3.4", "3.5", 3, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_tls_go_from_3_5_to_3_6() {
    upgrades("3.5", "3.6", 3, true).await;
}
