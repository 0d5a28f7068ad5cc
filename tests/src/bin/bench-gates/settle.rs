//! From a member's start until all agree: after the start of a whole cluster, and after that of one whose flag has changed.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::{
    Error,
    client::Client,
    cluster::{Cluster, Spec},
    metrics::Metrics,
    releases,
    system::{Build, System},
    wait::GENEROUS,
};

use crate::Row;

/// Between two looks at a member.
const PERIOD: Duration = Duration::from_millis(1);
/// On by default at 3.7: one member that does not want it turns it off.
const FLAG: &str = "--cluster-feature-gates=ClusterCounters=false";
const FEATURE: &str = r#"name="ClusterCounters""#;

pub async fn rows(sizes: &[usize], runs: usize) -> Result<[Row; 3], Error> {
    let build = releases::get(System::Node, "3.7")?;
    let mut rows = [
        ("a new cluster: until each member has a cluster version, ms", Vec::new()),
        ("the same: until each member has a decided gate, ms", Vec::new()),
        ("one restarted with another flag: until each member says so, ms", Vec::new()),
    ];
    for size in sizes {
        let mut figures = [const { Vec::new() }; 3];
        for run in 1..=runs {
            let found = measure(&build, *size).await?;
            figures.iter_mut().zip(found).for_each(|(figures, figure)| figures.push(figure));
            eprintln!("settle: run {run} of {runs}, {size} members: done");
        }
        rows.iter_mut().zip(figures).for_each(|(row, figures)| row.1.push(figures));
    }
    Ok(rows)
}

async fn measure(build: &Build, size: usize) -> Result<[f64; 3], Error> {
    let mut cluster = Cluster::laid_out(&Spec { size, ..Spec::new(build.clone()) })?;
    let clients = cluster.layout.members.iter().map(|member| cluster.layout.client(member));
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    cluster.layout.members.iter().try_for_each(|member| member.start().map(drop))?;
    let began = Instant::now();
    let version = all_say(&clients, began, |page| !page.family("etcd_cluster_version").is_empty()).await?;
    let decided = all_say(&clients, began, is_decided).await?;
    cluster.ready().await?;
    let member = cluster.layout.members.last_mut().ok_or("a cluster of nobody")?;
    member.flags.push(FLAG.into());
    member.end(Signal::TERM)?;
    member.start()?;
    let began = Instant::now();
    let is_off = |page: &Metrics| page.family("etcd_cluster_feature_enabled").get(FEATURE) == Some(&0.0);
    let flag = all_say(&clients, began, |page| is_decided(page) && is_off(page)).await?;
    Ok([version, decided, flag])
}

fn is_decided(page: &Metrics) -> bool {
    page.figure("etcd_cluster_feature_undecided").is_ok_and(|undecided| undecided == 0.0)
}

/// How long after this the last of them said it, in milliseconds.
async fn all_say(clients: &[Client], began: Instant, says: impl Fn(&Metrics) -> bool) -> Result<f64, Error> {
    for client in clients {
        while !client.metrics().await.is_ok_and(|page| says(&page)) {
            if began.elapsed() > GENEROUS {
                return Err("not every member has a decided gate".into());
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
