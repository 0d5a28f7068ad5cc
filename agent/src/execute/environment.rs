//! Variables that a member's process has, and its next start would not give it, or otherwise: etcd takes settings from them, and Go's
//! runtime does. What differs in the arguments is refused as another process (`host/runtime/discovery.rs`); these nobody would miss
//! before the member is down, or full.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{
    error::ActError,
    lost_settings::{GODEBUG, PREFIX, config_file, flag_of},
    node::{OwnNode, Side},
};
use crate::{
    host::{
        process::{member_setting::variables_of, process_id::command_line},
        runtime::{same_node::value, systemd::check::NextStart},
    },
    playbook,
};

/// What is known of it.
const ID: &str = "environment-differs";
const CONFIG_FILE: &str = "ETCD_CONFIG_FILE";
/// Of the names that begin as those of settings, what scripts call the release; etcd knows none of them.
const NO_SETTINGS: [&str; 2] = ["ETCD_VER", "ETCD_VERSION"];

impl OwnNode {
    /// Refuses a change of the release by which settings change that came by the environment; gives them as a warning where the release
    /// stays, as a restart may be for just that.
    ///
    /// # Errors
    /// Which variables, where the playbook does not accept it.
    pub(super) async fn check_environment(
        &self,
        (old, new): (&Side, &Side),
        accepted: &BTreeSet<String>,
    ) -> Result<Vec<String>, ActError> {
        let context = self.node.context(&old.release);
        let (line, will_have, by) = match &self.node.runtime {
            playbook::Runtime::Process(process) => {
                (process.command_line(&context)?, process.environment(&context)?.into_iter().collect(), "`env` has")
            }
            playbook::Runtime::Systemd(_) => match self.unit_start(Some(old)).await? {
                Some(NextStart { variables, is_whole: true, arguments, .. }) => {
                    (arguments.unwrap_or_default(), variables, "its unit gives it next")
                }
                _ => return Ok(Vec::new()),
            },
            playbook::Runtime::Command(_) => return Ok(Vec::new()),
        };
        let Some((runs_with, has)) = self.started_with(line.first()).await? else { return Ok(Vec::new()) };
        let found = differing((&has, &runs_with), (&will_have, &line));
        match found {
            None => Ok(Vec::new()),
            Some(_) if accepted.contains(ID) => Ok(Vec::new()),
            Some(found) if old.executable == new.executable => {
                Ok(vec![format!("{}: its next start changes its environment: {found}", self.node.name)])
            }
            Some(found) => Err(ActError::KnownHazard {
                node: self.node.name.clone(),
                id: ID,
                shown: format!(", as its process was started with another environment than {by}: {found}"),
            }),
        }
    }

    /// The arguments and variables of its process. `None` where that is not known, or says nothing: a script that is started may set
    /// them itself.
    async fn started_with(
        &self,
        program: Option<&String>,
    ) -> Result<Option<(Vec<String>, BTreeMap<String, String>)>, ActError> {
        let status = self.peek().await?;
        let Some(process) = status.process() else { return Ok(None) };
        let started = program.and_then(|program| fs::canonicalize(program).ok());
        // Of a unit that is seen to elsewhere.
        let is_it =
            self.is_unit() || process.exe.as_ref().is_some_and(|exe| started.as_deref() == Some(Path::new(exe)));
        let pid = process.identity.pid;
        Ok(variables_of(pid).ok().filter(|_| is_it).map(|has| (command_line(pid).unwrap_or_default(), has)))
    }
}

