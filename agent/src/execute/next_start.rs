//! What the next start of a member is told that would make another of it: a cluster of its own, or somebody without a past.
//!
//! etcd takes both without a word. `--force-new-cluster` removes all other members from what the member knows, and leaves a cluster of
//! one. With another data directory the member votes under its id, and has forgotten what it promised (raft paper, 5.4). So this is asked
//! before a stop, and again before each start. Before a stop two more things are: a setting that ends the new release at once, and one by
//! which nothing waits for the disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use proto::ClusterVersion;

use super::{
    data_dir::data_dir,
    error::ActError,
    lost_settings::{PREFIX, config_file, variable_of},
    node::{OwnNode, Side},
};
use crate::{
    host::{
        blocking::blocking,
        files::data_dir::DataDir,
        process::member_setting::{configured, switched},
        runtime::{
            same_node::value,
            systemd::{
                check::NextStart,
                mounts::{Lies, Mounts},
            },
        },
    },
    playbook, regular_file,
};

/// How long a configuration file may be, in bytes.
const MAX_FILE: usize = 1 << 20;
const FORCE_NEW_CLUSTER: &str = "force-new-cluster";
const DATA_DIR: &str = "data-dir";
const WAL_DIR: &str = "wal-dir";
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
        let objection = start.objection(self.node.data_dir.as_deref(), self.runs_on().await.as_ref());
        self.refused(objection.or_else(gone))
    }

    /// Right before it is started: what would make another of it. What cannot be asked keeps nobody down who was stopped (I-10).
    ///
    /// # Errors
    /// As of [`OwnNode::check_next_start`].
    pub(super) async fn check_start_now(&self) -> Result<(), ActError> {
        let Ok(side) = self.current().await else { return Ok(()) };
        let Ok(Some(start)) = self.next_start(&side).await else { return Ok(()) };
        self.refused(start.objection(self.node.data_dir.as_deref(), None))
    }

    /// The folder that the next start of its unit names by this flag, on this host.
    pub(super) async fn unit_folder(&self, flag: &str) -> Option<PathBuf> {
        let start = self.unit_start(None).await.ok()??;
        match self.start_of_unit(start, None).folder(flag)? {
            Lies::OnHost(folder) => Some(folder),
            Lies::Nowhere => None,
        }
    }

    /// Where its process has its data, by way of that process: a unit may see another file system than this host. `None` where a command
    /// of the operator's starts it.
    async fn runs_on(&self) -> Option<DataDir> {
        if matches!(self.node.runtime, playbook::Runtime::Command(_)) {
            return None;
        }
        let pid = self.peek().await.ok()?.process()?.identity.pid;
        blocking(move || data_dir(pid).filter(|found| found.data.is_dir())).await
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
        let process = match &self.node.runtime {
            playbook::Runtime::Process(process) => process,
            playbook::Runtime::Systemd(_) => {
                let start = self.unit_start(Some(side)).await?;
                return Ok(start.map(|start| self.start_of_unit(start, Some(side))));
            }
            playbook::Runtime::Command(_) => return Ok(None),
        };
        let words = process.command_line(&self.node.context(&side.release))?;
        let variables = self.variables(side).await?;
        let file = config_file(&words, &variables).map(|file| self.text_for(&self.cwd().join(file), Some(side)));
        Ok(Some(Start {
            words,
            variables,
            file,
            works_in: Some(self.cwd()),
            mounts: Mounts::default(),
            // Its program may be one that starts the member by words of its own.
            has_default: false,
        }))
    }

    /// Where it is not known what that starts its program with, its variables count all the same.
    fn start_of_unit(&self, start: NextStart, side: Option<&Side>) -> Start {
        let NextStart { variables, arguments, works_in, mounts, .. } = start;
        let has_all_words = arguments.is_some();
        let words = arguments.unwrap_or_default();
        let file = config_file(&words, &variables).map(|file| {
            let seen = works_in.as_deref().unwrap_or(Path::new("")).join(file);
            match mounts.place(&seen) {
                Lies::OnHost(path) if path.is_absolute() => self.text_for(&path, side),
                Lies::OnHost(_) | Lies::Nowhere => None,
            }
        });
        Start { words, variables, file, works_in, mounts, has_default: has_all_words }
    }

    fn text_for(&self, path: &Path, side: Option<&Side>) -> Option<String> {
        let put = side.and_then(|side| self.put_for(path, side).ok());
        String::from_utf8(regular_file::read(put.as_deref().unwrap_or(path), MAX_FILE).ok()?).ok()
    }
}

