//! A newcomer that is sent much while others write.

use std::time::Duration;

use tests::{
    Error, probe,
    system::Build,
    workload::{Load, Workload},
};

use crate::{learner, resize};

pub async fn rows(build: &Build, megabytes: u64, time: Duration) -> Result<[(String, f64); 3], Error> {
    let (cluster, mut fourth) = resize::three_and_one(learner::spec(build)).await?;
    let layout = &cluster.layout;
    learner::fill(layout, megabytes).await?;
    let load = Workload::start(&layout.endpoints(), &layout.access(), &Load::default())?;
    load.more(100).await?;
    let without = probe::slowest_ms(layout, time, std::future::pending()).await?;
    let id = resize::add(layout, &mut fourth).await?;
    fourth.start()?;
    let with = probe::slowest_until(layout, resize::promote(layout, id)).await?;
    load.finish()?;
    Ok([
        (format!("slowest put of a cluster of {megabytes} MB, ms"), without),
        ("the same, while a newcomer is sent that, ms".to_owned(), with),
        ("the second, of the first".to_owned(), with / without),
    ])
}
