//! What this host has of a member before anything is touched: where its data lies, and whose it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proto::ClusterId;

use super::{
    is_of,
    place::{Place, whose_in},
    record::{Phase, Record},
    standing::{Has, Known, Spent, may_be_made},
};
use crate::{
    execute::{data_dir::data_dir, error::ActError, node::OwnNode},
    host::{blocking::blocking, files::whose::Whose},
};

/// What this host has of it.
#[derive(Debug)]
pub(super) struct Found {
    pub own: OwnNode,
    pub data: PathBuf,
    pub whose: Whose,
}

impl Found {
    pub(super) async fn of(own: OwnNode) -> Result<Self, ActError> {
        own.check_start_now().await?;
        let runs = own.peek().await?;
        let process = match runs.process().map(|process| process.identity.pid) {
            Some(pid) => blocking(move || data_dir(pid)).await,
            None => None,
        };
        let started_on = own.folder_told("data-dir").await;
        let runs_on = process.as_ref().map(|process| process.data.clone());
        let told = own.node.data_dir.clone().or_else(|| started_on.clone());
        if let Some(data) = &told {
            let is_other = |other: &&PathBuf| real(other) != real(data);
            if let Some(other) = started_on.iter().chain(&runs_on).find(is_other) {
                let (data, other) = (data.display(), other.display());
                return Err(
                    format!("`data_dir` is {data}, and its `--data-dir` is {other}; correct the playbook").into()
                );
            }
        }
        let Some(data) = told.or_else(|| runs_on.clone()) else {
            let why = match own.is_unit() {
                true => "neither the playbook nor its unit's command names it",
                false => "the playbook does not name it",
            };
            return Err(format!("where its data is to lie is not known, as {why}; give this node a `data_dir`").into());
        };
        let log = own.folder_told("wal-dir").await.or_else(|| process.and_then(|process| process.wal));
        if let Some(log) = log.filter(|log| !log.starts_with(&data)) {
            return Err(format!(
                "its log lies in {}, by `wal-dir`, and two folders are not exchanged at once; restore it by hand, with etcdutl's \
                 --wal-dir",
                log.display()
            )
            .into());
        }
        let whose = {
            let data = data.clone();
            blocking(move || whose_in(&data)).await
        };
        match &whose {
            Whose::NoLog => Err(format!(
                "{} has a database and no log: where the log lies elsewhere, by `wal-dir`, restore it by hand; where it is lost, move \
                 the folder away first",
                data.display()
            )
            .into()),
            Whose::Unknown(why) => Err(format!("whose data {} has is not known: {why}; move it away first", data.display()).into()),
            Whose::Nobody | Whose::Member { .. } => Ok(Self { own, data, whose }),
        }
    }

    /// Refuses one whose new data was made here before, and is neither in its place nor beside it.
    pub(super) async fn judge(&self, record: &Record) -> Result<Result<(), Spent>, ActError> {
        // What is beside the data once all is done was not made under this record.
        let lies_beside = record.phase == Phase::Placing && self.lies_beside(record).await?;
        Ok(may_be_made(self.has(record.cluster), Known::Recorded { lies_beside }))
    }

    /// Whether its new data lies beside its place.
    pub(super) async fn lies_beside(&self, record: &Record) -> Result<bool, ActError> {
        let (data, token) = (self.data.clone(), record.origin.token());
        let whose_made = blocking(move || Place::of(&data, &token).map(|place| place.whose_made())).await?;
        Ok(is_of(&whose_made, record.cluster))
    }

    pub(super) fn has(&self, made: ClusterId) -> Has {
        has(&self.whose, made)
    }

    pub(super) fn cluster(&self) -> Option<ClusterId> {
        match self.whose {
            Whose::Member { cluster, .. } => Some(cluster),
            _ => None,
        }
    }
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Seen from the cluster that is made.
pub(super) fn has(whose: &Whose, made: ClusterId) -> Has {
    match whose {
        Whose::Member { cluster, .. } if *cluster == made => Has::New,
        Whose::Member { .. } => Has::Another,
        Whose::Nobody | Whose::NoLog | Whose::Unknown(_) => Has::Nothing,
    }
}
