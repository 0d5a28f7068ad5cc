//! What this host has of a member on its disk, and whether that is enough for a start.
//!
//! A member that has voted and comes back under its id with nothing has forgotten what it promised: then a write that a majority has
//! acknowledged can be lost (raft paper, 5.4). etcd begins such a member without a word, where `--initial-cluster` lists it.

use std::path::PathBuf;

use proto::MemberId;

use super::{error::ActError, node::OwnNode};
use crate::{
    host::{
        blocking::blocking,
        files::whose::{Whose, whose},
        runtime::same_node::value,
    },
    plan::membership::survey::Data,
    playbook::{self, Runtime},
};

/// What is in a node's data directory, as the playbook names it.
pub(super) async fn data(node: &playbook::Node) -> Data {
    match node.data_dir.clone() {
        Some(folder) => data_in(node, folder).await,
        None => Data::Unnamed,
    }
}

async fn data_in(node: &playbook::Node, folder: PathBuf) -> Data {
    match blocking(move || whose(&folder)).await {
        Whose::Nobody => Data::None,
        Whose::NoLog if has_its_log_there(&node.runtime) => Data::NoLog,
        Whose::NoLog => Data::Unknown("it has a database and no log, which may lie elsewhere".into()),
        Whose::Member { cluster, member } => Data::Of { cluster, member },
        Whose::Unknown(why) => Data::Unknown(why.into()),
    }
}

/// What the agent's own start says of this flag: etcd takes it from a file alone where there is one, then from its arguments.
fn told<'a>(runtime: &'a Runtime, flag: &str) -> Option<&'a str> {
    let Runtime::Process(process) = runtime else { return None };
    let variable = || process.env.get(&format!("ETCD_{}", flag.to_uppercase().replace('-', "_"))).map(String::as_str);
    let conditional = || process.args.iter().find_map(|some| value(&some.add, flag));
    conditional().or_else(|| value(&process.argv, flag)).or_else(variable)
}

/// Of a unit, of commands and of a configuration file it is not known.
fn has_its_log_there(runtime: &Runtime) -> bool {
    let is_told = |flag| told(runtime, flag).is_some();
    matches!(runtime, Runtime::Process(_)) && !is_told("wal-dir") && !is_told("config-file")
}

/// Where the agent's own start has the member keep its data; `None` where that does not say so by itself.
fn told_folder(runtime: &Runtime) -> Option<PathBuf> {
    let folder = told(runtime, "data-dir").filter(|folder| !folder.contains("{{"))?;
    let is_told = told(runtime, "config-file").is_none();
    Some(PathBuf::from(folder)).filter(|folder| is_told && folder.is_absolute())
}

impl OwnNode {
    /// What is in its data directory.
    pub(super) async fn data(&self) -> Data {
        data(&self.node).await
    }

    /// Whether a start would begin a member anew that others count on; only a newcomer's own start may (`begin`).
    pub(super) async fn has_nothing_to_start(&self) -> bool {
        let node = &self.node;
        // Listed by its name it has begun once; and nobody joins by `existing` who is not listed.
        let has_begun = self.member != MemberId::default()
            || node.may_join
            || !node.initial_cluster.is_empty()
            || told(&node.runtime, "initial-cluster-state") == Some("existing");
        let Some(folder) = node.data_dir.clone().or_else(|| told_folder(&node.runtime)) else { return false };
        has_begun && matches!(data_in(node, folder).await, Data::None | Data::NoLog)
    }

    /// Refuses a member whose data is gone: started, it would vote by an id that has promised things.
    pub(super) async fn check_has_data(&self) -> Result<(), ActError> {
        match self.has_nothing_to_start().await {
            true => Err(ActError::DataGone { node: self.node.name.clone() }),
            false => Ok(()),
        }
    }
}