/// What a start is told.
struct Start {
    words: Vec<String>,
    variables: BTreeMap<String, String>,
    /// Its configuration file, which alone counts where there is one; within, nothing where it cannot be read.
    file: Option<Option<String>>,
    /// Where relative paths begin, as the program sees it.
    works_in: Option<PathBuf>,
    mounts: Mounts,
    /// Whether the program has a data directory where it is told none: of a unit whose words are all known.
    has_default: bool,
}

impl Start {
    /// `data` is what the playbook says, and `runs_on` where its process has it.
    fn objection(&self, data: Option<&Path>, runs_on: Option<&DataDir>) -> Option<String> {
        if let Some(place) = self.switched(FORCE_NEW_CLUSTER) {
            return Some(format!(
                "its next start is given {place}, which makes a cluster of this member alone, and the others are lost to it; \
                 take that out"
            ));
        }
        let told = match self.folder(DATA_DIR) {
            None => return runs_on.and_then(|runs_on| self.other_log(runs_on)),
            Some(Lies::OnHost(told)) => told,
            Some(Lies::Nowhere) => {
                return Some(format!(
                    "its next start has its `{DATA_DIR}` in a file system that is made anew each time (TemporaryFileSystem=), where it would \
                     be somebody else; take that out, or bind the folder there (BindPaths=)"
                ));
            }
        };
        let is_other = |data: &&Path| !is_same(data, &told);
        let told = told.display();
        if let Some(data) = data.filter(is_other) {
            let data = data.display();
            return Some(format!(
                "`data_dir` is {data}, and its next start is given {told} as `{DATA_DIR}`, where it would be somebody else; correct the one \
                 that is wrong"
            ));
        }
        let runs_on = runs_on?;
        if is_other(&runs_on.data.as_path()) {
            return Some(format!(
                "it runs on {}, and its next start has {told} as `{DATA_DIR}`, where it would be somebody else; correct what it is started \
                 with",
                real(&runs_on.data).display()
            ));
        }
        self.other_log(runs_on)
    }

    /// A database with a new log would have forgotten what the member promised, as much as one without either.
    fn other_log(&self, runs_on: &DataDir) -> Option<String> {
        let has = runs_on.log();
        let gets = match self.folder(WAL_DIR) {
            Some(Lies::OnHost(told)) => told,
            Some(Lies::Nowhere) => PathBuf::from("a file system that is made anew each time"),
            // Who is told of its data is told of its log as well, or has it within.
            None if self.has_default || self.said(DATA_DIR).is_some() => {
                DataDir { data: runs_on.data.clone(), wal: None }.log()
            }
            None => return None,
        };
        (!is_same(&has, &gets)).then(|| {
            format!(
                "it has its log in {}, and its next start has it in {} (`{WAL_DIR}`), without what it promised the others; correct what it is \
                 started with",
                real(&has).display(),
                gets.display()
            )
        })
    }

