//! What the next start of a member is told that would make another of it: a cluster of its own, or somebody without a past.
//!
//! etcd takes both without a word. `--force-new-cluster` removes all other members from what the member knows, and leaves a cluster of
//! one. With another data directory the member votes under its id, and has forgotten what it promised (raft paper, 5.4). So this is asked
//! before a stop, and again before each start. Before a stop two more things are: a setting that ends the new release at once, and one by
//! which nothing waits for the disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use proto::ClusterVersion;

use super::{
    error::ActError,
    lost_settings::{PREFIX, config_file, variable_of},
    node::{OwnNode, Side},
};
use crate::{
    host::{
        process::member_setting::{configured, switched},
        runtime::same_node::value,
    },
    playbook, regular_file,
};

/// How long a configuration file may be, in bytes.
const MAX_FILE: usize = 1 << 20;
const FORCE_NEW_CLUSTER: &str = "force-new-cluster";
const DATA_DIR: &str = "data-dir";
/// The flag, and what is known of it.
const NO_FSYNC: (&str, &str) = ("unsafe-no-fsync", "no-fsync");
/// etcd, CHANGELOG-3.5.
const WITHOUT_CAPNSLOG: ClusterVersion = ClusterVersion { major: 3, minor: 5 };

impl OwnNode {
    /// Refuses what its next start at this side says, where that would make another of it, or end it at once.
    ///
    /// # Errors
    /// What it is, and what to correct.
    pub(super) async fn check_next_start(&self, side: &Side) -> Result<(), ActError> {
        let Some(start) = self.next_start(side).await? else { return Ok(()) };
        let gone = || (side.release.cluster_version() >= WITHOUT_CAPNSLOG).then(|| start.gone()).flatten();
        self.refused(start.objection(&self.cwd(), self.node.data_dir.as_deref()).or_else(gone))
    }

    /// Right before it is started: what would make another of it. What cannot be asked keeps nobody down who was stopped (I-10).
    ///
    /// # Errors
    /// As of [`OwnNode::check_next_start`].
    pub(super) async fn check_start_now(&self) -> Result<(), ActError> {
        let Ok(side) = self.current().await else { return Ok(()) };
        let Ok(Some(start)) = self.next_start(&side).await else { return Ok(()) };
        self.refused(start.objection(&self.cwd(), self.node.data_dir.as_deref()))
    }

    fn refused(&self, why: Option<String>) -> Result<(), ActError> {
        why.map_or(Ok(()), |why| Err(format!("{}: {why}", self.node.name).into()))
    }

    /// Refuses a next start that writes without waiting for the disk.
    ///
    /// # Errors
    /// The playbook does not accept it.
    pub(super) async fn check_fsync(&self, side: &Side, accepted: &BTreeSet<String>) -> Result<(), ActError> {
        let start = if accepted.contains(NO_FSYNC.1) { None } else { self.next_start(side).await? };
        match start.and_then(|start| start.switched(NO_FSYNC.0)) {
            Some(place) => {
                let shown = format!(", which is given {place}");
                Err(ActError::KnownHazard { node: self.node.name.clone(), id: NO_FSYNC.1, shown })
            }
            None => Ok(()),
        }
    }

    /// `None` where a command of the operator's starts it: what that starts, and with what, is its own.
    async fn next_start(&self, side: &Side) -> Result<Option<Start>, ActError> {
        let words = match &self.node.runtime {
            playbook::Runtime::Process(process) => process.command_line(&self.node.context(&side.release))?,
            playbook::Runtime::Systemd(_) => self.arguments(side).await?.unwrap_or_default(),
            playbook::Runtime::Command(_) => return Ok(None),
        };
        let variables = self.variables(side).await?;
        let file = config_file(&words, &variables).map(|file| {
            let path = self.put_for(&self.cwd().join(file), side).unwrap_or_else(|_| PathBuf::from(file));
            regular_file::read(&path, MAX_FILE).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        });
        Ok(Some(Start { words, variables, file }))
    }
}

/// What a start is told.
struct Start {
    words: Vec<String>,
    variables: BTreeMap<String, String>,
    /// Its configuration file, which alone counts where there is one; within, nothing where it cannot be read.
    file: Option<Option<String>>,
}

