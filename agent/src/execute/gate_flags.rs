//! What a member is to want of the cluster's features, tried on the release that it is brought to: a name that this one does
//! not know would keep the member down, and a lock would overrule it (KEP-4647, "Set the Feature Gates").
//!
//! On the command line the release reads it itself (`executable::check_arguments`). Where a variable or a configuration file says
//! it, a release that is only asked for its version does not look: so what stands there is put on a command line.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    error::ActError,
    node::{OwnNode, Side},
};
use crate::{
    host::{
        files::etcd_config,
        process::credentials::Credentials,
        program::executable::{self, ExecutableError},
    },
    playbook, regular_file,
};

/// The features of the cluster, and those of the server: a name of the one kind is refused among the other.
const FLAGS: [&str; 2] = ["cluster-feature-gates", "feature-gates"];
const CONFIG_FILE: &str = "config-file";
/// How long a configuration file may be, in bytes.
const MAX_FILE: usize = 1024 * 1024;

impl OwnNode {
    /// Has the release look at what variables and the configuration file say of features; gives what is to be known.
    pub(super) async fn check_gate_flags(
        &self,
        side: &Side,
        user: &Credentials,
        arguments: &[String],
    ) -> Result<Vec<String>, ActError> {
        let Some(executable) = &side.executable else { return Ok(Vec::new()) };
        let variables = match &self.node.runtime {
            playbook::Runtime::Process(process) => {
                process.environment(&self.node.context(&side.release))?.into_iter().collect()
            }
            // What a unit sets is in its own files, and what commands set in none that is known.
            playbook::Runtime::Systemd(_) | playbook::Runtime::Command(_) => BTreeMap::new(),
        };
        let files = self.node.files_for(&side.release)?;
        let source = |path: &Path| {
            let switched = files.iter().find(|file| file.path == path).map(|file| file.source.as_path());
            regular_file::read(switched.unwrap_or(path), MAX_FILE).ok()
        };
        let flags = elsewhere(arguments, &variables, source);
        if flags.is_empty() {
            return Ok(Vec::new());
        }
        match executable::check_arguments(executable, user, &self.node.name, &flags).await {
            Ok(warnings) => Ok(warnings),
            // etcd passes over a key and a variable that it does not know.
            Err(ExecutableError::Arguments { node, why, .. }) if why.contains("not defined") => Ok(vec![format!(
                "{node}: {} {why}, so what its file or variables say of features counts for nothing",
                side.release
            )]),
            Err(error) => Err(error.into()),
        }
    }
}

/// What is said of features elsewhere than on the command line, as flags. With a configuration file that alone counts
/// (etcd's documentation, "Configuration options").
fn elsewhere(
    arguments: &[String],
    variables: &BTreeMap<String, String>,
    read: impl Fn(&Path) -> Option<Vec<u8>>,
) -> Vec<String> {
    let variable = |name: &str| variables.get(&format!("ETCD_{}", name.replace('-', "_").to_uppercase())).cloned();
    let file = flag(arguments, CONFIG_FILE).or_else(|| variable(CONFIG_FILE)).map(|path| {
        let bytes = read(&PathBuf::from(path)).unwrap_or_default();
        etcd_config::settings(&bytes).unwrap_or_default()
    });
    let said = |name: &str| match &file {
        Some(settings) => settings.get(name)?.as_str().map(str::to_owned),
        None => variable(name).filter(|_| flag(arguments, name).is_none()),
    };
    FLAGS.iter().filter_map(|name| Some(format!("--{name}={}", said(name)?))).collect()
}

/// What a flag is set to, as Go's `flag` package reads it: one dash or two, `=` or a word of its own.
fn flag(arguments: &[String], name: &str) -> Option<String> {
    arguments.iter().enumerate().find_map(|(at, argument)| {
        let rest = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))?.strip_prefix(name)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => arguments.get(at + 1).cloned(),
            None => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_file_or_a_variable_is_put_on_a_command_line() {
        let file = "name: m1\ncluster-feature-gates: A=true,B=false\nfeature-gates: C=true\n";
        let read = |path: &Path| (path == Path::new("/etc/m1.yaml")).then(|| file.as_bytes().to_vec());
        let of_file = "--cluster-feature-gates=A=true,B=false --feature-gates=C=true";
        for (arguments, variables, expected) in [
            ("--name m1", &[][..], ""),
            ("--config-file=/etc/m1.yaml", &[], of_file),
            ("-config-file /etc/m1.yaml", &[], of_file),
            ("", &[("ETCD_CONFIG_FILE", "/etc/m1.yaml")], of_file),
            // With a file nothing else counts.
            ("--config-file=/etc/m1.yaml", &[("ETCD_CLUSTER_FEATURE_GATES", "X=true")], of_file),
            ("--config-file=/etc/gone.yaml", &[("ETCD_CLUSTER_FEATURE_GATES", "X=true")], ""),
            ("--name m1", &[("ETCD_CLUSTER_FEATURE_GATES", "X=true")], "--cluster-feature-gates=X=true"),
            // A flag comes before a variable, and is read by the release itself.
            ("--cluster-feature-gates Y=true", &[("ETCD_CLUSTER_FEATURE_GATES", "X=true")], ""),
            ("--name m1", &[("ETCD_FEATURE_GATES", "S=true")], "--feature-gates=S=true"),
        ] {
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(elsewhere(&arguments, &variables, read).join(" "), expected, "{arguments:?} {variables:?}");
        }
    }
}
