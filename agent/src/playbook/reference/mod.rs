//! Every field of a playbook in one table: what `agent explain` tells and `agent schema` gives to editors.
//!
//! The parser stays the judge of a playbook; a test holds the table against it, key by key and default by default.
//! A new field is a row in `table.rs`.

mod schema;
mod table;

pub use schema::schema;
pub use table::FIELDS;

use super::fields::nearest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Where it stands: keys with dots between them, `[]` after one that holds a list.
    pub path: &'static str,
    pub shape: Shape,
    /// In which playbooks it may stand.
    pub of: Of,
    pub need: Need,
    /// What counts where it does not, as it would be written; `<path>` stands for another field's value.
    pub default: Option<&'static str>,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// A value, as it would be written on one line; empty where the fields below have theirs.
    pub example: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A mapping whose keys are fields of their own.
    Group,
    /// A list of such mappings, at least so many.
    Groups(usize),
    /// A mapping from names that the writer chooses to values of this shape.
    MapOf(&'static Shape),
    /// A mapping with the keys of this other group.
    Like(&'static str),
    /// A list of at least one value of this shape, none twice.
    SetOf(&'static Shape),
    /// A list of values of this shape.
    ListOf(&'static Shape),
    /// A program and its arguments.
    Argv,
    /// A text, perhaps an empty one.
    Word,
    /// A text that is not empty.
    Text,
    /// A text, number or boolean, taken as it is written.
    AsWritten,
    /// A text without `/`, blanks and templates.
    Name,
    /// A path; a relative one starts at the playbook's folder.
    Path,
    /// `http://host:port` or `https://host:port`.
    Url,
    /// The same without a `/` at its end: etcd compares these as texts.
    PeerUrl,
    /// A number with its unit, such as `1m30s`.
    Duration,
    Deadline,
    /// A number of bytes with its unit, such as `256MiB`.
    Size,
    /// One exact release, such as `3.6.14`.
    Release,
    /// A semver requirement, such as `">=3.5.32, <3.6"`.
    Requirement,
    /// Days, times and a time zone, such as `Sat 01:00-05:00 Europe/Berlin`.
    Window,
    /// 64 hexadecimal digits.
    Digest,
    /// A whole number from 1 to this one.
    Count(usize),
    /// `true` or `false`.
    Bool,
    Choice(&'static [&'static str]),
}

/// In which playbooks a field may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Every,
    Kinds(&'static [&'static str]),
    /// In a `runtime` of this kind.
    Runtime(&'static str),
}

/// Whether a field must stand where it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Optional,
    /// It must, wherever the group that it is in stands.
    Required,
    /// It must in playbooks of these kinds.
    For(&'static [&'static str]),
    /// It must beside this other field of its group.
    Beside(&'static str),
    /// It must, where this other field of its group does not stand.
    Unless(&'static str),
    /// It may, where this other field of its group does not stand.
    Instead(&'static str),
}

/// No field is meant, or nobody can tell which.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// There is none of this name.
    #[error("a playbook has no field `{typed}`{}; `agent explain` lists all of them", perhaps(*nearest))]
    None {
        typed: String,
        /// What was most likely meant.
        nearest: Option<&'static str>,
    },
    /// Several have it as their last part.
    #[error("several fields end in `{typed}`: {}", paths.join(", "))]
    Several { typed: String, paths: Vec<&'static str> },
}

fn perhaps(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |path| format!("; perhaps `{path}` is meant"))
}

impl Field {
    /// The path of the group that it is in; none at the top.
    pub fn parent(&self) -> Option<&'static str> {
        self.path.rsplit_once('.').map(|(parent, _)| parent.trim_end_matches("[]"))
    }

    pub fn key(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, key)| key)
    }

    /// The fields of the group or groups that stand here, one level down.
    pub fn children(&self) -> impl Iterator<Item = &'static Field> {
        children(Some(self.path))
    }

    /// Whether it must stand in a playbook of this kind, where its group stands.
    pub fn is_required_for(&self, kind: &str) -> bool {
        let belongs = match self.of {
            Of::Kinds(kinds) => kinds.contains(&kind),
            Of::Every | Of::Runtime(_) => true,
        };
        match self.need {
            Need::Required => belongs,
            Need::For(kinds) => kinds.contains(&kind),
            Need::Unless(_) => belongs,
            Need::Optional | Need::Beside(_) | Need::Instead(_) => false,
        }
    }
}

