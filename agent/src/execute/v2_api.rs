//! What this host's members still have of etcd's v2 API, on which 3.6 does not start: in the newest snapshot, in the log behind it, by a flag.
//! etcd itself only says it of a stopped member or of a copy (`etcdutl check v2store`).
//!
//! Where it cannot be read, that is warned of, as of all in a data directory (`data_dir.rs`): a new release that meets it ends before it has
//! served or written anything, and its member is put back. What a database may show is another matter (`own_store.rs`), as a new
//! release believes it.

use std::collections::BTreeSet;

use proto::Release;

use super::{
    data_dir::data_dir,
    error::ActError,
    node::{OwnNode, Side},
};
use crate::{
    hazards::{self, Hazard},
    host::{
        blocking::blocking,
        files::replay::Replayed,
        process::{member_setting::switched_on, process_id::family},
        program::executable,
        runtime::same_node::value,
    },
};

const IN_SNAPSHOT: &str = "v2-content-snap";
pub(super) const IN_LOG: &str = "v2-content-wal";
const STILL_ON: &str = "v2-still-on";
const NO_DATABASE: &str = "v3-db-missing";
/// In the order in which they are told. What is in the log alone the agent can have taken out of it, where nothing more comes (`snapshot.rs`).
const SHOWN: [&str; 4] = [NO_DATABASE, IN_SNAPSHOT, STILL_ON, IN_LOG];
/// With this value of `--v2-deprecation` etcd passes over what is in its snapshot, from 3.6.13 on.
const SKIPS_CHECK: &str = "write-only-skip-check";

/// What was found of a member.
#[derive(Debug)]
struct Found {
    has_no_database: bool,
    /// Nothing where its data is not etcd's, or nobody asks; or why it is not known.
    replayed: Result<Replayed, String>,
    /// Where it was told so.
    still_on: Option<String>,
}

impl OwnNode {
    /// Refuses a member that has something of v2 where its new release would not start on it; gives what is to be known all the same.
    ///
    /// # Errors
    /// What it has, where the playbook does not accept that.
    pub(super) async fn check_v2(
        &self,
        (from, to): (&Side, &Release),
        new: Option<&Side>,
        accepted: &BTreeSet<String>,
    ) -> Result<Option<String>, ActError> {
        let ahead: Vec<_> = ahead(&from.release, to).filter(|hazard| !accepted.contains(hazard.id)).collect();
        // One that is down is started by the run, and looked at then.
        let status = self.peek().await?;
        if ahead.is_empty() || !status.is_running() {
            return Ok(None);
        }
        let pid = status.process().map(|process| process.identity.pid);
        // A log is long, and only some ways replay it.
        let is_replayed = ahead.iter().any(|hazard| [IN_SNAPSHOT, IN_LOG].contains(&hazard.id));
        let found = blocking(move || Found::of(pid, is_replayed)).await;
        let skips = self.skips_check(new).await?;
        let met = ahead.iter().find_map(|hazard| Some((hazard.id, found.shown(hazard.id, skips)?)));
        match (met, found.replayed) {
            (None, Ok(_)) => Ok(None),
            _ if !self.is_etcd(from, new).await? => Ok(None),
            (Some((id, shown)), _) => Err(ActError::KnownHazard { node: self.node.name.clone(), id, shown }),
            (None, Err(why)) => Ok(Some(format!(
                "{}: whether it has anything of the v2 API, on which etcd {to} would not start, is not known: {why}",
                self.node.name
            ))),
        }
    }

    /// The same for a later hop of a way: what its newest snapshot has by now it has then, too.
    ///
    /// # Errors
    /// As [`Self::check_v2`].
    pub(super) async fn check_v2_ahead(
        &self,
        (before, after): (&Side, &Side),
        accepted: &BTreeSet<String>,
    ) -> Result<(), ActError> {
        match self.check_v2((before, &after.release), Some(after), accepted).await {
            Err(ActError::KnownHazard { id, .. }) if [STILL_ON, IN_LOG].contains(&id) => Ok(()),
            checked => checked.map(drop),
        }
    }

    /// By its program, where there is one to ask; else its data has told it.
    async fn is_etcd(&self, from: &Side, new: Option<&Side>) -> Result<bool, ActError> {
        let Some(executable) = new.and_then(|side| side.executable.as_ref()).or(from.executable.as_ref()) else {
            return Ok(true);
        };
        Ok(executable::is_etcd(executable, &self.runs_as(executable).await?).await?)
    }

