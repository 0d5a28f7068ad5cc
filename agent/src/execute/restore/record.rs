//! What this host was told to restore, and how far it is: a file in the state directory, written before what it says is done (I-6).
//!
//! What is in a member's data directory says the rest: a member is either in its place or beside it, as both are exchanged in one
//! rename.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use proto::{ClusterId, Release};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::place::TOKEN;
use crate::{
    host::files::durable::{self, Access, FileError},
    words::typed,
};

const FORMAT: u32 = 1;

/// The voters of the new cluster by name, each with its peer URLs.
pub type Founders = BTreeMap<String, BTreeSet<String>>;

/// What makes one restored cluster another than any other. Hosts with the same of it make one cluster; hosts with another can never
/// meet, for members of two clusters refuse each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub sha256: String,
    pub founders: Founders,
    /// How many revisions are left out.
    pub bump: u64,
    /// What a person has called it, where the same is made once more. Members of the first one must not meet those of the second: they
    /// would have the same ids, and other logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The new data is ready beside the old. A member may be down from now on.
    Placing,
    /// Every member of this host was started on it.
    Done,
    /// No member of this host has gone over, and none is to.
    GivenUp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    format: u32,
    /// The file, as it was typed.
    pub from: PathBuf,
    pub origin: Origin,
    /// What the members are to run, where that was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// The new cluster.
    pub cluster: ClusterId,
    /// The cluster whose data is put aside, where this host has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<ClusterId>,
    pub phase: Phase,
    /// Whether the old cluster could go though it served, where that was typed. Typed again it is judged again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub discard: bool,
    /// The clusters that this host was restored into before: none of them is made here again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub past: BTreeSet<ClusterId>,
}

/// Why it is not known what is in hand.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} does not say what is being restored: {source}; see by hand whose data the members have, then remove it", path.display())]
    Unreadable { path: PathBuf, source: serde_json::Error },
    #[error("{} has format {found}, written by a newer agent", path.display())]
    Newer { path: PathBuf, found: u32 },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Origin {
    /// `--initial-cluster-token`: nobody else makes the same.
    pub fn token(&self) -> String {
        let mut text = format!("{}\n{}\n{:?}\n", self.sha256, self.bump, self.again);
        for (name, urls) in &self.founders {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} {}", urls.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
        }
        let digest: String = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{TOKEN}{digest}")
    }

    /// `--initial-cluster`
    pub fn initial_cluster(&self) -> String {
        let one = |(name, urls): (&String, &BTreeSet<String>)| urls.iter().map(|url| format!("{name}={url}")).collect();
        let all: Vec<Vec<String>> = self.founders.iter().map(one).collect();
        all.concat().join(",")
    }
}

impl Record {
    pub fn new(
        from: &Path,
        origin: Origin,
        release: Option<Release>,
        (cluster, replaces): (ClusterId, Option<ClusterId>),
        past: BTreeSet<ClusterId>,
    ) -> Self {
        let (phase, discard) = (Phase::Placing, false);
        Self { format: FORMAT, from: from.into(), origin, release, cluster, replaces, phase, discard, past }
    }

    /// What was typed behind the playbook, so that it goes on.
    pub fn words(&self) -> String {
        let Origin { bump, again, .. } = &self.origin;
        let mut words = format!(" --from {} --bump-revision {bump}", typed(&self.from.to_string_lossy()));
        if let Some(release) = &self.release {
            words += &format!(" --release {release}");
        }
        if self.discard {
            words += " --discard-cluster";
        }
        if let Some(again) = again {
            words += &format!(" --again {}", typed(again));
        }
        words
    }

    /// Every cluster that this host was restored into, or may have been.
    pub fn clusters(&self) -> BTreeSet<ClusterId> {
        let last = (self.phase != Phase::GivenUp).then_some(self.cluster);
        self.past.iter().copied().chain(last).collect()
    }

    /// From now on nothing is in hand. One that may have served is not made from the file again all the same.
    pub fn give_up(&mut self, may_have_served: bool) {
        self.past.extend(may_have_served.then_some(self.cluster));
        self.phase = Phase::GivenUp;
    }

    /// The last one of this state directory.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        let Some(bytes) = durable::read_if_there(path)? else { return Ok(None) };
        let unreadable = |source| RecordError::Unreadable { path: path.into(), source };
        let found: serde_json::Value = serde_json::from_slice(&bytes).map_err(unreadable)?;
        match found.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format > u64::from(FORMAT) => {
                Err(RecordError::Newer { path: path.into(), found: u32::try_from(format).unwrap_or(u32::MAX) })
            }
            _ => serde_json::from_value(found).map(Some).map_err(unreadable),
        }
    }

    /// Makes it durable.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&self, path: &Path) -> Result<(), RecordError> {
        let text = serde_json::to_vec(self).map_err(|source| RecordError::Unreadable { path: path.into(), source })?;
        Ok(durable::write(path, &text, &Access::PRIVATE)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        let urls = |url: &str| BTreeSet::from([url.to_owned()]);
        let founders = [("m1".to_owned(), urls("http://h1:1")), ("m2".to_owned(), urls("http://h2:1"))].into();
        Origin { sha256: "ab".into(), founders, bump: 7, again: None }
    }

    #[test]
    fn whoever_restores_something_else_makes_another_cluster() {
        let mut others = vec![origin(); 5];
        others[0].sha256 = "ac".into();
        others[1].bump = 8;
        others[2].again = Some("x".into());
        others[3].founders.remove("m2");
        if let Some(urls) = others[4].founders.get_mut("m2") {
            *urls = ["http://h3:1".to_owned()].into();
        }
        let tokens: BTreeSet<_> = others.iter().map(Origin::token).chain([origin().token()]).collect();
        assert_eq!(tokens.len(), 6, "{tokens:?}");
        assert_eq!(origin().token(), origin().token());
        assert_eq!(origin().initial_cluster(), "m1=http://h1:1,m2=http://h2:1");
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("restore");
        assert_eq!(Record::read(&path).unwrap(), None);
        let past = [ClusterId(2)].into();
        let mut record =
            Record::new(Path::new("/b.db"), origin(), Some(Release::new(3, 5, 0)), (ClusterId(3), None), past);
        assert_eq!(record.words(), " --from /b.db --bump-revision 7 --release 3.5.0");
        record.discard = true;
        record.write(&path).unwrap();
        assert_eq!(record.words(), " --from /b.db --bump-revision 7 --release 3.5.0 --discard-cluster");
        assert_eq!(Record::read(&path).unwrap(), Some(record));
        for (may_have_served, clusters) in [(false, vec![2]), (true, vec![2, 3])] {
            let mut record = Record::read(&path).unwrap().unwrap();
            assert_eq!(record.clusters(), [2, 3].map(ClusterId).into());
            record.give_up(may_have_served);
            assert_eq!(record.clusters(), clusters.into_iter().map(ClusterId).collect());
        }
        std::fs::write(&path, r#"{"format":2}"#).unwrap();
        assert!(matches!(Record::read(&path), Err(RecordError::Newer { found: 2, .. })));
        std::fs::write(&path, "{").unwrap();
        assert!(matches!(Record::read(&path), Err(RecordError::Unreadable { .. })));
    }
}
