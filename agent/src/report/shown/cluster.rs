//! How a cluster stands, in a few words.

use std::collections::BTreeMap;

use proto::ClusterVersion;

use crate::{
    observe::view::{ClusterView, Member},
    report::names::printable,
};

/// Who runs what, how many are ready, and the cluster version.
pub fn line(view: &ClusterView) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut by_release: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for member in view.started() {
        by_release.entry(member.release()).or_default().push(name(member));
    }
    for (release, names) in by_release.iter().rev() {
        parts.push(match release {
            Some(release) => format!("{} at {release}", names.join(", ")),
            None => format!("{}: no answer", names.join(", ")),
        });
    }
    let never: Vec<_> = view.members.iter().filter(|member| member.has_never_started()).map(name).collect();
    if !never.is_empty() {
        parts.push(format!("{}: never started, not counted", never.join(", ")));
    }
    let ready = view.started().filter(|member| member.is_ready()).count();
    parts.push(format!("{ready} of {} ready", view.started().count()));
    parts.extend(cluster_version(view).map(|version| format!("cluster version {version}")));
    parts.join("; ")
}

/// The lowest cluster version that any member reports: one that has not heard of the rise yet counts.
pub fn cluster_version(view: &ClusterView) -> Option<ClusterVersion> {
    view.members.iter().filter_map(|member| member.report()?.cluster_version).min()
}

/// A member's name, or its id while it has none.
pub(crate) fn name(member: &Member) -> String {
    if member.name.is_empty() { member.id.to_string() } else { printable(&member.name).to_string() }
}
