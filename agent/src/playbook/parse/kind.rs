//! `kind` and the keys that belong to one kind alone; those of releases are in `hops.rs`.

use std::{cmp::Ordering, path::Path};

use proto::{ClusterVersion, Release};
use semver::VersionReq;

use super::{hops, value};
use crate::playbook::{
    Sha256,
    fault::Fault,
    fields::Fields,
    model::Kind,
    release::{Artifact, Source},
    template::{self, Context, Name},
    tree::Tree,
};

const KINDS: &str = "`Upgrade`, `Downgrade`, `Restart`, `Scale` or `Replace`";
/// No release below this minor takes part in a downgrade: 3.4 has none, and what 3.5 writes it may not read (etcd's
/// downgrade guides).
pub const LOWEST: ClusterVersion = ClusterVersion { major: 3, minor: 5 };
const RELEASE: &str = "one exact release, such as `3.6.14`";

pub(super) fn kind(fields: Fields<'_>, folder: &Path) -> Result<Kind, Fault> {
    let kind = fields.need("kind", KINDS)?;
    match kind.written(KINDS)? {
        "Upgrade" => upgrade(fields, kind, folder),
        "Restart" => restart(fields, kind),
        "Downgrade" => downgrade(fields, kind, folder),
        "Scale" => scale(fields, kind),
        "Replace" => replace(fields, kind),
        other => Err(kind.fault(format!("there is no kind `{other}`"), KINDS)),
    }
}

fn upgrade(fields: Fields<'_>, kind: &Tree, folder: &Path) -> Result<Kind, Fault> {
    foreign(fields, "Upgrade", &["restart", "members", "replace"])?;
    Ok(Kind::Upgrade(hops::hops(fields, kind, folder, Ordering::Less)?))
}

fn downgrade(fields: Fields<'_>, kind: &Tree, folder: &Path) -> Result<Kind, Fault> {
    foreign(fields, "Downgrade", &["restart", "members", "replace"])?;
    let hops = hops::hops(fields, kind, folder, Ordering::Greater)?;
    let to = &hops.last().to;
    match fields.get("to").filter(|_| to.cluster_version() < LOWEST) {
        Some(tree) => {
            let problem = format!("no downgrade leads to {to}");
            Err(tree.fault(problem, format!("a release of {LOWEST} or above; older data cannot be read there")))
        }
        None => Ok(Kind::Downgrade(hops)),
    }
}

/// Bytes. It is written into a key that every agent reads.
const LONGEST_ID: usize = 200;

fn restart(fields: Fields<'_>, kind: &Tree) -> Result<Kind, Fault> {
    foreign(fields, "Restart", &["from", "to", "artifact", "artifacts", "hops", "members", "replace"])?;
    let expected = "`restart: { id: … }`, a text that names this restart, such as a ticket or a date";
    let restart = Fields::of(of_kind(fields, kind, "restart", expected)?, "`restart`", &["id"])?;
    let id = restart.need("id", expected)?;
    match id.written(expected)?.trim() {
        "" => Err(id.fault("an empty id", expected)),
        text if text.len() > LONGEST_ID => {
            Err(id.fault("an id that is too long", format!("at most {LONGEST_ID} bytes")))
        }
        text => Ok(Kind::Restart { id: text.into() }),
    }
}

fn scale(fields: Fields<'_>, kind: &Tree) -> Result<Kind, Fault> {
    foreign(fields, "Scale", &["from", "to", "artifact", "artifacts", "hops", "restart", "replace"])?;
    let expected = "`members: […]`, the names of all voters at the end, an odd number";
    let tree = of_kind(fields, kind, "members", expected)?;
    let mut members = Vec::new();
    for name in tree.list(expected)? {
        let text: String = value::name(name, "a member's name")?.into();
        if members.contains(&text) {
            return Err(name.fault(format!("`{text}` is named twice"), "each voter once"));
        }
        members.push(text);
    }
    match members.len() % 2 {
        1 => {
            members.sort();
            Ok(Kind::Scale { members })
        }
        _ if members.is_empty() => Err(tree.fault("an empty list", expected)),
        _ => {
            let problem = format!("{} voters: as many may be lost as of one less", members.len());
            Err(tree.fault(problem, "an odd number of voters"))
        }
    }
}

