//! Members that leave and join, as etcd's guide has it: the one that leaves first, then `member add`, then its start.

use std::{fs, time::Duration};

use lab::{cluster::Member, ports::Ports, wait};
use rustix::process::Signal;
use tokio::task::block_in_place;

use super::{Broken, stage::Stage, users::typed};
use crate::{
    past::flags,
    plan::{Host, tree},
};

const LIMIT: Duration = Duration::from_secs(60);

pub(super) async fn change(
    stage: &mut Stage,
    leaves: Option<Host>,
    joins: &[Host],
    as_learner: bool,
) -> Result<(), Broken> {
    if let Some(host) = leaves {
        leave(stage, host).await?;
    }
    for host in joins {
        join(stage, *host, as_learner).await?;
    }
    Ok(())
}

/// One that has lost its disk, and comes back by the name and at the place that it had.
pub(super) async fn rejoin(stage: &mut Stage, host: Host, as_learner: bool) -> Result<(), Broken> {
    let own = stage.flags.get(&host).cloned().unwrap_or_default();
    let member = Member { flags: own, ..stage.member(host)?.clone() }.as_newcomer();
    let place = stage.layout().members.iter().position(|other| other.name == member.name);
    leave(stage, host).await?;
    begin(stage, host, member, as_learner).await?;
    // In the order that it had: whoever reads the layout goes by it.
    let last = stage.cluster.layout.members.pop();
    let members = &mut stage.cluster.layout.members;
    last.into_iter().for_each(|member| members.insert(place.unwrap_or(members.len()), member));
    Ok(())
}

async fn leave(stage: &mut Stage, host: Host) -> Result<(), Broken> {
    let id = id(stage, host).await?;
    let member = stage.member(host)?.clone();
    // From here on nobody asks it.
    stage.away.insert(host);
    typed(stage, &["member", "remove", &id]).await?;
    stage.watches.remove(&host);
    stage.cluster.layout.members.retain(|other| other.name != member.name);
    stage.away.remove(&host);
    block_in_place(|| member.end(Signal::TERM))?;
    Ok(fs::remove_dir_all(member.data())?)
}

async fn join(stage: &mut Stage, host: Host, as_learner: bool) -> Result<(), Broken> {
    let ports = Ports::lease(2)?;
    let member = stage.layout().newcomer(stage.build()?, host, (ports.numbers[0], ports.numbers[1]))?;
    stage.ports.push(ports);
    begin(stage, host, member, as_learner).await
}

/// Adds a member that is laid out, starts it, and has it vote.
async fn begin(stage: &mut Stage, host: Host, mut member: Member, as_learner: bool) -> Result<(), Broken> {
    let url = format!("--peer-urls={}", member.peer_url());
    let mut words = vec!["member", "add", &member.name, &url];
    words.extend(as_learner.then_some("--learner"));
    typed(stage, &words).await?;
    let all = stage.layout().members.iter().chain([&member]);
    let all: Vec<_> = all.map(|one| format!("{}={}", one.name, one.peer_url())).collect();
    member.flags.iter_mut().for_each(|flag| *flag = flag.replace("{{initial_cluster}}", &all.join(",")));
    stage.flags.insert(host, member.flags.clone());
    member.flags.extend(flags::of(&stage.habits, &stage.release));
    block_in_place(|| member.start())?;
    let newest = stage.client(stage.standing()[0])?.newest().await?;
    stage.cluster.layout.members.push(member);
    if as_learner {
        promote(stage, host).await?;
    }
    stage.serves(host).await?;
    stage.watch(host, newest.0)
}

/// etcd refuses until the learner has caught up.
async fn promote(stage: &mut Stage, host: Host) -> Result<(), Broken> {
    stage.away.insert(host);
    let id = wait::until("the learner to be listed by its name", LIMIT, || async {
        id(stage, host).await.map_err(|broken| broken.text)
    });
    let id = id.await?;
    let promoted = typed(stage, &["member", "promote", &id]).await;
    stage.away.remove(&host);
    promoted.map(drop)
}

/// As etcdctl wants it.
async fn id(stage: &Stage, host: Host) -> Result<String, Broken> {
    let asked = stage.standing().into_iter().find(|other| *other != host).ok_or("nobody to ask")?;
    let listed = stage.client(asked)?.members().await?;
    let found = listed.iter().find(|member| member.name == tree::member(host));
    Ok(format!("{:x}", found.ok_or_else(|| format!("{} is not listed", tree::member(host)))?.id))
}
