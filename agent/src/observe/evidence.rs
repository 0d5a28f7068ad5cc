//! What is costly to ask and does not change while a run goes on: asked once before one begins, and laid beside the view.

use std::collections::BTreeMap;

use proto::MemberId;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::{Observer, view::ClusterView};

/// What was found; of what was not found there is nothing in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// How large the database of each member may become, in bytes, by its `/metrics`; of those whose `Status` does not say.
    #[serde(default)]
    pub quotas: BTreeMap<MemberId, u64>,
}

impl Observer {
    /// Asks every member that was reached; one that does not answer is left out.
    pub async fn examine(&self, view: &ClusterView) -> Evidence {
        let mut asked = JoinSet::new();
        for member in &view.members {
            let says_it = member.report().is_some_and(|report| report.quota_bytes.is_some());
            let Some(address) = member.reached.clone().filter(|_| !says_it) else { continue };
            let (connections, id, name) = (self.connections.clone(), member.id, member.name.clone());
            asked.spawn(async move { Some((id, connections.http.quota_bytes(&name, &address, id).await?)) });
        }
        Evidence { quotas: asked.join_all().await.into_iter().flatten().collect() }
    }
}
