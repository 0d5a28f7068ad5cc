//! Members that come and go, on either system.

use std::time::{Duration, Instant};

use proto::etcdserverpb::{MemberAddRequest, MemberPromoteRequest, MemberRemoveRequest, cluster_client::ClusterClient};
use tests::{
    Error,
    cluster::{Cluster, Layout, Member, Spec},
    probe,
    wait::GENEROUS,
};
use tonic::{Status, transport::Channel};

/// Between two tries of what is refused for now.
const PERIOD: Duration = Duration::from_millis(5);

/// A cluster of three that serves, and a fourth member that it does not know of.
pub async fn three_and_one(spec: Spec) -> Result<(Cluster, Member), Error> {
    let mut cluster = Cluster::laid_out(&Spec { size: 4, tls: false, ..spec })?;
    let fourth = cluster.layout.members.pop().ok_or("a cluster of nobody")?;
    let list = list(&cluster.layout.members);
    cluster.layout.members.iter_mut().for_each(|member| replace(&mut member.flags, "initial-cluster", &list));
    cluster.begin().await?;
    Ok((cluster, fourth))
}

/// Adds it as a learner, as soon as the cluster counts as healthy; its id.
pub async fn add(layout: &Layout, member: &mut Member) -> Result<u64, Error> {
    let peer_urls = vec![peer_url(member)];
    let request = MemberAddRequest { peer_urls, is_learner: true };
    let answer = again(layout, async |mut client| client.member_add(request.clone()).await).await?;
    let all = list(layout.members.iter().chain([&*member]));
    replace(&mut member.flags, "initial-cluster", &all);
    replace(&mut member.flags, "initial-cluster-state", "existing");
    Ok(answer.into_inner().member.ok_or("a member was added, and its id not said")?.id)
}

/// Promotes it as soon as it has caught up.
pub async fn promote(layout: &Layout, id: u64) -> Result<(), Error> {
    again(layout, async |mut client| client.member_promote(MemberPromoteRequest { id }).await).await.map(drop)
}

pub async fn remove(layout: &Layout, id: u64) -> Result<(), Error> {
    again(layout, async |mut client| client.member_remove(MemberRemoveRequest { id }).await).await.map(drop)
}

async fn again<T>(
    layout: &Layout,
    call: impl AsyncFn(ClusterClient<Channel>) -> Result<T, Status>,
) -> Result<T, Error> {
    let client = ClusterClient::new(probe::at_leader(layout).await?);
    let began = Instant::now();
    loop {
        match call(client.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(status) if began.elapsed() > GENEROUS => return Err(status.into()),
            Err(_) => tokio::time::sleep(PERIOD).await,
        }
    }
}

fn peer_url(member: &Member) -> String {
    format!("http://127.0.0.1:{}", member.peer_port)
}

fn list<'a>(members: impl IntoIterator<Item = &'a Member>) -> String {
    let named: Vec<_> = members.into_iter().map(|member| format!("{}={}", member.name, peer_url(member))).collect();
    named.join(",")
}

fn replace(flags: &mut Vec<String>, name: &str, value: &str) {
    flags.retain(|flag| !flag.starts_with(&format!("--{name}=")));
    flags.push(format!("--{name}={value}"));
}
