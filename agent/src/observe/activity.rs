//! What members are in the middle of, by their pages of metrics: a stop meanwhile can hurt one of them (etcd#20271, etcd#14685,
//! etcd#17780). Asked right before a stop alone, as each page costs its member some milliseconds.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Observer, cluster::side_by_side, view::ClusterView};

/// Something that ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It writes its database anew, and answers nobody meanwhile.
    Defragmentation,
    /// It deletes old revisions.
    Compaction,
    /// It sends a snapshot to another member, or takes one in.
    Snapshot,
}

impl Observer {
    /// Asks every member whose address is known; of one that does not say, nothing is known.
    pub async fn ask_activities(&self, view: &mut ClusterView) {
        let asked = view.members.iter().filter_map(|member| {
            let (id, name, connections) = (member.id, member.name.clone(), Arc::clone(&self.connections));
            let address = member.reached.clone().or_else(|| connections.address_of(id))?;
            Some(async move { (id, connections.http.activities(&name, &address, id).await) })
        });
        for (id, activities) in side_by_side(asked).await {
            if let Some(member) = view.members.iter_mut().find(|member| member.id == id) {
                member.activities = activities.unwrap_or_default();
            }
        }
    }
}
