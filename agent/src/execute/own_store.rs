//! What this host's members have in their databases, before their releases change (`plan/in_store.rs`).
//!
//! Each host reads its own members, once a run: a database is read whole for it.

use std::{collections::BTreeSet, path::Path};

use proto::Release;

use super::{
    error::ActError,
    node::{OwnNode, Side},
};
use crate::{
    host::{files::room, program::executable},
    observe::{Observer, database::Told},
    plan::in_store,
    words::with_causes,
};

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// Nothing in it stands in the way, or nothing in it matters.
    Fit,
    /// It could not be read, and why.
    Unread(String),
}

impl OwnNode {
    /// Reads the member's database where anything that it may show matters on this way and is not accepted; `folder` has it meanwhile.
    ///
    /// # Errors
    /// What is known of it, where the playbook does not accept that.
    pub(super) async fn check_store(
        &self,
        observer: &Observer,
        (from, to): (&Release, &Side),
        accepted: &BTreeSet<String>,
        folder: &Path,
    ) -> Result<Looked, ActError> {
        let matters = in_store::ahead(from, &to.release).any(|hazard| !accepted.contains(hazard.id));
        let Some(executable) = to.executable.as_ref().filter(|_| matters) else { return Ok(Looked::Fit) };
        if !executable::is_etcd(executable, &self.runs_as(executable).await?).await? {
            return Ok(Looked::Fit);
        }
        let told = match self.told(observer, folder).await {
            Ok(told) => told,
            Err(why) => {
                let (name, release) = (&self.node.name, &to.release);
                return Ok(Looked::Unread(format!(
                    "{name}: whether its database is fit for {release} is not known: {why}"
                )));
            }
        };
        let met = in_store::met(&told, from, &to.release);
        match met.into_iter().find(|met| !accepted.contains(met.hazard.id)) {
            Some(met) => Err(ActError::KnownHazard {
                node: self.node.name.clone(),
                id: met.hazard.id,
                shown: met.words().map_or_else(String::new, |by| format!(", which shows it by {by}")),
            }),
            None => Ok(Looked::Fit),
        }
    }

    /// As [`Self::check_store`], before the member is taken down: one that runs and cannot be read is refused, for what it may show is
    /// what a new release would believe. Of one that is down the others' hosts read the same. Gives what is to be known.
    pub(super) async fn must_be_fit(
        &self,
        observer: &Observer,
        way: (&Release, &Side),
        accepted: &BTreeSet<String>,
        folder: &Path,
    ) -> Result<Option<String>, ActError> {
        let Looked::Unread(why) = self.check_store(observer, way, accepted, folder).await? else { return Ok(None) };
        if !self.status().await?.is_running() {
            return Ok(Some(why));
        }
        let ids: Vec<_> = in_store::ahead(way.0, &way.1.release).map(|hazard| hazard.id).collect();
        Err(format!("{why}; mend that, or accept what it may show: `strategy.accept_hazards: [{}]`", ids.join(", "))
            .into())
    }

    async fn told(&self, observer: &Observer, folder: &Path) -> Result<Told, String> {
        let free = room::free(folder).map_err(|error| with_causes(&error))?;
        observer.database(self.member, folder, free).await.map_err(|error| error.to_string())
    }
}