fn replace(fields: Fields<'_>, kind: &Tree) -> Result<Kind, Fault> {
    foreign(fields, "Replace", &["from", "to", "artifact", "artifacts", "hops", "restart", "members"])?;
    let expected = "`replace: { member: …, by: … }`, the names of who goes and who comes";
    let replace = Fields::of(of_kind(fields, kind, "replace", expected)?, "`replace`", &["member", "by"])?;
    let name = |key: &str| -> Result<String, Fault> {
        Ok(value::name(replace.need(key, expected)?, "a member's name")?.into())
    };
    Ok(Kind::Replace { member: name("member")?, by: name("by")? })
}

/// Refuses keys that belong to another kind, at the key itself.
fn foreign(fields: Fields<'_>, kind: &str, keys: &[&str]) -> Result<(), Fault> {
    match keys.iter().find_map(|key| fields.key_place(key).map(|place| (key, place))) {
        Some((key, place)) => {
            let problem = format!("`{key}` does not belong to `kind: {kind}`");
            Err(Fault::new(place, problem, format!("a playbook without `{key}`, or another kind")))
        }
        None => Ok(()),
    }
}

/// A key that the kind needs; where it is missing, the kind is the place to look at.
pub(super) fn of_kind<'t>(fields: Fields<'t>, kind: &Tree, key: &str, expected: &str) -> Result<&'t Tree, Fault> {
    let missing = || kind.fault(format!("`kind: {}` needs `{key}`", kind.written(KINDS).unwrap_or("?")), expected);
    fields.get(key).ok_or_else(missing)
}

pub(super) fn release(tree: &Tree) -> Result<Release, Fault> {
    let text = tree.written(RELEASE)?;
    text.parse().map_err(|_| match text.strip_prefix('v').map(str::parse::<Release>) {
        Some(Ok(release)) => tree.fault(format!("`{text}` begins with `v`"), format!("`{release}`")),
        _ if VersionReq::parse(text).is_ok() => {
            tree.fault(format!("`{text}` is a requirement, not a release"), RELEASE)
        }
        _ => tree.fault(format!("`{text}` is no release"), RELEASE),
    })
}

/// An artifact, as every release of a matrix is one too.
pub fn artifact(tree: &Tree, folder: &Path, to: &Release) -> Result<Artifact, Fault> {
    let fields = Fields::of(tree, "`artifact`", &["source", "sha256", "executable"])?;
    let sha256 = fields.maybe("sha256", digest)?;
    let source = source(fields.need("source", "`source`, a path or a URL")?, sha256, folder, to)?;
    Ok(Artifact { source, executable: fields.maybe("executable", |tree| executable(tree, to))? })
}

fn source(tree: &Tree, sha256: Option<Sha256>, folder: &Path, to: &Release) -> Result<Source, Fault> {
    let expected = "a path, or an http or https URL";
    let text = for_release(tree, expected, to)?;
    if !text.contains("://") {
        return Ok(Source::Path { path: value::absolute(folder, &text), sha256 });
    }
    match reqwest::Url::parse(&text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Err(tree.fault(format!("`{}` is not fetched from", url.scheme()), expected))
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            let expected =
                "an http or https URL without user and password, which would be shown to whoever reads along";
            Err(tree.fault("a URL with a user or password in it", expected))
        }
        Ok(_) => match sha256 {
            Some(sha256) => Ok(Source::Url { url: text, sha256 }),
            None => Err(tree.fault("a URL without `sha256`", "`sha256` beside it: 64 hexadecimal digits")),
        },
        Err(error) => Err(tree.fault(format!("`{text}` is no URL: {error}"), expected)),
    }
}

fn executable(tree: &Tree, to: &Release) -> Result<String, Fault> {
    let expected = "the executable's file name, without a folder";
    let name = for_release(tree, expected, to)?;
    match name.contains('/') || matches!(name.as_str(), "." | "..") {
        true => Err(tree.fault(format!("`{name}` is no file name"), expected)),
        false => Ok(name),
    }
}

/// A text in which `{{version}}` is `to`.
fn for_release(tree: &Tree, expected: &str, to: &Release) -> Result<String, Fault> {
    let text = tree.text(expected)?;
    if text.contains("{version}") && !text.contains("{{version}}") {
        return Err(tree.fault(format!("`{{version}}` in `{text}`"), "`{{version}}`, where the release is to stand"));
    }
    let text = value::templated(tree, text, &[Name::Version])?;
    let context = Context { version: to, node: "", binary: None, initial_cluster: "" };
    template::expand(text, &context).map_err(|error| tree.fault(error.to_string(), expected))
}

fn digest(tree: &Tree) -> Result<Sha256, Fault> {
    let expected = "a SHA-256 digest: 64 hexadecimal digits";
    let text = tree.written(expected)?;
    text.parse().map_err(|error| tree.fault(format!("no digest: {error}"), expected))
}