impl Start {
    fn objection(&self, cwd: &Path, data: Option<&Path>) -> Option<String> {
        if let Some(place) = self.switched(FORCE_NEW_CLUSTER) {
            return Some(format!(
                "its next start is given {place}, which makes a cluster of this member alone, and the others are lost to it; \
                 take that out"
            ));
        }
        let told = self.said(DATA_DIR).map(|told| cwd.join(told)).filter(|told| told.is_absolute())?;
        let data = data.filter(|data| real(data) != real(&told))?;
        Some(format!(
            "`data_dir` is {}, and its next start is given {} as `{DATA_DIR}`, where it would be somebody else; correct the one that \
             is wrong",
            data.display(),
            told.display()
        ))
    }

    /// What a release does not take any more though it knows the flag, and so is not seen by asking it.
    fn gone(&self) -> Option<String> {
        let is_gone = self.said("logger").is_some_and(|logger| logger == "capnslog");
        is_gone
            .then(|| "its next start is given `logger` as `capnslog`, which ends etcd from 3.5 on; write `zap`".into())
    }

    /// Where a flag of two values is on, in words.
    fn switched(&self, flag: &str) -> Option<String> {
        let bare = self.variables.iter().filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value.as_str())));
        switched(flag, &self.words, &bare.collect::<Vec<_>>(), |_| self.file.clone().flatten())
    }

    fn said(&self, flag: &str) -> Option<String> {
        let said = match &self.file {
            Some(file) => configured(file.as_deref()?, flag),
            None => {
                let variable = || self.variables.get(&variable_of(flag));
                value(&self.words, flag).or_else(|| variable().map(String::as_str)).map(str::to_owned)
            }
        };
        said.filter(|said| !said.is_empty())
    }
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_makes_another_of_a_member_is_told() {
        let elsewhere = Some("where it would be somebody else");
        for (line, environment, file, expected) in [
            ("etcd --data-dir=/d", "", None, None),
            ("etcd --data-dir /d/", "", None, None),
            ("etcd", "ETCD_DATA_DIR=/d", None, None),
            ("etcd", "", None, None), // where etcd has it, the playbook need not say
            ("etcd --data-dir=/e", "", None, elsewhere),
            ("etcd --data-dir=d", "", None, elsewhere), // within its working folder
            ("etcd", "ETCD_DATA_DIR=/e", None, elsewhere),
            ("etcd --data-dir=/e --config-file=/c", "", Some("data-dir: /d"), None),
            ("etcd --config-file=/c", "", Some("Data-Dir: /e"), elsewhere),
            ("etcd", "ETCD_CONFIG_FILE=/c ETCD_DATA_DIR=/d", Some("data-dir: /e"), elsewhere),
            ("etcd --force-new-cluster", "", None, Some("`--force-new-cluster`")),
            ("sudo etcd -force-new-cluster=1", "", None, Some("`--force-new-cluster`")),
            ("etcd --force-new-cluster=false", "ETCD_FORCE_NEW_CLUSTER=true", None, None),
            ("etcd", "ETCD_FORCE_NEW_CLUSTER=true", None, Some("`ETCD_FORCE_NEW_CLUSTER`")),
            ("etcd --config-file /c", "ETCD_FORCE_NEW_CLUSTER=true", Some("name: m1"), None),
            ("etcd --config-file /c", "", Some("Force-New-Cluster: true"), Some("in its configuration file")),
            ("etcd --config-file /c", "", Some("{\"force-new-cluster\": true}"), Some("in its configuration file")),
            ("etcd --config-file /c", "", Some("force-new-cluster: false"), None),
            ("etcd --logger=zap", "", None, None),
            ("etcd --logger capnslog", "", None, Some("`capnslog`")),
            ("etcd --config-file /c", "", Some("logger: capnslog"), Some("`capnslog`")),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let pairs = environment.split_whitespace().filter_map(|word| word.split_once('='));
            let variables = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let start = Start { words, variables, file: file.map(|text| Some(text.to_owned())) };
            let found = start.objection(Path::new("/w"), Some(Path::new("/d"))).or_else(|| start.gone());
            assert_eq!(found.is_some(), expected.is_some(), "{line} {environment} {file:?}: {found:?}");
            assert!(expected.is_none_or(|words| found.is_some_and(|why| why.contains(words))), "{line}");
        }
    }
}
