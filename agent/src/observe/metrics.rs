//! What is read off a member's `/metrics`: how many bytes it has received from its peers, how many its database may have,
//! what it is in the middle of, and the cluster's gates.
//!
//! The bytes move while a member takes in the log or a snapshot, even before any of that is applied. Of the gates the
//! page alone tells whether they are decided and what a member wants (KEP-4647, "Milestones").

use std::collections::{BTreeMap, BTreeSet};

use proto::MemberId;

use super::{
    activity::Activity,
    view::{GateReport, Known},
};

/// Its name in etcd; it has a series for each peer.
const RECEIVED: &str = "etcd_network_peer_received_bytes_total";
const SERVER_ID: &str = "etcd_server_id";
/// Its name in etcd since 3.3.
const QUOTA: &str = "etcd_server_quota_backend_bytes";
/// Its name in etcd since 3.3.
const GO: &str = "etcd_server_go_version";
/// Its name in etcd since 3.4.8.
const USERS: &str = "etcd_debugging_auth_revision";
/// Its name in etcd since 3.4, as of the next two.
const DEFRAGMENTS: &str = "etcd_disk_defrag_inflight";
const TAKES_SNAPSHOT: &str = "etcd_server_snapshot_apply_in_progress_total";
/// One series for each peer that was sent one.
const SENDS_SNAPSHOT: &str = "etcd_network_snapshot_send_inflights_total";
/// A compaction first goes through the index, then through the database: each is counted at its end.
const COMPACTED_INDEX: &str = "etcd_debugging_mvcc_index_compaction_pause_duration_milliseconds_count";
const COMPACTED: &str = "etcd_debugging_mvcc_db_compaction_total_duration_milliseconds_count";
const UNDECIDED: &str = "etcd_cluster_feature_undecided";
const ENABLED: &str = "etcd_cluster_feature_enabled";
const PROPOSED: &str = "etcd_cluster_feature_proposed";
const KNOWN: &str = "etcd_cluster_feature_known";

/// How many gates of a page are read.
const MAX_GATES: usize = 256;
/// How many proposals of a page are read, of all members.
const MAX_PROPOSALS: usize = 4096;
/// How long the name of one may be, in bytes.
const MAX_NAME: usize = 128;

/// The sum over all peers; `None` where the text has no such counter.
pub fn received_bytes(page: &str) -> Option<u64> {
    let bytes = samples(page, RECEIVED).map(|sample| sample.value).filter(|value| value.is_finite() && *value >= 0.0);
    bytes.fold(None, |sum, bytes| Some(sum.unwrap_or(0) + bytes as u64))
}

/// What does not change while a member runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnPage {
    /// How large its database may become; `None` where that is not said.
    pub quota_bytes: Option<u64>,
    /// Whether it says which Go it was made with: etcd does, and the bundled node does not.
    pub is_etcd: bool,
}

/// `None` on another member's page.
pub fn own_page(page: &str, member: MemberId) -> Option<OwnPage> {
    let bytes = samples(page, QUOTA).map(|sample| sample.value).next();
    let quota_bytes = bytes.filter(|bytes| bytes.is_finite() && *bytes > 0.0).map(|bytes| bytes as u64);
    let is_etcd = samples(page, GO).next().is_some();
    is_of(page, member).then_some(OwnPage { quota_bytes, is_etcd })
}

/// How often its users and roles were changed; `None` on another member's page.
pub fn users_revision(page: &str, member: MemberId) -> Option<u64> {
    let revision = samples(page, USERS).map(|sample| sample.value).next();
    revision
        .filter(|revision| revision.is_finite() && *revision >= 0.0 && is_of(page, member))
        .map(|found| found as u64)
}

/// What it is in the middle of at this moment; `None` on another member's page.
pub fn activities(page: &str, member: MemberId) -> Option<BTreeSet<Activity>> {
    let sum = |family| samples(page, family).map(|sample| sample.value).sum::<f64>();
    let found = [
        (sum(DEFRAGMENTS) > 0.0, Activity::Defragmentation),
        (sum(COMPACTED_INDEX) > sum(COMPACTED), Activity::Compaction),
        (sum(SENDS_SNAPSHOT) > 0.0 || sum(TAKES_SNAPSHOT) > 0.0, Activity::Snapshot),
    ];
    is_of(page, member).then(|| found.into_iter().filter_map(|(is_so, activity)| is_so.then_some(activity)).collect())
}

