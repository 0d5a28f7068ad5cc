//! Calls by the version of their client's API, which etcd's clients say (`clientRequests` in server/etcdserver/api/v3rpc/interceptor.go).
//!
//! With no lock. Only so many versions are told apart: whoever calls may say whatever comes to his mind.

use std::sync::OnceLock;

use http::HeaderMap;
use instruments::Counter;

/// Where clients say it (etcd, `MetadataClientAPIVersionKey`).
const KEY: &str = "client-api-version";
/// Of one that says nothing.
const UNKNOWN: &str = "unknown";
/// Of all that come when there is no room, and of what is no version.
const OTHER: &str = "other";
const MOST: usize = 16;
const LONGEST: usize = 32;

/// Of one version.
#[derive(Debug, Default)]
pub(super) struct OfVersion {
    version: String,
    unary: Counter,
    stream: Counter,
}

#[derive(Debug, Default)]
pub(super) struct ClientVersions {
    /// As they came.
    known: [OnceLock<OfVersion>; MOST],
    others: OfVersion,
}

impl ClientVersions {
    /// Counts a call, which is a stream or not.
    pub(super) fn note(&self, headers: &HeaderMap, is_stream: bool) {
        let said = headers.get(KEY).map_or(Some(UNKNOWN), |value| value.to_str().ok());
        let said = said.filter(|version| version.len() <= LONGEST && *version != OTHER);
        let of = said.and_then(|version| self.of(version)).unwrap_or(&self.others);
        (if is_stream { &of.stream } else { &of.unary }).inc();
    }

    fn of(&self, version: &str) -> Option<&OfVersion> {
        let new = || OfVersion { version: version.to_owned(), ..OfVersion::default() };
        self.known.iter().map(|place| place.get_or_init(new)).find(|of| of.version == version)
    }

    /// Each version that came, as type, version and how many.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str, u64)> {
        let known = self.known.iter().filter_map(|place| place.get()).map(|of| (&*of.version, of));
        let all = known.chain([(OTHER, &self.others)]);
        let both =
            all.flat_map(|(version, of)| [("stream", version, of.stream.get()), ("unary", version, of.unary.get())]);
        both.filter(|(.., count)| *count > 0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn saying(version: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(KEY), HeaderValue::from_str(version).unwrap())])
    }

    #[test]
    fn whoever_says_the_name_of_all_others_is_one_of_them() {
        let versions = ClientVersions::default();
        for version in [OTHER, "a version that is longer than any version is"] {
            versions.note(&saying(version), false);
        }
        assert_eq!(versions.all().collect::<Vec<_>>(), [("unary", OTHER, 2)]);
    }

    #[test]
    fn no_more_versions_are_told_apart_than_there_are_places() {
        let versions = ClientVersions::default();
        versions.note(&HeaderMap::new(), true);
        for number in 0..2 * MOST {
            let headers = saying(&format!("3.{number}"));
            versions.note(&headers, false);
            versions.note(&headers, false);
        }
        let all: Vec<_> = versions.all().collect();
        assert_eq!(all.first(), Some(&("stream", UNKNOWN, 1)));
        assert!(all.contains(&("unary", "3.14", 2)), "{all:?}");
        assert_eq!(all.last(), Some(&("unary", OTHER, 2 * (MOST as u64 + 1))));
        assert_eq!(all.len(), MOST + 1);
    }
}
