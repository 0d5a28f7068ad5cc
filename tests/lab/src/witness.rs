//! Everything that watches a cluster from outside while it is changed: clients, the observer of processes
//! and ports, and the moment at which every member reports the new cluster version.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto::ClusterVersion;
use tokio::task::JoinHandle;

use crate::{
    Error,
    client::Client,
    cluster::Layout,
    history::{HistoryError, Judged},
    observer::{self, Observer},
    system::System,
    wait,
    workload::{Acked, Load, Workload},
};

/// The time between two looks at the members' versions, unless the clients are slower.
const PERIOD: Duration = Duration::from_millis(20);
/// Writes that are awaited before the change begins and after it has ended.
const WARM: u64 = 8;
/// The first cluster version with gates (KEP-4647, "Upgrade / Downgrade Strategy").
const FIRST_WITH_GATES: ClusterVersion = ClusterVersion { major: 3, minor: 6 };

pub struct Witness {
    layout: Layout,
    workload: Workload,
    observer: Observer,
    settled: JoinHandle<(u64, Option<u64>)>,
}

#[derive(Debug)]
pub struct Testimony {
    /// Writes that were acknowledged.
    pub writes_acked: usize,
    /// Those of them that the cluster does not have.
    pub lost: Vec<Acked>,
    /// Whether some order explains all that was read.
    pub history: Result<Judged, HistoryError>,
    /// Attempts that had to be repeated.
    pub failed_attempts: usize,
    /// The longest time between two acknowledged writes of any client.
    pub longest_write_gap: Duration,
    /// What the observer saw of processes and ports.
    pub observed: observer::Report,
    /// When every member first reported the wanted cluster version, in milliseconds since 1970.
    pub settled: Option<u64>,
    /// When every member first had decided gates at that version; `None` where there are none.
    pub gates_decided: Option<u64>,
}

impl Witness {
    /// Begins to watch; when this returns, clients are at work. `wanted` is the cluster version to expect.
    ///
    /// # Errors
    /// The clients cannot be made, or get no answers.
    pub async fn begin(layout: &Layout, load: &Load, wanted: ClusterVersion) -> Result<Self, Error> {
        let workload = Workload::start(&layout.endpoints(), &layout.access(), load)?;
        workload.more(WARM).await?;
        let clients = layout.members.iter().map(|member| layout.client(member));
        let has_gates = layout.system == System::Node && wanted >= FIRST_WITH_GATES;
        let settled =
            tokio::spawn(settled(clients.collect::<Result<_, _>>()?, wanted, has_gates, load.pause.max(PERIOD)));
        Ok(Self { layout: layout.clone(), workload, observer: Observer::start(layout), settled })
    }

    /// Ends the watch and verifies every acknowledged write.
    ///
    /// # Errors
    /// A watcher died, or the cluster does not answer: then nothing is known.
    pub async fn end(self) -> Result<Testimony, Error> {
        self.workload.more(WARM).await?;
        let (layout, outcome, observed) = (self.layout, self.workload.finish()?, self.observer.finish()?);
        self.settled.abort();
        let (settled, gates_decided) =
            self.settled.await.map_or((None, None), |(version, gates)| (Some(version), gates));
        let (failed_attempts, longest_write_gap) = (outcome.failed_attempts, outcome.longest_write_gap);
        let writes_acked = outcome.acked.len();
        // One that was replaced is gone for good.
        let (there, gone): (Vec<_>, Vec<_>) = layout.members.iter().partition(|member| member.is_running());
        let asked = if there.is_empty() { gone } else { there };
        let endpoints: Vec<_> = asked.iter().map(|member| member.client_url.clone()).collect();
        let verified = outcome.verify(&endpoints, &layout.access()).await?;
        let (lost, history) = (verified.lost, verified.history);
        Ok(Testimony {
            writes_acked,
            lost,
            history,
            failed_attempts,
            longest_write_gap,
            observed,
            settled,
            gates_decided,
        })
    }

    /// Returns when the observer has seen what is true now: a scenario that ends one member's process once
    /// another's is back waits for this first.
    pub fn has_looked(&self) {
        self.observer.has_looked();
    }

    /// Waits until every member reports the wanted cluster version.
    ///
    /// # Errors
    /// They do not within [`wait::GENEROUS`].
    pub async fn has_settled(&self) -> Result<(), wait::TimedOut> {
        wait::until("the cluster version to rise", wait::GENEROUS, || async {
            if self.settled.is_finished() { Ok(()) } else { Err("not on every member".into()) }
        })
        .await
    }
}

impl Testimony {
    /// What every scenario promises: nothing lost, some order explains all that was read, and never more
    /// than so many members down at once.
    ///
    /// # Errors
    /// What was broken.
    pub fn is_sound(&self, down: usize) -> Result<(), String> {
        match (&self.lost[..], &self.history) {
            ([_, ..], _) => Err(format!("lost: {:?}", self.lost)),
            (_, Err(error)) => Err(error.to_string()),
            _ if self.observed.max_members_down > down => Err(format!("down at once: {:?}", self.observed)),
            _ => Ok(()),
        }
    }

    /// Whether no client was told anything that was not so.
    pub fn is_nothing_lost(&self) -> bool {
        self.lost.is_empty() && self.history.is_ok()
    }
}

/// When every member held the version, and when every member's gates were decided.
async fn settled(
    clients: Vec<Client>,
    wanted: ClusterVersion,
    has_gates: bool,
    period: Duration,
) -> (u64, Option<u64>) {
    for client in &clients {
        while client.versions().await.ok().and_then(|said| said.cluster.parse().ok()) != Some(wanted) {
            tokio::time::sleep(period).await;
        }
    }
    let version = now_in_ms();
    if !has_gates {
        return (version, None);
    }
    for client in &clients {
        while client.metric("etcd_cluster_feature_undecided").await.ok() != Some(0.0) {
            tokio::time::sleep(period).await;
        }
    }
    (version, Some(now_in_ms()))
}

/// Milliseconds since 1970.
pub fn now_in_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