/// Of a process that runs, and of its next start, variables and arguments. Names alone are told: a value may be a secret. `None` where
/// nothing that counts differs.
fn differing(
    (has, runs_with): (&BTreeMap<String, String>, &[String]),
    (will_have, arguments): (&BTreeMap<String, String>, &[String]),
) -> Option<String> {
    let is_read_from_a_file = config_file(arguments, has).is_some() && config_file(arguments, will_have).is_some();
    // A flag counts before its variable, and with a configuration file none does but the one that names it.
    let counts = |name: &&String| match name.starts_with(PREFIX) && !NO_SETTINGS.contains(&name.as_str()) {
        true => value(arguments, &flag_of(name)).is_none() && (!is_read_from_a_file || *name == CONFIG_FILE),
        false => *name == GODEBUG,
    };
    let names: BTreeSet<_> = has.keys().chain(will_have.keys()).filter(counts).collect();
    // What was a flag, and becomes the variable, stays.
    let counted = |name: &str| value(runs_with, &flag_of(name)).or_else(|| has.get(name).map(String::as_str));
    let words = names.into_iter().filter_map(|name| match (counted(name), will_have.get(name)) {
        (Some(old), Some(new)) => (old != new).then(|| format!("another `{name}`")),
        // etcd passes over an empty one.
        (Some(old), None) => (!old.is_empty()).then(|| format!("no `{name}` any more")),
        (None, Some(new)) => (!new.is_empty()).then(|| format!("`{name}`, which it has not")),
        (None, None) => None,
    });
    let words: Vec<_> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> BTreeMap<String, String> {
        text.split_whitespace().filter_map(|word| word.split_once('=')).map(|(a, b)| (a.into(), b.into())).collect()
    }

    #[test]
    fn only_variables_that_count_are_compared() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (runs_with, will_have, arguments, expected) in [
            ("etcd --quota-backend-bytes=4", "ETCD_QUOTA_BACKEND_BYTES=4", "etcd", None),
            ("etcd --quota-backend-bytes 4", "ETCD_QUOTA_BACKEND_BYTES=4", "etcd", None),
            (
                "etcd --quota-backend-bytes=4",
                "ETCD_QUOTA_BACKEND_BYTES=1",
                "etcd",
                Some("another `ETCD_QUOTA_BACKEND_BYTES`"),
            ),
            ("etcd", "ETCD_VER=v3.6.14 ETCD_VERSION=3.6.14", "etcd", None),
        ] {
            let (runs_with, arguments) = (words(runs_with), words(arguments));
            let found = differing((&BTreeMap::new(), &runs_with), (&variables(will_have), &arguments));
            assert_eq!(found.as_deref(), expected, "{runs_with:?} against {will_have}");
        }
        for (has, will_have, arguments, expected) in [
            ("", "", "etcd", None),
            ("PATH=/a HOME=/b ETCD_NAME=m1", "PATH=/c ETCD_NAME=m1", "etcd", None),
            (
                "ETCD_QUOTA_BACKEND_BYTES=4",
                "ETCD_QUOTA_BACKEND_BYTES=1",
                "etcd",
                Some("another `ETCD_QUOTA_BACKEND_BYTES`"),
            ),
            ("ETCD_QUOTA_BACKEND_BYTES=4", "", "etcd", Some("no `ETCD_QUOTA_BACKEND_BYTES` any more")),
            ("ETCD_QUOTA_BACKEND_BYTES=4", "", "etcd --quota-backend-bytes=4", None),
            ("ETCD_QUOTA_BACKEND_BYTES=", "", "etcd", None),
            ("", "GODEBUG=x509sha1=1", "etcd", Some("`GODEBUG`, which it has not")),
            ("ETCD_CONFIG_FILE=/c", "ETCD_CONFIG_FILE=/d", "etcd --config-file /e", None),
            ("ETCD_NAME=m1 GODEBUG=a=1", "", "etcd --config-file /c", Some("no `GODEBUG` any more")),
            (
                "ETCD_CONFIG_FILE=/c ETCD_NAME=a",
                "ETCD_CONFIG_FILE=/d ETCD_NAME=b",
                "etcd",
                Some("another `ETCD_CONFIG_FILE`"),
            ),
            (
                "ETCD_CONFIG_FILE=/c",
                "ETCD_NAME=b",
                "etcd",
                Some("no `ETCD_CONFIG_FILE` any more, `ETCD_NAME`, which it has not"),
            ),
        ] {
            let arguments = words(arguments);
            let found = differing((&variables(has), &arguments), (&variables(will_have), &arguments));
            assert_eq!(found.as_deref(), expected, "{has} against {will_have}");
        }
    }
}
