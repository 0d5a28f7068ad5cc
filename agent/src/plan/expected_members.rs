//! The members that a playbook expects, against those that there are. Pure.

use proto::MemberId;
use serde::Serialize;

use crate::observe::peers::PeerUrls;

/// One member that is not as it is expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "difference")]
pub enum Difference {
    /// It is expected, and no member.
    Missing { member: MemberId, expected: Vec<String> },
    /// It is a member, and not expected.
    Unexpected { member: MemberId, found: Vec<String> },
    /// The others reach it elsewhere.
    Elsewhere { member: MemberId, expected: Vec<String>, found: Vec<String> },
}

/// By id. URLs are compared as texts, as etcd compares them.
pub fn differences(expected: &PeerUrls, found: &PeerUrls) -> Vec<Difference> {
    let list = |urls: &std::collections::BTreeSet<String>| urls.iter().cloned().collect::<Vec<_>>();
    let missing_or_elsewhere = expected.iter().filter_map(|(member, urls)| match found.get(member) {
        None => Some(Difference::Missing { member: *member, expected: list(urls) }),
        Some(there) if there != urls => {
            Some(Difference::Elsewhere { member: *member, expected: list(urls), found: list(there) })
        }
        Some(_) => None,
    });
    let unexpected = found.iter().filter(|(member, _)| !expected.contains_key(member));
    let unexpected = unexpected.map(|(member, urls)| Difference::Unexpected { member: *member, found: list(urls) });
    let mut all: Vec<_> = missing_or_elsewhere.chain(unexpected).collect();
    all.sort_by_key(Difference::member);
    all
}

impl Difference {
    pub fn member(&self) -> MemberId {
        match self {
            Self::Missing { member, .. } | Self::Unexpected { member, .. } | Self::Elsewhere { member, .. } => *member,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(list: &[(u64, &[&str])]) -> PeerUrls {
        list.iter().map(|(id, urls)| (MemberId(*id), urls.iter().map(ToString::to_string).collect())).collect()
    }

    #[test]
    fn whoever_is_missing_unexpected_or_elsewhere_is_told() {
        let expected = members(&[(1, &["http://a:1"]), (2, &["http://b:1", "http://b:2"]), (3, &["http://c:1"])]);
        let texts = |urls: &[&str]| urls.iter().map(ToString::to_string).collect::<Vec<_>>();
        let missing = |id, at: &str| Difference::Missing { member: MemberId(id), expected: texts(&[at]) };
        let unexpected = |id, at: &str| Difference::Unexpected { member: MemberId(id), found: texts(&[at]) };
        let elsewhere = |id, expected: &[&str], found: &[&str]| Difference::Elsewhere {
            member: MemberId(id),
            expected: texts(expected),
            found: texts(found),
        };
        for (found, told) in [
            (expected.clone(), vec![]),
            (members(&[(1, &["http://a:1"]), (2, &["http://b:2", "http://b:1"])]), vec![missing(3, "http://c:1")]),
            (
                members(&[(1, &["http://a:1/"]), (2, &["http://b:1"]), (3, &["http://c:1"]), (4, &["http://d:1"])]),
                vec![
                    elsewhere(1, &["http://a:1"], &["http://a:1/"]),
                    elsewhere(2, &["http://b:1", "http://b:2"], &["http://b:1"]),
                    unexpected(4, "http://d:1"),
                ],
            ),
        ] {
            assert_eq!(differences(&expected, &found), told);
        }
    }
}
