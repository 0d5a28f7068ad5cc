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

impl OwnNode {
    /// Reads the member's database where anything that it may show matters on this way; `folder` has it meanwhile. Gives why it was not
    /// read where it could not be: a member may be down, or the playbook's user be no administrator.
    ///
    /// # Errors
    /// What is known of it, where the playbook does not accept that.
    pub(super) async fn check_store(
        &self,
        observer: &Observer,
        (from, to): (&Release, &Side),
        accepted: &BTreeSet<String>,
        folder: &Path,
    ) -> Result<Option<String>, ActError> {
        let Some(executable) = to.executable.as_ref().filter(|_| in_store::is_asked(from, &to.release)) else {
            return Ok(None);
        };
        if !executable::is_etcd(executable, &self.runs_as(executable).await?).await? {
            return Ok(None);
        }
        let told = match self.told(observer, folder).await {
            Ok(told) => told,
            Err(why) => {
                return Ok(Some(format!(
                    "{}: whether its database is fit for {} is not known: {why}",
                    self.node.name, to.release
                )));
            }
        };
        let met = in_store::met(&told, from, &to.release);
        match met.into_iter().find(|met| !accepted.contains(met.hazard.id)) {
            Some(met) => Err(ActError::KnownHazard {
                node: self.node.name.clone(),
                id: met.hazard.id,
                shown: met.words().map_or_else(String::new, |by| format!(", whose database shows it by {by}")),
            }),
            None => Ok(None),
        }
    }

    async fn told(&self, observer: &Observer, folder: &Path) -> Result<Told, String> {
        let free = room::free(folder).map_err(|error| with_causes(&error))?;
        observer.database(self.member, folder, free).await.map_err(|error| error.to_string())
    }
}
