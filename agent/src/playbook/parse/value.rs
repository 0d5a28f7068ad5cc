//! The kinds of value that several sections share: paths, argv lists, requirements, numbers with a unit.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use semver::VersionReq;

use crate::playbook::{
    fault::Fault,
    template::{self, Name, TemplateError},
    tree::{Entry, Tree},
    unit::{self, UnitError},
};

/// The templates where a node with a `binary` is meant.
pub(super) const OF_A_NODE: [Name; 4] = [Name::Version, Name::Node, Name::InitialCluster, Name::Binary];
/// The templates where a node without a `binary` may be meant.
pub(super) const WITHOUT_BINARY: [Name; 3] = [Name::Version, Name::Node, Name::InitialCluster];

/// A path, absolute from here on; relative ones start at the playbook's folder.
pub(super) fn path(tree: &Tree, folder: &Path) -> Result<PathBuf, Fault> {
    let text = tree.text("a path")?;
    if text.contains("{{") {
        let expected = "a path as it is; templates are for argv lists, `env` and `artifact`";
        return Err(tree.fault("a template in a path", expected));
    }
    if text.starts_with('~') {
        return Err(tree.fault(format!("`~` in `{text}`, which only a shell puts a folder for"), "the whole path"));
    }
    Ok(absolute(folder, text))
}

/// A whole number from 1 to this one.
pub(super) fn count(tree: &Tree, most: usize) -> Result<usize, Fault> {
    let expected = format!("a number from 1 to {most}");
    let text = tree.written(&expected)?;
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| tree.fault(format!("`{text}` stands here"), expected))
}

/// `text` as a path that starts at the playbook's folder unless it is absolute, without `.` parts.
pub(super) fn absolute(folder: &Path, text: &str) -> PathBuf {
    folder.join(text).components().collect()
}

/// A name: it becomes part of paths and of a person's command line.
pub fn name<'t>(tree: &'t Tree, expected: &str) -> Result<&'t str, Fault> {
    let text = tree.text(expected)?;
    let path_like = text.contains('/') || matches!(text, "." | "..");
    if path_like || text.contains("{{") || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(tree.fault(
            format!("`{}` cannot be a name", text.escape_debug()),
            format!("{expected}, without `/`, blanks or templates"),
        ));
    }
    Ok(text)
}

/// A key that the writer chose, such as a variable or a gate.
pub(super) fn key(entry: &Entry, expected: &str) -> Result<String, Fault> {
    match entry.key.is_empty() || entry.key.contains(['\0', '=']) {
        true => Err(Fault::new(entry.key_place, format!("`{}` cannot be a name", entry.key.escape_debug()), expected)),
        false => Ok(entry.key.clone()),
    }
}

/// A program and its arguments: a list, never a shell's line. A program with a `/` is a path.
pub(super) fn argv(tree: &Tree, folder: &Path, templates: &[Name]) -> Result<Vec<String>, Fault> {
    let expected = "an argv list, such as `[\"/usr/local/bin/etcd\", \"--name\", \"{{node}}\"]`";
    let mut argv = words(tree, expected, templates)?;
    let (Some(program), Some(tree)) = (argv.first_mut(), tree.list(expected)?.first()) else {
        return Err(tree.fault("an empty list, so no program", expected));
    };
    tree.text("a program")?;
    if program.contains('/') && !program.starts_with("{{") {
        let path = absolute(folder, program).into_os_string().into_string();
        *program = path.map_err(|_| tree.fault("the playbook's folder is not UTF-8", "an absolute path"))?;
    }
    Ok(argv)
}

/// A list of texts in which templates may stand.
pub(super) fn words(tree: &Tree, expected: &str, templates: &[Name]) -> Result<Vec<String>, Fault> {
    tree.list(expected)?.iter().map(|word| Ok(templated(word, word.word("a text")?, templates)?.into())).collect()
}

/// `text`, which stands at `tree`, if it has no other templates than these.
pub(super) fn templated<'t>(tree: &Tree, text: &'t str, templates: &[Name]) -> Result<&'t str, Fault> {
    let expected = "no other templates than `{{version}}`, `{{node}}` and `{{binary}}`";
    let names = template::names(text).map_err(|error| tree.fault(error.to_string(), expected))?;
    match names.iter().find(|name| !templates.contains(name)) {
        None => Ok(text),
        Some(Name::Binary) if templates == WITHOUT_BINARY => {
            Err(tree.fault(TemplateError::NoBinary.to_string(), "`binary`, or no `{{binary}}`"))
        }
        Some(_) => Err(tree.fault("this template stands for nothing here", "`{{version}}` alone")),
    }
}

pub(super) fn requirement(tree: &Tree) -> Result<VersionReq, Fault> {
    let expected = "a semver requirement, such as `\">=3.5.32, <3.6\"`";
    let text = tree.written(expected)?;
    if text.trim().is_empty() {
        return Err(tree.fault("an empty text stands here", expected));
    }
    VersionReq::parse(text).map_err(|error| tree.fault(format!("`{text}` is no requirement: {error}"), expected))
}

pub(super) fn unit<T>(tree: &Tree, read: fn(&str) -> Result<T, UnitError>) -> Result<T, Fault> {
    let text = tree.written("a number with its unit")?;
    read(text).map_err(|error| tree.fault(error.to_string(), error.expected()))
}

/// A duration, perhaps none at all.
pub(super) fn duration(tree: &Tree) -> Result<Duration, Fault> {
    unit(tree, unit::parse_duration)
}

/// A duration within which something must be able to happen.
pub(super) fn deadline(tree: &Tree) -> Result<Duration, Fault> {
    match duration(tree)? {
        Duration::ZERO => Err(tree.fault("nothing can happen in no time", "a duration above zero")),
        duration => Ok(duration),
    }
}
