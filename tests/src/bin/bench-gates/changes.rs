//! Members that come and go under a steady load of puts.

use std::time::Duration;

use tests::{
    Error,
    cluster::{Layout, Spec},
    system::Build,
    workload::{Load, Workload},
};

use crate::resize;

/// How often one is added, promoted and removed.
const ROUNDS: usize = 3;
/// Writes between two changes, and writes of which the gaps without any change are taken.
const BETWEEN: u64 = 500;

pub async fn rows(build: &Build) -> Result<[(String, f64); 2], Error> {
    let (cluster, fourth) = resize::three_and_one(Spec::new(build.clone())).await?;
    let layout = &cluster.layout;
    let load = begin(layout, "without/").await?;
    load.more(3 * BETWEEN * ROUNDS as u64).await?;
    let without = load.finish()?.longest_write_gap;
    let load = begin(layout, "with/").await?;
    for round in 0..ROUNDS {
        let mut member = fourth.clone();
        replace_data(&mut member, round);
        let id = resize::add(layout, &mut member).await?;
        load.more(BETWEEN).await?;
        member.start()?;
        resize::promote(layout, id).await?;
        load.more(BETWEEN).await?;
        resize::remove(layout, id).await?;
        load.more(BETWEEN).await?;
        member.end(rustix::process::Signal::KILL)?;
    }
    let with = load.finish()?.longest_write_gap;
    let ms = |gap: Duration| gap.as_secs_f64() * 1e3;
    Ok([
        ("three members, nothing changes: longest write gap, ms".to_owned(), ms(without)),
        ("one is added, promoted and removed: longest write gap, ms".to_owned(), ms(with)),
    ])
}

async fn begin(layout: &Layout, prefix: &str) -> Result<Workload, Error> {
    let load = Load { prefix: prefix.into(), ..Load::default() };
    let load = Workload::start(&layout.endpoints(), &layout.access(), &load)?;
    load.more(BETWEEN).await?;
    Ok(load)
}

/// An id is never given again, and neither is a folder.
fn replace_data(member: &mut tests::cluster::Member, round: usize) {
    let folder = format!("--data-dir={}", member.dir.join(format!("data-{round}")).display());
    member.flags.retain(|flag| !flag.starts_with("--data-dir="));
    member.flags.push(folder);
}
