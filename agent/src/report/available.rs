//! How available the cluster was, in words.

use crate::observe::canary::Availability;

/// What a canary was told: a sentence without its full stop.
pub fn words(found: &Availability) -> String {
    let Availability { reads, failed, longest_gap_ms, gap_since } = found;
    let since = gap_since.as_deref().map_or_else(String::new, |since| format!(", from {since} on"));
    let attempts = if *failed == 1 { "attempt" } else { "attempts" };
    let seconds = *longest_gap_ms as f64 / 1000.0;
    format!(
        "canary: {reads} reads were answered, {failed} {attempts} failed; the longest time without an answer was {seconds:.1} s{since}"
    )
}
