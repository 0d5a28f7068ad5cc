//! Which releases run at the playbook's endpoints, from whoever answers `GET /version` there: for words to a person, and
//! never for a decision about a member.

use std::sync::Arc;

use proto::Release;

use super::cluster::{Observer, side_by_side};

impl Observer {
    /// Each release once, the lowest first; an endpoint that does not say is left out.
    pub async fn releases(&self) -> Vec<Release> {
        let endpoints = self.connections.access.directory().endpoints().to_vec();
        let asked = endpoints.into_iter().map(|endpoint| {
            let connections = Arc::clone(&self.connections);
            async move { connections.http.release(&endpoint).await }
        });
        let mut releases: Vec<_> = side_by_side(asked).await.into_iter().flatten().collect();
        releases.sort();
        releases.dedup();
        releases
    }
}
