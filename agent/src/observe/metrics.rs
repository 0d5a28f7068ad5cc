//! One number out of a member's `/metrics`: how many bytes it has received from its peers.
//!
//! It moves while a member takes in the log or a snapshot, even before any of that is applied.

/// The counter's name in etcd; it has a series for each peer.
const RECEIVED: &str = "etcd_network_peer_received_bytes_total";

/// The sum over all peers; `None` where the text has no such counter.
pub fn received_bytes(metrics: &str) -> Option<u64> {
    metrics.lines().filter_map(value).fold(None, |sum, bytes| Some(sum.unwrap_or(0) + bytes))
}

fn value(line: &str) -> Option<u64> {
    let series = line.strip_prefix(RECEIVED)?;
    if !series.starts_with(['{', ' ']) {
        return None;
    }
    let number: f64 = series.rsplit(' ').next()?.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_bytes_are_summed_over_the_peers() {
        for (text, sum) in [
            ("", None),
            ("# TYPE etcd_network_peer_received_bytes_total counter\n", None),
            ("etcd_network_peer_received_bytes_total{From=\"a\"} 120\n", Some(120)),
            (
                "etcd_network_peer_received_bytes_total{From=\"a\"} 1.5e+06\nother 7\n\
                 etcd_network_peer_received_bytes_total{From=\"b\"} 3\n",
                Some(1_500_003),
            ),
            ("etcd_network_peer_received_bytes_total_more{From=\"a\"} 120\n", None),
            ("etcd_network_peer_received_bytes_total{From=\"a\"} NaN\n", None),
        ] {
            assert_eq!(received_bytes(text), sum, "{text}");
        }
    }
}