/// The fields one level below this path; those at the top where there is none.
pub fn children(parent: Option<&str>) -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(move |field| field.parent() == parent)
}

/// The field that was typed, and all below it: by its whole path, or by as much of its end as is its own.
///
/// # Errors
/// No field is meant, or more than one.
pub fn find(typed: &str) -> Result<Vec<&'static Field>, Unknown> {
    let wanted = plain(typed.trim_matches('.'));
    let ends = |field: &&Field| plain(field.path).ends_with(&format!(".{wanted}"));
    let exact = FIELDS.iter().find(|field| plain(field.path) == wanted);
    let found = match exact {
        Some(field) => field,
        None => match FIELDS.iter().filter(ends).collect::<Vec<_>>()[..] {
            [field] => field,
            [] => return Err(Unknown::None { typed: typed.into(), nearest: meant(&wanted) }),
            ref several => {
                let paths = several.iter().map(|field| field.path).collect();
                return Err(Unknown::Several { typed: typed.into(), paths });
            }
        },
    };
    let below = format!("{}.", plain(found.path));
    Ok(FIELDS.iter().filter(|field| field.path == found.path || plain(field.path).starts_with(&below)).collect())
}

/// By the whole path, else by the last part of it.
fn meant(wanted: &str) -> Option<&'static str> {
    let paths: Vec<_> = FIELDS.iter().map(|field| field.path).collect();
    let keys: Vec<_> = FIELDS.iter().map(Field::key).collect();
    let last = wanted.rsplit_once('.').map_or(wanted, |(_, last)| last);
    let by_key = || nearest(last, &keys).and_then(|key| FIELDS.iter().find(|field| field.key() == key));
    let by_path = || nearest(wanted, &paths);
    match wanted.contains('.') {
        true => by_path().or_else(|| by_key().map(|field| field.path)),
        false => by_key().map(|field| field.path).or_else(by_path),
    }
}

/// A path as it is typed: without the marks of lists.
fn plain(path: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0;
    for c in path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_what_is_typed() {
        for (typed, path) in [
            ("strategy.order", "strategy.order"),
            ("nodes[].name", "nodes[].name"),
            ("nodes.name", "nodes[].name"),
            ("nodes[0].runtime.argv", "nodes[].runtime.argv"),
            ("soak", "strategy.soak"),
            ("health.timeout", "strategy.health.timeout"),
            ("to", "to"),
            ("kind", "kind"), // at the top, though a runtime has one too
            ("strategy.", "strategy"),
        ] {
            assert_eq!(find(typed).map(|found| found[0].path), Ok(path), "{typed}");
        }
    }

    #[test]
    fn a_group_brings_what_is_below_it() {
        let paths: Vec<_> = find("nodes.stop").unwrap().iter().map(|field| field.path).collect();
        assert_eq!(paths, ["nodes[].stop", "nodes[].stop.timeout", "nodes[].stop.kill"]);
        assert_eq!(find("to").unwrap().len(), 1);
    }

    #[test]
    fn a_mistyped_field_gets_the_nearest() {
        for (typed, expected) in [
            ("strategy.ordre", Some("strategy.order")),
            ("stratgy.order", Some("strategy.order")),
            ("electionTimeout", Some("cluster.election_timeout")),
            ("on-failure", Some("strategy.on_failure")),
            ("nodes.runtime.argvs", Some("nodes[].runtime.argv")),
            ("colour", None),
            ("", None),
        ] {
            let Err(Unknown::None { nearest, .. }) = find(typed) else { panic!("{typed}: {:?}", find(typed)) };
            assert_eq!(nearest, expected, "{typed}");
        }
        let Err(Unknown::Several { paths, .. }) = find("timeout") else { panic!("{:?}", find("timeout")) };
        assert_eq!(paths.len(), 3);
    }
}
