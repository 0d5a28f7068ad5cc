//! Every path of releases, with every size of cluster.

use std::time::Instant;

use tests::{case::Case, ended::all_must_be};

async fn upgrades(from: &str, to: &str, size: usize, tls: bool) {
    let Some(case) = Case::with(from, to, |spec| (spec.size, spec.tls) = (size, tls)).await else { return };
    let rollout = case.begin().await;
    let began = Instant::now();
    let agents = rollout.all("run").await;
    let took = began.elapsed();
    all_must_be(&agents, 0, "done");
    let seen = rollout.done().await;
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
