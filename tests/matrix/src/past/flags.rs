//! The flags that a member of a release is given, by the habits of its cluster. Pure.

use proto::Release;

use super::Habits;

const OLD_API: &str = "--enable-v2";

/// Those with which a cluster is left to others: nobody uses the v2 API any more.
pub fn lasting(habits: &Habits, release: &Release) -> Vec<String> {
    let all = of(habits, release).into_iter();
    all.filter(|flag| flag != OLD_API).collect()
}

/// Flags for the habits. A release that has no name for a habit is not told of it.
pub fn of(habits: &Habits, release: &Release) -> Vec<String> {
    let minor = release.cluster_version().to_string();
    let is = |minors: &[&str]| minors.contains(&minor.as_str());
    // Hashing passwords as slowly as one should would be most of what some plans do.
    let mut flags = vec!["--bcrypt-cost=4".to_owned()];
    let mut give = |name: &str, value: Option<u64>| flags.extend(value.map(|value| format!("--{name}={value}")));
    give("snapshot-count", habits.snapshot_count);
    let experimental = if is(&["3.4", "3.5"]) { "experimental-" } else { "" };
    give(&format!("{experimental}compaction-batch-limit"), habits.compaction_batch);
    if !is(&["3.4", "3.5"]) {
        give("snapshot-catchup-entries", habits.kept_entries);
    }
    // The last minor in which one was to use it.
    if is(&["3.4"]) {
        flags.push(OLD_API.into());
    }
    flags
}