    /// Whether its next start is told to pass over what is in its snapshot.
    async fn skips_check(&self, new: Option<&Side>) -> Result<bool, ActError> {
        let Some(new) = new else { return Ok(false) };
        let arguments = self.arguments(new).await?.unwrap_or_default();
        Ok(value(&arguments, "v2-deprecation") == Some(SKIPS_CHECK))
    }
}

impl Found {
    fn of(pid: Option<u32>, is_replayed: bool) -> Self {
        let data = pid.and_then(data_dir);
        let family = pid.map(|pid| family(pid).unwrap_or_else(|_| vec![pid]));
        let replayed = match &data {
            _ if !is_replayed => Ok(Replayed::default()),
            Some(data) => data.replayed().map(Option::unwrap_or_default).map_err(|why| why.to_string()),
            None => Err("where its data lies is not known".to_owned()),
        };
        Self {
            // One that may not be looked into is told of by `data_dir.rs`.
            has_no_database: data.is_some_and(|data| data.has_no_database().unwrap_or(false)),
            replayed,
            still_on: family.into_iter().flatten().find_map(|pid| switched_on(pid, "enable-v2")),
        }
    }

    /// By what a member shows that it meets this, behind its name.
    fn shown(&self, id: &str, skips_check: bool) -> Option<String> {
        let replayed = self.replayed.as_ref().ok().copied().unwrap_or_default();
        let by = |is_so: bool, words: &str| is_so.then(|| words.to_owned());
        match id {
            NO_DATABASE => by(self.has_no_database, ", which has no `member/snap/db`"),
            IN_SNAPSHOT => by(replayed.has_content && !skips_check, ", whose newest snapshot shows it"),
            IN_LOG => by(replayed.has_requests, ", whose log shows it behind its newest snapshot"),
            _ => self.still_on.as_ref().map(|told| format!(", which is given {told}")),
        }
    }
}

/// Those that matter on this way.
fn ahead(from: &Release, to: &Release) -> impl Iterator<Item = &'static Hazard> {
    SHOWN.iter().filter_map(|id| hazards::find(id)).filter(|hazard| hazard.is_ahead(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ways_on_which_it_hurts_are_asked() {
        for (from, to, expected) in [
            ("3.5.33", "3.6.14", "v2-content-snap v2-still-on v2-content-wal"),
            ("3.5.33", "3.6.0-rc.3", "v2-content-snap v2-still-on v2-content-wal"),
            ("3.4.45", "3.5.33", "v3-db-missing"),
            ("3.5.30", "3.5.33", ""),
            ("3.6.13", "3.6.14", ""),
            ("3.6.14", "3.7.1", ""),
            ("3.6.14", "3.5.33", ""),
        ] {
            let [from, to]: [Release; 2] = [from, to].map(|release| release.parse().unwrap());
            let found: Vec<_> = ahead(&from, &to).map(|hazard| hazard.id).collect();
            assert_eq!(found.join(" "), expected, "{from} to {to}");
        }
    }

    #[test]
    fn each_is_shown_by_what_it_is_about() {
        let clean = || Found { has_no_database: false, replayed: Ok(Replayed::default()), still_on: None };
        let replayed = |has_content, has_requests| Found {
            replayed: Ok(Replayed { has_content, has_requests, has_old: has_requests }),
            ..clean()
        };
        for (found, skips, expected) in [
            (clean(), false, ""),
            (replayed(true, false), false, IN_SNAPSHOT),
            (replayed(true, false), true, ""),
            (replayed(true, true), true, IN_LOG), // the log is not passed over
            (replayed(false, true), false, IN_LOG),
            (Found { still_on: Some("`--enable-v2`".into()), ..replayed(false, true) }, false, STILL_ON),
            (Found { still_on: Some("`--enable-v2`".into()), ..clean() }, true, STILL_ON),
            (Found { has_no_database: true, ..clean() }, false, NO_DATABASE),
            (Found { replayed: Err("why".into()), ..clean() }, false, ""),
        ] {
            let shown = SHOWN.iter().find(|id| found.shown(id, skips).is_some());
            assert_eq!(shown.copied().unwrap_or_default(), expected, "{found:?}");
        }
    }
}
