//! A learner that has much to take in: from its start until it is promoted.

use std::time::Instant;

use tests::{Error, cluster::Spec, much, system::Build};

use crate::resize;

/// Of a value; a key has 16 more.
const BYTES: usize = 1_000;
/// So that there is a snapshot soon, and no log behind it: what has to be taken in is the state, and not how it came to be.
pub const SNAPSHOTS: [&str; 3] =
    ["--snapshot-count=500", "--snapshot-catchup-entries=1", "--quota-backend-bytes=8589934592"];

pub fn spec(build: &Build) -> Spec {
    Spec { flags: SNAPSHOTS.map(String::from).into(), ..Spec::new(build.clone()) }
}

/// Keys that make so much.
pub fn keys(megabytes: u64) -> u64 {
    megabytes * 1_000_000 / (BYTES as u64 + 16)
}

pub async fn fill(layout: &tests::cluster::Layout, megabytes: u64) -> Result<(), Error> {
    much::fill(layout, keys(megabytes), BYTES).await?;
    much::quiet(layout).await;
    Ok(())
}

pub async fn rows(build: &Build, megabytes: u64) -> Result<[(String, f64); 1], Error> {
    let (cluster, mut fourth) = resize::three_and_one(spec(build)).await?;
    fill(&cluster.layout, megabytes).await?;
    let id = resize::add(&cluster.layout, &mut fourth).await?;
    fourth.start()?;
    let began = Instant::now();
    resize::promote(&cluster.layout, id).await?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    Ok([(format!("a learner takes in {megabytes} MB and is promoted, ms"), took)])
}
