//! The cluster that a member is replaced in, and the newcomer beside it.

use tests::{
    Error,
    cluster::{Cluster, Layout, Member, Spec},
    much,
    ports::Ports,
    system::Build,
    workload::{Load, Workload},
};

use crate::Who;

/// Of a value; a key has 16 more.
const BYTES: usize = 1_000;
/// etcd makes its first snapshot, and forgets the first half of its log, after 10,000 entries (`--snapshot-count` of 3.6): from then
/// on a newcomer is sent the state, as it is in a cluster that has been there for a while.
const WRITES: u64 = 11_000;

pub struct Scene {
    cluster: Cluster,
    pub build: Build,
    pub leaver: Member,
    /// It is installed, and its folder has no data.
    pub newcomer: Member,
    _ports: Ports,
}

impl Scene {
    pub async fn set(build: &Build, who: Who, megabytes: u64) -> Result<Self, Error> {
        let cluster = Cluster::up(&Spec::new(build.clone())).await?;
        let layout = &cluster.layout;
        much::fill(layout, megabytes * 1_000_000 / (BYTES as u64 + 16), BYTES).await?;
        write(layout).await?;
        much::quiet(layout).await;
        let leader = layout.leader().await?.name.clone();
        let leaver = layout.members.iter().find(|member| (member.name == leader) == (who == Who::Leader));
        let leaver = leaver.ok_or("a cluster of nobody")?.clone();
        let ports = Ports::lease(2)?;
        let newcomer = layout.newcomer(build, layout.members.len(), (ports.numbers[0], ports.numbers[1]))?;
        Ok(Self { build: build.clone(), leaver, newcomer, _ports: ports, cluster })
    }

    pub fn layout(&self) -> &Layout {
        &self.cluster.layout
    }

    /// Who is there now and is to stay.
    pub fn staying(&self) -> impl Iterator<Item = &Member> {
        self.layout().members.iter().filter(|member| member.name != self.leaver.name)
    }
}

async fn write(layout: &Layout) -> Result<(), Error> {
    let load = Load { clients: 64, pause: std::time::Duration::ZERO, prefix: "before/".into(), ..Load::default() };
    let load = Workload::start(&layout.endpoints(), &layout.access(), &load)?;
    load.more(WRITES).await?;
    load.finish().map(drop)
}
