//! What a member was set up with, as etcd says it when it starts (`print` in server/embed/etcd.go): one line with its keys.
//! Where etcd has a list of URLs, this has one text with commas.

use std::time::Duration;

use proto::Release;

use super::{AutoCompaction, Config, DEFAULT_QUOTA_BYTES, InitialState, Url};
use crate::features::Overrides;

impl Config {
    /// Says it in the log. What etcd has there and this node has not, is not in it.
    pub fn say(&self, release: &Release) {
        let (mode, retention) = match self.auto_compaction {
            AutoCompaction::Off => ("periodic", "0s".to_owned()),
            AutoCompaction::Periodic(time) => ("periodic", text(time)),
            AutoCompaction::Revisions(count) => ("revision", count.to_string()),
        };
        let members = self.initial_cluster.iter();
        let members = members.flat_map(|(name, urls)| urls.iter().map(move |url| format!("{name}={url}")));
        tracing::info!(
            etcd_version = %release,
            name = self.name,
            data_dir = %self.data_dir.display(),
            heartbeat_interval = text(self.heartbeat_interval),
            election_timeout = text(self.election_timeout),
            snapshot_count = self.snapshot_count,
            snapshot_catchup_entries = self.snapshot_catchup_entries,
            initial_advertise_peer_urls = urls(&self.initial_advertise_peer_urls),
            listen_peer_urls = urls(&self.listen_peer_urls),
            advertise_client_urls = urls(&self.advertise_client_urls),
            listen_client_urls = urls(&self.listen_client_urls),
            listen_metrics_urls = urls(&self.listen_metrics_urls),
            initial_cluster = members.collect::<Vec<_>>().join(","),
            initial_cluster_state = match self.initial_cluster_state {
                InitialState::New => "new",
                InitialState::Existing => "existing",
            },
            initial_cluster_token = self.initial_cluster_token,
            quota_backend_bytes = if self.quota_backend_bytes == 0 { DEFAULT_QUOTA_BYTES } else { self.quota_backend_bytes },
            max_request_bytes = self.max_request_bytes,
            max_concurrent_streams = self.max_concurrent_streams,
            feature_gates = gates(&self.feature_gates),
            cluster_feature_gates = gates(&self.cluster_feature_gates),
            corrupt_check_time_interval = text(self.corrupt_check_time.unwrap_or_default()),
            auto_compaction_mode = mode,
            auto_compaction_retention = retention,
            warning_unary_request_duration = text(self.warning_unary_request),
            warning_apply_duration = text(self.warning_apply),
            "starting an etcd server"
        );
    }
}

/// As Go writes it, but for hours and minutes.
fn text(time: Duration) -> String {
    if time.is_zero() { "0s".to_owned() } else { format!("{time:?}") }
}

fn urls(urls: &[Url]) -> String {
    urls.iter().map(Url::to_string).collect::<Vec<_>>().join(",")
}

fn gates(overrides: &Overrides) -> String {
    overrides.0.iter().map(|(name, is_on)| format!("{name}={is_on}")).collect::<Vec<_>>().join(",")
}