    /// The folder that is named by this flag, or that etcd takes where none is.
    fn folder(&self, flag: &str) -> Option<Lies> {
        let untold = || {
            // A unit that is told nothing starts something else.
            let is_told = self.words.iter().any(|word| word.starts_with('-'))
                || self.variables.keys().any(|name| name.starts_with(PREFIX));
            let is_its = self.has_default && is_told && flag == DATA_DIR && !matches!(self.file, Some(None));
            is_its.then(|| format!("{}.etcd", self.said("name").unwrap_or_else(|| "default".into())))
        };
        let path = PathBuf::from(self.said(flag).or_else(untold)?);
        let path = if path.is_absolute() { path } else { self.works_in.as_ref()?.join(path) };
        path.is_absolute().then(|| self.mounts.place(&path))
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

/// By whichever path, and through whichever mount.
fn is_same(one: &Path, other: &Path) -> bool {
    let inode = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    real(one) == real(other) || inode(one).is_some_and(|found| inode(other) == Some(found))
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit is changed after its member was started.
    #[test]
    fn a_unit_that_would_start_elsewhere_than_it_runs_is_told() {
        for (line, works_in, mounts, runs_on, is_refused) in [
            ("--data-dir=/d", Some("/"), "", "/d", false),
            ("--data-dir=/e", Some("/"), "", "/d", true),
            ("--data-dir=etcd", Some("/var/lib"), "", "/var/lib/etcd", false),
            ("--data-dir=etcd", Some("/srv"), "", "/var/lib/etcd", true),
            ("--data-dir=etcd", None, "", "/var/lib/etcd", false), // in its user's home, for all that is known
            ("--name=m1", Some("/"), "", "/var/lib/etcd", true),
            ("--name=m1", Some("/srv"), "", "/srv/m1.etcd", false),
            ("", Some("/srv"), "", "/srv/default.etcd", false),
            ("--data-dir=/data", Some("/"), "/d:/data", "/d", false),
            ("--data-dir=/d", Some("/"), "/empty:/d", "/d", true),
            ("--data-dir=/d/x", Some("/"), ":/d", "/d/x", true),
        ] {
            let words = line.split_whitespace().map(str::to_owned).collect();
            let mut place = Mounts::default();
            match mounts.split_once(':') {
                Some(("", empty)) => place.empty.push(empty.into()),
                Some((source, to)) => place.binds.push((source.into(), to.into())),
                None => {}
            }
            let start = Start {
                words,
                variables: BTreeMap::new(),
                file: None,
                works_in: works_in.map(PathBuf::from),
                mounts: place,
                has_default: true,
            };
            let found = start.objection(None, Some(&DataDir { data: runs_on.into(), wal: None }));
            assert_eq!(found.is_some(), is_refused, "{line} {works_in:?} {mounts}: {found:?}");
        }
    }

    #[test]
    fn a_start_with_another_log_is_told() {
        for (line, file, wal, is_refused) in [
            ("etcd --data-dir=/d", None, None, false),
            ("etcd --data-dir=/d --wal-dir=/w", None, Some("/w"), false),
            ("etcd --data-dir=/d --wal-dir=/d/member/wal", None, None, false),
            ("etcd --data-dir=/d --wal-dir=/w", None, None, true),
            ("etcd --data-dir=/d", None, Some("/w"), true),
            ("etcd --data-dir=/d --wal-dir=/w --wal-dir=/x", None, Some("/w"), true),
            ("etcd --config-file=/c", Some("data-dir: /d\nwal-dir: /w"), Some("/w"), false),
            ("etcd --config-file=/c", Some("data-dir: /d"), Some("/w"), true),
            ("start-etcd --fast", None, Some("/w"), false), // by words of its own
        ] {
            let start = Start {
                words: line.split(' ').map(str::to_owned).collect(),
                variables: BTreeMap::new(),
                file: file.map(|text| Some(text.to_owned())),
                works_in: Some("/".into()),
                mounts: Mounts::default(),
                has_default: false,
            };
            let runs_on = DataDir { data: "/d".into(), wal: wal.map(PathBuf::from) };
            let found = start.objection(None, Some(&runs_on));
            assert_eq!(found.is_some(), is_refused, "{line} {wal:?}: {found:?}");
        }
    }

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
            let start = Start {
                words,
                variables,
                file: file.map(|text| Some(text.to_owned())),
                works_in: Some("/w".into()),
                mounts: Mounts::default(),
                has_default: false,
            };
            let found = start.objection(Some(Path::new("/d")), None).or_else(|| start.gone());
            assert_eq!(found.is_some(), expected.is_some(), "{line} {environment} {file:?}: {found:?}");
            assert!(expected.is_none_or(|words| found.is_some_and(|why| why.contains(words))), "{line}");
        }
    }
}
