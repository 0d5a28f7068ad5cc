//! What goes on beside a step: chores that a cluster's owner has set up, and the kill that hits the step.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lab::{client::Client, cluster::Member, wait::GENEROUS};
use proto::etcdserverpb::{
    CompactionRequest, DefragmentRequest, kv_client::KvClient, maintenance_client::MaintenanceClient,
};
use rustix::process::Signal;
use tokio::sync::oneshot;

use super::{Broken, stage::Stage};
use crate::{
    past::{Kill, Moment},
    plan::tree,
};

/// Of history this much is left, by who compacts every so often.
const LEFT: i64 = 200;
/// An answer that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Defragments and compacts as the cluster's habits are, for as long as it is asked to.
pub(super) fn chores(stage: &Stage) -> Result<impl Future<Output = Result<(), Broken>> + use<>, Broken> {
    let clients = if stage.watches.is_empty() { Vec::new() } else { stage.clients()? };
    let (defragments, compacts) = (stage.habits.defragments_every, stage.habits.compacts_every);
    let others = clients.clone();
    Ok(async move {
        tokio::join!(
            every(defragments, clients, |client: Client| async move {
                let request = client.request(DefragmentRequest {}).await?;
                client.outcome(MaintenanceClient::new(client.channel()).defragment(request).await).await.map(drop)
            }),
            every(compacts, others, |client: Client| async move {
                let revision = client.newest().await?.0 - LEFT;
                if revision > 0 {
                    let request = client.request(CompactionRequest { revision, physical: false }).await?;
                    client.outcome(KvClient::new(client.channel()).compact(request).await).await?;
                }
                Ok(())
            })
        );
        Ok(())
    })
}

/// Does it through one member after the other, and never ends. That some do not answer is nothing new to a chore.
async fn every<F>(period: Option<Duration>, clients: Vec<Client>, mut chore: impl FnMut(Client) -> F)
where
    F: Future<Output = Result<(), tonic::Status>>,
{
    let Some(period) = period.filter(|_| !clients.is_empty()) else { return std::future::pending().await };
    for client in clients.iter().cycle() {
        tokio::time::sleep(period).await;
        let _ = tokio::time::timeout(PATIENCE, chore(client.clone())).await;
    }
}

/// Kills members in the middle of a step, or when it is answered, and starts them again.
pub(super) fn kill(
    stage: &Stage,
    kill: Option<&Kill>,
    answered: oneshot::Receiver<()>,
) -> impl Future<Output = Result<(), Broken>> + use<> {
    let is_hit = |member: &&Member| {
        tree::host(&member.name).is_some_and(|host| kill.is_some_and(|kill| kill.members.contains(&host)))
    };
    let victims: Vec<Member> = stage.layout().members.iter().filter(is_hit).cloned().collect();
    let (after, times) = kill.map(|kill| (kill.after, kill.times)).unwrap_or_default();
    let answered = kill.filter(|kill| kill.since == Moment::Answer).map(|_| answered);
    let is_coming = IsComing::of(stage, times > 0 && answered.is_none());
    async move {
        let _is_coming = is_coming;
        if let Some(answered) = answered {
            // The step has failed where nobody says so.
            let _ = answered.await;
        }
        for _ in 0..times {
            tokio::time::sleep(after).await;
            let victims = victims.clone();
            tokio::task::spawn_blocking(move || killed(&victims)).await??;
        }
        Ok(())
    }
}

/// Clients go on for as long as it is there.
struct IsComing(Arc<AtomicBool>);

impl IsComing {
    fn of(stage: &Stage, is_coming: bool) -> Self {
        stage.kill_is_coming.store(is_coming, Ordering::Relaxed);
        Self(Arc::clone(&stage.kill_is_coming))
    }
}

impl Drop for IsComing {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn killed(victims: &[Member]) -> Result<(), lab::Error> {
    let processes: Vec<_> = victims.iter().filter_map(Member::process).collect();
    // All at once first: a cluster that has lost its majority must come back, too.
    processes.iter().try_for_each(|process| process.signal(Signal::KILL))?;
    processes.iter().try_for_each(|process| process.ended(GENEROUS))?;
    victims.iter().try_for_each(|member| member.start().map(drop))
}
