//! What of a node belongs to one release: its files, its arguments. Pure.
//!
//! `for:` is a requirement on the release about to be started. A pre-release meets only a requirement that
//! names one of the same version (semver's own rule): `>=3.6` is not met by `3.7.0-rc.1`.

use std::{collections::BTreeMap, path::PathBuf};

use proto::Release;
use semver::VersionReq;

use super::{
    model::{ConditionalFile, Node, Process, Runtime},
    template::{self, Context, TemplateError},
};

/// Two entries of `files` want the same file for one release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two `files` are both meant for {} at release {release}", path.display())]
pub struct Clash {
    /// The file that both would write.
    pub path: PathBuf,
    /// The release they both match.
    pub release: Release,
    /// Their positions in `files`.
    pub entries: (usize, usize),
}

fn applies(only_for: Option<&VersionReq>, release: &Release) -> bool {
    only_for.is_none_or(|requirement| requirement.matches(&release.0))
}

impl Node {
    /// The files to put in place when `release` is started; a path that no entry names is left as it is.
    ///
    /// # Errors
    /// [`Clash`] when two entries with one path match. For an upgrade's `to` that was ruled out when the
    /// playbook was loaded; for other releases it can only be known once they are.
    pub fn files_for(&self, release: &Release) -> Result<Vec<&ConditionalFile>, Clash> {
        let mut chosen: Vec<(usize, &ConditionalFile)> = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            if !applies(file.only_for.as_ref(), release) {
                continue;
            }
            if let Some((other, _)) = chosen.iter().find(|(_, other)| other.path == file.path) {
                let (path, release) = (file.path.clone(), release.clone());
                return Err(Clash { path, release, entries: (*other, index) });
            }
            chosen.push((index, file));
        }
        Ok(chosen.into_iter().map(|(_, file)| file).collect())
    }

    /// Whether anything of it differs from release to release: by `for`, or by `{{version}}`.
    pub fn depends_on_release(&self) -> bool {
        let (argv, args, env) = match &self.runtime {
            Runtime::Process(process) => (vec![&process.argv], &process.args[..], Some(&process.env)),
            Runtime::Command(command) => (vec![&command.start, &command.stop, &command.status], &[][..], None),
            Runtime::Systemd(_) => (Vec::new(), &[][..], None),
        };
        let added = args.iter().flat_map(|args| &args.add);
        let mut words = argv.into_iter().flatten().chain(added).chain(env.into_iter().flat_map(BTreeMap::values));
        self.files.iter().any(|file| file.only_for.is_some())
            || args.iter().any(|args| args.only_for.is_some())
            || words.any(|word| self.expanded(word, 0) != self.expanded(word, 1))
    }

    fn expanded(&self, word: &str, major: u64) -> Option<String> {
        template::expand(word, &self.context(&Release::new(major, 0, 0))).ok()
    }

    /// What the templates stand for when `release` is started on this node.
    pub fn context<'a>(&'a self, release: &'a Release) -> Context<'a> {
        Context {
            version: release,
            node: &self.name,
            binary: self.binary.as_deref(),
            initial_cluster: &self.initial_cluster,
        }
    }
}

impl Process {
    /// Program and arguments for the release in `context`, templates expanded.
    ///
    /// # Errors
    /// As [`template::expand`].
    pub fn command_line(&self, context: &Context<'_>) -> Result<Vec<String>, TemplateError> {
        let added = self.args.iter().filter(|args| applies(args.only_for.as_ref(), context.version));
        let words = self.argv.iter().chain(added.flat_map(|args| &args.add));
        words.map(|word| template::expand(word, context)).collect()
    }

    /// The variables of the process, templates expanded.
    ///
    /// # Errors
    /// As [`template::expand`].
    pub fn environment(&self, context: &Context<'_>) -> Result<Vec<(String, String)>, TemplateError> {
        self.env.iter().map(|(name, value)| Ok((name.clone(), template::expand(value, context)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::model::{ConditionalArgs, Stop};

    fn requirement(text: &str) -> Option<VersionReq> {
        (!text.is_empty()).then(|| text.parse().unwrap())
    }

    fn process(args: &[(&[&str], &str)]) -> Process {
        let words = |add: &[&str]| add.iter().map(ToString::to_string).collect();
        Process {
            argv: words(&["{{binary}}", "--name={{node}}"]),
            args: args
                .iter()
                .map(|(add, only)| ConditionalArgs { add: words(add), only_for: requirement(only) })
                .collect(),
            env: BTreeMap::from([("V".into(), "{{version}}".into())]),
            cwd: None,
            user: None,
            log: "/log".into(),
        }
    }

    fn node(files: &[(&str, &str, &str)]) -> Node {
        let file = |(path, source, only): &(&str, &str, &str)| ConditionalFile {
            path: path.into(),
            source: source.into(),
            only_for: requirement(only),
        };
        Node {
            name: "n1".into(),
            runtime: Runtime::Process(process(&[])),
            binary: Some("/opt/etcd".into()),
            files: files.iter().map(file).collect(),
            stop: Stop::default(),
            peer_urls: Vec::new(),
            data_dir: None,
            may_join: false,
            initial_cluster: String::new(),
        }
    }

    #[test]
    fn the_files_of_a_release_are_those_whose_requirement_it_meets() {
        let files = [("/a", "a35", ">=3.5, <3.6"), ("/a", "a36", ">=3.6"), ("/b", "b", ""), ("/c", "c37", ">=3.7")];
        for (release, sources) in [
            ("3.4.23", &["b"][..]),
            ("3.5.30", &["a35", "b"]),
            ("3.6.0", &["a36", "b"]),
            ("3.7.1", &["a36", "b", "c37"]),
            ("3.7.0-rc.1", &["b"]),
        ] {
            let node = node(&files);
            let chosen = node.files_for(&release.parse().unwrap()).unwrap();
            assert_eq!(chosen.iter().map(|f| f.source.to_str().unwrap()).collect::<Vec<_>>(), sources, "{release}");
        }
    }

    #[test]
    fn two_files_for_one_path_clash_only_where_both_apply() {
        let node = node(&[("/b", "b", ""), ("/a", "1", ">=3.5"), ("/a", "2", ">=3.6")]);
        let release = Release::new(3, 6, 0);
        let clash = node.files_for(&release).unwrap_err();
        assert_eq!((clash.entries, clash.path), ((1, 2), PathBuf::from("/a")));
        assert!(node.files_for(&Release::new(3, 5, 0)).is_ok());
    }

    #[test]
    fn arguments_follow_argv_in_their_order() {
        let process = process(&[(&["--new"], ">=3.6"), (&["--v2", "x"], "<3.6"), (&["--v={{version}}"], "")]);
        let node = node(&[]);
        for (release, words) in [
            ("3.5.30", &["/opt/etcd", "--name=n1", "--v2", "x", "--v=3.5.30"][..]),
            ("3.6.14", &["/opt/etcd", "--name=n1", "--new", "--v=3.6.14"]),
        ] {
            let release = release.parse().unwrap();
            assert_eq!(process.command_line(&node.context(&release)).unwrap(), words);
        }
        let release = Release::new(3, 6, 14);
        assert_eq!(process.environment(&node.context(&release)).unwrap(), [("V".to_string(), "3.6.14".to_string())]);
    }
}
