//! What is costly to ask and does not change while a run goes on: asked once before one begins, and laid beside the view.

use std::collections::{BTreeMap, BTreeSet};

use proto::MemberId;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::{Observer, clock::Apart, difference::Difference, view::ClusterView};

/// What was found; of what was not found there is nothing in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// How large the database of each member may become, in bytes, by its `/metrics`; of those whose `Status` does not say.
    #[serde(default)]
    pub quotas: BTreeMap<MemberId, u64>,
    /// Who is etcd itself, by the page of metrics: what is known of its releases says nothing of other programs that speak its API.
    #[serde(default)]
    pub etcd: BTreeSet<MemberId>,
    /// Who is another program, by the same page.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub others: BTreeSet<MemberId>,
    /// Whose clock is not this host's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks: BTreeMap<MemberId, Apart>,
    /// What differs between members, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

impl Observer {
    /// All of it. A database of more than `max_db_bytes` is not compared by its hash.
    pub async fn examine_and_compare(&self, view: &ClusterView, max_db_bytes: u64) -> Evidence {
        let differences = self.differences(view, max_db_bytes).await;
        Evidence { differences, ..self.examine(view).await }
    }

    /// All but what differs. Asks every member that was reached; one that does not answer is left out.
    pub async fn examine(&self, view: &ClusterView) -> Evidence {
        let mut asked = JoinSet::new();
        for member in &view.members {
            let says_quota = member.report().is_some_and(|report| report.quota_bytes.is_some());
            let Some(address) = member.reached.clone() else { continue };
            let (connections, id, name) = (self.connections.clone(), member.id, member.name.clone());
            asked.spawn(async move { Some((id, says_quota, connections.http.own_page(&name, &address, id).await?)) });
        }
        let mut found = Evidence::default();
        for (id, says_quota, (page, apart)) in asked.join_all().await.into_iter().flatten() {
            if let Some(apart) = apart {
                found.clocks.insert(id, apart);
            }
            if let Some(bytes) = page.quota_bytes.filter(|_| !says_quota) {
                found.quotas.insert(id, bytes);
            }
            if page.is_etcd {
                found.etcd.insert(id)
            } else {
                found.others.insert(id)
            };
        }
        found
    }
}
