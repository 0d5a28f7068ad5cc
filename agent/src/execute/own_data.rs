//! What this host has of a member on its disk, and whether that is enough for a start.
//!
//! A member that has voted and comes back under its id with nothing has forgotten what it promised: then a write that a majority has
//! acknowledged can be lost (raft paper, 5.4). etcd begins such a member without a word, where `--initial-cluster` lists it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proto::{ClusterId, MemberId};

use super::{data_dir::data_dir, error::ActError, newcomer, node::OwnNode};
use crate::{
    host::{
        blocking::blocking,
        files::whose::{Whose, has_more_than_a_log, member_of_log, whose},
        process::member_setting::configured,
        runtime::same_node::value,
    },
    observe::directory::Listed,
    plan::membership::survey::Data,
    playbook::{self, Runtime},
};

/// What is in a node's data directory, as the playbook names it. Where a newcomer would begin its log among other things, which etcd
/// deletes then, that is not understood.
pub(super) async fn data(node: &playbook::Node) -> Data {
    let Some(folder) = node.data_dir.clone() else { return Data::Unnamed };
    let log = log_elsewhere(&node.runtime, &folder);
    let data = match data_in(node, folder.clone()).await {
        // A log within it is somebody's all the same, though a start would look for it elsewhere.
        Data::NoLog if log.is_some() => match blocking(move || whose(&folder, &within(&folder))).await {
            Whose::Member { cluster, member } => Data::Of { cluster, member },
            Whose::Unknown(why) => Data::Unknown(why.into()),
            Whose::Nobody | Whose::NoLog => Data::NoLog,
        },
        data => data,
    };
    let begins = matches!(data, Data::None | Data::NoLog);
    match begins && blocking(move || log.is_some_and(|log| has_more_than_a_log(&log))).await {
        true => Data::Unknown("the folder that `wal-dir` names has more than a log, or cannot be read".into()),
        false => data,
    }
}

async fn data_in(node: &playbook::Node, folder: PathBuf) -> Data {
    let told = log_folder(&node.runtime, &folder);
    let is_known = told.is_some();
    let log = told.unwrap_or_else(|| within(&folder));
    match blocking(move || whose(&folder, &log)).await {
        Whose::Nobody => Data::None,
        Whose::NoLog if is_known => Data::NoLog,
        Whose::NoLog => Data::Unknown("it has a database and no log, which may lie elsewhere".into()),
        Whose::Member { cluster, member } => Data::Of { cluster, member },
        Whose::Unknown(why) => Data::Unknown(why.into()),
    }
}

/// What a start says of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    As(String),
    /// It is left to etcd.
    Nothing,
    /// By a unit, by commands, by a file that cannot be read, by a template, or for some releases only.
    Unknown,
}

/// What the agent's own start says of this flag. etcd takes it from a file alone where there is one, else from its arguments, else from
/// its environment. What is added for some releases only is not known here.
fn told(runtime: &Runtime, flag: &str) -> Told {
    let Runtime::Process(process) = runtime else { return Told::Unknown };
    let variable = |flag: &str| process.env.get(&format!("ETCD_{}", flag.to_uppercase().replace('-', "_")));
    let given = |flag: &str| {
        let given = value(&process.argv, flag).or_else(|| variable(flag).map(String::as_str));
        given.filter(|given| !given.is_empty())
    };
    if process.args.iter().any(|some| value(&some.add, flag).is_some() || value(&some.add, "config-file").is_some()) {
        return Told::Unknown;
    }
    let said = match given("config-file") {
        Some(file) if file.contains("{{") => return Told::Unknown,
        Some(file) => match newcomer::read(&process.cwd, Path::new(file)) {
            Some(text) => configured(&text, flag).filter(|said| !said.is_empty()),
            None => return Told::Unknown,
        },
        None => given(flag).map(str::to_owned),
    };
    match said {
        Some(said) if said.contains("{{") => Told::Unknown,
        Some(said) => Told::As(said),
        None => Told::Nothing,
    }
}

/// The folder that the agent's own start names by this flag.
pub(super) fn told_folder(runtime: &Runtime, flag: &str) -> Option<PathBuf> {
    let (Runtime::Process(process), Told::As(folder)) = (runtime, told(runtime, flag)) else { return None };
    let folder = match &process.cwd {
        Some(cwd) => cwd.join(folder),
        None => PathBuf::from(folder),
    };
    Some(folder).filter(|folder| folder.is_absolute())
}

/// What the agent's own start says of this flag.
pub(super) fn told_text(runtime: &Runtime, flag: &str) -> Option<String> {
    match told(runtime, flag) {
        Told::As(text) => Some(text),
        Told::Nothing | Told::Unknown => None,
    }
}

/// Where the log of a member lies that has its data here; `None` where nobody knows.
fn log_folder(runtime: &Runtime, data: &Path) -> Option<PathBuf> {
    match told(runtime, "wal-dir") {
        Told::Nothing => Some(within(data)),
        Told::As(_) => told_folder(runtime, "wal-dir"),
        Told::Unknown => None,
    }
}

