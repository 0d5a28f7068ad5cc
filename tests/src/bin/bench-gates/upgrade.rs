//! How long the gate is undecided as a rolling upgrade ends, by the members' own clocks.

use rustix::process::Signal;
use tests::{
    Error,
    cluster::{Cluster, Member, Spec},
    releases,
    system::{Build, System},
};

use crate::Row;

const UNDECIDED: &str = "etcd_cluster_feature_undecided_seconds_total";

pub async fn row(sizes: &[usize], runs: usize) -> Result<Row, Error> {
    let (from, to) = (releases::get(System::Node, "3.6")?, releases::get(System::Node, "3.7")?);
    let mut all = Vec::new();
    for size in sizes {
        let mut figures = Vec::new();
        for run in 1..=runs {
            figures.push(measure(&from, &to, *size).await?);
            eprintln!("upgrade: run {run} of {runs}, {size} members: done");
        }
        all.push(figures);
    }
    Ok(("3.6 to 3.7, every member runs: undecided for, the longest of any member, ms", all))
}

/// The last member's own count has its start in it, and says nothing.
async fn measure(from: &Build, to: &Build, size: usize) -> Result<f64, Error> {
    let cluster = Cluster::up(&Spec { size, ..Spec::new(from.clone()) }).await?;
    let layout = &cluster.layout;
    layout.members.iter().try_for_each(|member| member.install(to))?;
    let (last, others) = layout.members.split_last().ok_or("a cluster of nobody")?;
    layout.make_leader(last).await?;
    for member in others {
        restart(member)?;
        cluster.ready().await?;
    }
    layout.make_leader(&others[0]).await?;
    let before = undecided_ms(&cluster, others).await?;
    restart(last)?;
    cluster.settled(to.release.cluster_version()).await?;
    for member in others {
        let client = layout.client(member)?;
        while client.metric("etcd_cluster_feature_undecided").await? != 0.0 {}
    }
    let after = undecided_ms(&cluster, others).await?;
    Ok(after.iter().zip(before).map(|(after, before)| after - before).fold(0.0, f64::max))
}

fn restart(member: &Member) -> Result<(), Error> {
    member.end(Signal::TERM)?;
    member.start().map(drop)
}

async fn undecided_ms(cluster: &Cluster, members: &[Member]) -> Result<Vec<f64>, Error> {
    let mut all = Vec::new();
    for member in members {
        all.push(cluster.layout.client(member)?.metric(UNDECIDED).await? * 1e3);
    }
    Ok(all)
}