/// What this member shows of the gates, all of it of one moment; `None` on another member's page, and where there is
/// nothing of gates. What others propose is on the page too: of one that answers its own word counts.
pub fn gates(page: &str, member: MemberId) -> Option<GateReport> {
    let undecided = samples(page, UNDECIDED).next().filter(|_| is_of(page, member))?;
    let proposed = samples(page, PROPOSED).filter(|sample| sample.names("member", member));
    let mut stored: BTreeMap<MemberId, BTreeMap<String, bool>> = BTreeMap::new();
    for (of, (name, wants)) in samples(page, PROPOSED).filter_map(Sample::proposal).take(MAX_PROPOSALS) {
        stored.entry(of).or_default().insert(name, wants);
    }
    Some(GateReport {
        is_decided: undecided.value == 0.0,
        enabled: samples(page, ENABLED).filter_map(Sample::gate).take(MAX_GATES).collect(),
        proposed: proposed.filter_map(Sample::gate).take(MAX_GATES).collect(),
        stored,
        known: samples(page, KNOWN).filter_map(Sample::known).take(MAX_GATES).collect(),
    })
}

/// Whether it is this member's page.
fn is_of(page: &str, member: MemberId) -> bool {
    samples(page, SERVER_ID).any(|sample| sample.names("server_id", member))
}