/// Where its log lies by its `--wal-dir`, if that is not within its data directory.
fn log_elsewhere(runtime: &Runtime, data: &Path) -> Option<PathBuf> {
    told_folder(runtime, "wal-dir").filter(|log| !log.starts_with(data))
}

/// Where etcd has its log unless it is told another place.
fn within(data: &Path) -> PathBuf {
    data.join("member/wal")
}

/// Which member has begun in a newcomer's data directory. It may be listed without a name: etcd publishes that once the member serves.
/// One that is listed by another name, or not at all, is not the newcomer.
pub(super) async fn begun_here(node: &playbook::Node, cluster: ClusterId, listed: &[Listed]) -> Option<MemberId> {
    match data(node).await {
        Data::Of { cluster: of, member } if node.may_join && of == cluster => listed
            .iter()
            .any(|one| one.id == member && (one.name.is_empty() || one.name == node.name))
            .then_some(member),
        _ => None,
    }
}

impl OwnNode {
    /// What is in its data directory.
    pub(super) async fn data(&self) -> Data {
        data(&self.node).await
    }

    /// Where its data lies: its directory, and its log where that was told another place.
    ///
    /// # Errors
    /// The playbook does not name it, or what lies beside the log is not its own.
    pub(super) fn data_folders(&self) -> Result<Vec<PathBuf>, ActError> {
        let Some(data) = &self.node.data_dir else { return Err("the playbook has no `data_dir`".into()) };
        let log = log_elsewhere(&self.node.runtime, data);
        if let Some(folder) = log.as_ref().filter(|log| has_more_than_a_log(log)) {
            let (folder, name) = (folder.display(), &self.node.name);
            return Err(format!(
                "the data of {name} is not put aside: {folder}, which `wal-dir` names, has more than a log, or cannot be read; \
                 correct its arguments or its configuration file, or move its log away by hand"
            )
            .into());
        }
        Ok([Some(data.clone()), log].into_iter().flatten().collect())
    }

    /// Whether a start would begin a member anew that others count on; only a newcomer's own start may (`begin`).
    pub(super) async fn has_nothing_to_start(&self) -> bool {
        let node = &self.node;
        // Listed by its name it has begun once; and nobody joins by `existing` who is not listed.
        let has_begun = self.member != MemberId::default()
            || node.may_join
            || !node.initial_cluster.is_empty()
            || told(&node.runtime, "initial-cluster-state") == Told::As("existing".to_owned());
        let Some(folder) = self.starts_on().await else { return false };
        has_begun && matches!(data_in(node, folder).await, Data::None | Data::NoLog)
    }

    /// Where its data is to lie.
    async fn starts_on(&self) -> Option<PathBuf> {
        match &self.node.data_dir {
            Some(folder) => Some(folder.clone()),
            None => self.folder_told("data-dir").await,
        }
    }

    /// What is to be corrected where it runs on data, and that lies in another folder than its next start is to find it in.
    async fn runs_elsewhere(&self) -> Option<ActError> {
        let (pid, starts_on) = (self.peek().await.ok()?.process()?.identity.pid, self.starts_on().await?);
        let runs_on = blocking(move || data_dir(pid)).await?.data;
        // By way of its process until here.
        let runs_on = fs::canonicalize(&runs_on).unwrap_or(runs_on);
        let is_there = matches!(data_in(&self.node, runs_on.clone()).await, Data::Of { .. });
        let by =
            if self.node.data_dir.is_some() { "`data_dir` names" } else { "its next start is given as `data-dir`" };
        let why = || {
            format!(
                "{}: it runs on {}, and in {}, which {by}, is no member's data; correct that",
                self.node.name,
                runs_on.display(),
                starts_on.display()
            )
        };
        (is_there && fs::canonicalize(&starts_on).ok().as_ref() != Some(&runs_on)).then(|| why().into())
    }

    /// As of [`OwnNode::has_nothing_to_start`], what is to be said of it.
    pub(super) async fn why_nothing_to_start(&self) -> Option<ActError> {
        if !self.has_nothing_to_start().await {
            return None;
        }
        let gone = || ActError::DataGone { node: self.node.name.clone() };
        Some(self.runs_elsewhere().await.unwrap_or_else(gone))
    }

    /// Refuses a member whose data is gone: started, it would vote by an id that has promised things.
    pub(super) async fn check_has_data(&self) -> Result<(), ActError> {
        if let Some(why) = self.why_nothing_to_start().await {
            return Err(why);
        }
        let Some(log) = self.folder_told("wal-dir").await else { return Ok(()) };
        let shown = log.display().to_string();
        match blocking(move || member_of_log(&log)).await {
            // etcd would take up whose log it is, and vote under that id.
            Some(other) if other != self.member && self.member != MemberId::default() => Err(format!(
                "{}: {shown}, which `wal-dir` names, has the log of member {other}, and not of {}; correct its arguments or its configuration file",
                self.node.name, self.member
            )
            .into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "own_data_test.rs"]
mod tests;