/// One line of Prometheus' text format.
struct Sample {
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Sample {
    fn names(&self, label: &str, member: MemberId) -> bool {
        self.labels.get(label).is_some_and(|id| id.parse() == Ok(member))
    }

    fn proposal(mut self) -> Option<(MemberId, (String, bool))> {
        let of = self.labels.remove("member")?.parse().ok()?;
        Some((of, self.gate()?))
    }

    fn known(self) -> Option<(String, Known)> {
        let since = self.labels.get("since")?.parse().ok()?;
        let locked = self.labels.get("locked").and_then(|locked| locked.parse().ok());
        Some((self.gate()?.0, Known { since, locked }))
    }

    fn gate(mut self) -> Option<(String, bool)> {
        Some((self.labels.remove("name").filter(|name| name.len() <= MAX_NAME)?, self.value != 0.0))
    }
}

fn samples<'a>(page: &'a str, family: &'a str) -> impl Iterator<Item = Sample> + 'a {
    page.lines().filter_map(move |line| sample(line.strip_prefix(family)?))
}

/// What comes after the family's name: ` 7` or `{a="b",c="d"} 7`.
fn sample(text: &str) -> Option<Sample> {
    let (mut labels, mut rest) = (BTreeMap::new(), text.strip_prefix('{').unwrap_or(text));
    if rest.len() < text.len() {
        while !rest.starts_with('}') {
            let (name, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.insert(name.to_owned(), value);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ')?.split(' ').next()?.parse().ok()?;
    Some(Sample { labels, value })
}

/// A label's value up to its closing quote, and what follows that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    loop {
        match chars.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            (_, other) => value.push(other),
        }
    }
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

    #[test]
    fn a_members_page_tells_of_that_member_alone() {
        let page =
            |bytes: &str| format!("etcd_server_id{{server_id=\"a1\"}} 1\netcd_server_quota_backend_bytes {bytes}\n");
        let with_go = page("1") + "etcd_server_go_version{server_go_version=\"go1.24.11\"} 1\n";
        for (page, member, found) in [
            (page("2.147483648e+09"), 0xa1, Some((Some(2_147_483_648), false))),
            (page("2.147483648e+09"), 0xa2, None), // somebody else's page
            (page("NaN"), 0xa1, Some((None, false))),
            (page("0"), 0xa1, Some((None, false))),
            (page("-1"), 0xa1, Some((None, false))),
            (with_go.clone(), 0xa1, Some((Some(1), true))),
            (with_go, 0xa2, None),
            ("etcd_server_id{server_id=\"a1\"} 1\n".to_owned(), 0xa1, Some((None, false))),
        ] {
            let found = found.map(|(quota_bytes, is_etcd)| OwnPage { quota_bytes, is_etcd });
            assert_eq!(own_page(&page, MemberId(member)), found, "{page}");
        }
    }

    #[test]
    fn what_a_member_is_in_the_middle_of_and_the_revision_of_its_users_are_on_its_page() {
        use Activity::{Compaction, Defragmentation, Snapshot};
        let compactions = |index, all| format!("{COMPACTED_INDEX} {index}\n{COMPACTED} {all}\n");
        for (page, found) in [
            (String::new(), vec![]),
            (format!("{DEFRAGMENTS} 0\n{TAKES_SNAPSHOT} 0\n"), vec![]),
            (format!("{DEFRAGMENTS} 1\n"), vec![Defragmentation]),
            (format!("{DEFRAGMENTS} NaN\n"), vec![]),
            (compactions(3, 3), vec![]),
            (compactions(4, 3), vec![Compaction]),
            (format!("{TAKES_SNAPSHOT} 1\n"), vec![Snapshot]),
            (format!("{SENDS_SNAPSHOT}{{To=\"a\"}} 0\n{SENDS_SNAPSHOT}{{To=\"b\"}} 1\n"), vec![Snapshot]),
            (format!("{DEFRAGMENTS} 1\n{}", compactions(1, 0)), vec![Defragmentation, Compaction]),
        ] {
            let page = format!("etcd_server_id{{server_id=\"a1\"}} 1\n{page}");
            assert_eq!(activities(&page, MemberId(0xa1)), Some(found.into_iter().collect()), "{page}");
            assert_eq!(activities(&page, MemberId(0xa2)), None, "somebody else's");
        }
        let page = format!("etcd_server_id{{server_id=\"a1\"}} 1\n{USERS} 7\n");
        assert_eq!([0xa1, 0xa2].map(|id| users_revision(&page, MemberId(id))), [Some(7), None]);
        assert_eq!(users_revision(&page.replace(" 7", " NaN"), MemberId(0xa1)), None);
    }

    fn features(text: &str) -> BTreeMap<String, bool> {
        let one = |word: &str| (word[1..].to_owned(), word.starts_with('+'));
        text.split_whitespace().map(one).collect()
    }

    #[test]
    fn a_members_page_tells_of_the_gates_and_of_its_own_wish_alone() {
        let page = |undecided| {
            format!(
                "# HELP etcd_server_id This member's id.\netcd_server_id{{server_id=\"a1\"}} 1\n\
                 etcd_cluster_feature_undecided {undecided}\n\
                 etcd_cluster_feature_enabled{{name=\"A\"}} 0\netcd_cluster_feature_enabled{{name=\"B\"}} 1\n\
                 etcd_cluster_feature_proposed{{member=\"a1\",name=\"A\"}} 1\n\
                 etcd_cluster_feature_proposed{{member=\"a1\",name=\"B\"}} 1\n\
                 etcd_cluster_feature_proposed{{member=\"a2\",name=\"A\"}} 0\n\
                 etcd_cluster_feature_known{{name=\"A\",since=\"3.6\",locked=\"\"}} 1\n\
                 etcd_cluster_feature_known{{name=\"B\",since=\"3.7\",locked=\"true\"}} 1\n"
            )
        };
        for (page, member, found) in [
            (page(0), 0xa1, Some((true, "-A +B", "+A +B"))),
            (page(1), 0xa1, Some((false, "-A +B", "+A +B"))),
            (page(0), 0xa2, None), // somebody else's page
            (page(0).replace("server_id=", "other="), 0xa1, None),
            (page(0).replace("undecided", "settled"), 0xa1, None),
            (page(0).replace("proposed", "wanted"), 0xa1, Some((true, "-A +B", ""))),
        ] {
            let has_proposals = found.is_some_and(|(.., proposed)| !proposed.is_empty());
            let stored = [(0xa1, "+A +B"), (0xa2, "-A")].map(|(of, wants)| (MemberId(of), features(wants)));
            let known = |since: &str, locked| Known { since: since.parse().unwrap(), locked };
            let found = found.map(|(is_decided, enabled, proposed)| GateReport {
                is_decided,
                enabled: features(enabled),
                proposed: features(proposed),
                stored: stored.into_iter().filter(|_| has_proposals).collect(),
                known: [("A".into(), known("3.6", None)), ("B".into(), known("3.7", Some(true)))].into(),
            });
            assert_eq!(gates(&page, MemberId(member)), found, "{page}");
        }
    }

    #[test]
    fn labels_are_read_as_they_were_escaped() {
        for (line, labels, value) in [
            (" 7", "", Some(7.0)),
            (" 7 1395066363000", "", Some(7.0)),
            ("{} 7", "", Some(7.0)),
            (r#"{a="b"} 1"#, "a=b", Some(1.0)),
            (r#"{a="b",c="d} e",} 1"#, "a=b;c=d} e", Some(1.0)),
            (r#"{a="q\"\\\n"} 1"#, "a=q\"\\\n", Some(1.0)),
            (r#"{a="b"}"#, "", None),
            (r#"{a="b"#, "", None),
            ("_more 7", "", None),
        ] {
            let found = sample(line);
            let pairs = found.iter().flat_map(|sample| &sample.labels).map(|(name, value)| format!("{name}={value}"));
            assert_eq!(pairs.collect::<Vec<_>>().join(";"), labels, "{line}");
            assert_eq!(found.map(|sample| sample.value), value, "{line}");
        }
    }
}
