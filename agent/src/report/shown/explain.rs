//! The fields of a playbook for people: all of them in lines, or one with all there is to say.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::playbook::{
    reference::{FIELDS, Field, Need, Of, Shape},
    unit,
};

pub fn lines<'f>(fields: impl IntoIterator<Item = &'f Field>) -> String {
    let rows: Vec<_> = fields.into_iter().map(|field| (field.path, shape(field.shape), need(field))).collect();
    let width = |of: fn(&(&str, String, String)) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let (paths, shapes) = (width(|row| row.0.len()), width(|row| row.1.chars().count()));
    let mut text = String::new();
    for (path, shape, need) in &rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{path:<paths$}  {shape:<shapes$}  {need}");
    }
    text
}

/// A field with all there is to say of it, and those below it.
pub fn whole(field: &Field, below: &[&Field]) -> String {
    let mut text = format!("{}\n  {}\n\n", field.path, field.meaning);
    let _ = writeln!(text, "  {}; {}", how(field.shape), need(field));
    match below {
        [] => {
            let _ = write!(text, "\n{}", example(field));
        }
        below => {
            let _ = write!(text, "\n{}", indented(&lines(below.iter().copied())));
        }
    }
    text
}

/// What the lines say, for scripts.
pub fn objects<'f>(fields: impl IntoIterator<Item = &'f Field>) -> Value {
    let object = |field: &Field| {
        json!({ "path": field.path, "shape": shape(field.shape), "need": need(field), "default": field.default,
            "meaning": field.meaning, "example": field.example })
    };
    fields.into_iter().map(object).collect()
}

fn shape(shape: Shape) -> String {
    let inner = |inner: &Shape| self::shape(*inner);
    match shape {
        Shape::Group => "a group".into(),
        Shape::Groups(_) => "a list of groups".into(),
        Shape::MapOf(values) => format!("names, each with {}", inner(values)),
        Shape::Like(path) => format!("what `{path}` has"),
        Shape::SetOf(items) | Shape::ListOf(items) => format!("a list, each {}", inner(items)),
        Shape::Argv => "an argv list".into(),
        Shape::Word | Shape::Text | Shape::AsWritten => "a text".into(),
        Shape::Name => "a name".into(),
        Shape::Path => "a path".into(),
        Shape::Url | Shape::PeerUrl => "a base URL".into(),
        Shape::Duration | Shape::Deadline => "a duration".into(),
        Shape::Size => "a size".into(),
        Shape::Release => "a release".into(),
        Shape::Requirement => "a requirement".into(),
        Shape::Window => "a window".into(),
        Shape::Digest => "a digest".into(),
        Shape::Count(most) => format!("a number from 1 to {most}"),
        Shape::Bool => "true or false".into(),
        Shape::Choice(words) => words.join(" or "),
    }
}

/// With what a person needs to write it.
fn how(shape: Shape) -> String {
    let more = match shape {
        Shape::Duration => return unit::DURATION.into(),
        Shape::Deadline => return format!("{}, above zero", unit::DURATION),
        Shape::Size => return unit::SIZE.into(),
        Shape::Name => ", without `/`, blanks or templates",
        Shape::Path => ", relative to the playbook's folder or absolute",
        Shape::Url => ": http://host:port, or https://host:port",
        Shape::Release => ": one exact version, such as `3.6.14`",
        Shape::Window => ": days, times and a time zone, as `Mon-Fri 22:00-04:00 UTC`, or `daily` for the days",
        Shape::Requirement => " on versions, as semver has them: `\">=3.5.32, <3.6\"`",
        Shape::Digest => ": 64 hexadecimal digits of SHA-256",
        Shape::Argv => ": a program and its arguments, never a shell's line",
        _ => "",
    };
    self::shape(shape) + more
}

fn need(field: &Field) -> String {
    let kinds = |kinds: &[&str]| format!("`kind: {}`", kinds.join("` or `kind: "));
    let within = match field.of {
        Of::Every => String::new(),
        Of::Kinds(of) => format!(" in {}", kinds(of)),
        Of::Runtime(kind) => format!(" of `kind: {kind}`"),
    };
    let is_in_optional = |parent| FIELDS.iter().any(|field| field.path == parent && field.need == Need::Optional);
    match (field.need, field.default) {
        (Need::Required, Some(default)) => format!("required in its group; without the group {default}"),
        (Need::Required, None) if field.parent().is_some_and(is_in_optional) => {
            format!("required in its group{within}")
        }
        (Need::Required, None) => format!("required{within}"),
        (Need::For(of), _) => format!("required in {}", kinds(of)),
        (Need::Beside(other), _) => format!("optional, together with `{other}`"),
        (Need::Unless(other), _) => format!("required{within}, or `{other}`"),
        (Need::Instead(other), _) => format!("optional{within}, without `{other}`"),
        (Need::Optional, Some(default)) => format!("optional{within}, else {default}"),
        (Need::Optional, None) => format!("optional{within}"),
    }
}

/// The field in its place in a playbook.
fn example(field: &Field) -> String {
    let mut text = String::new();
    let mut indent = 2;
    let keys: Vec<_> = field.path.split('.').collect();
    let mut dash = "";
    for (at, key) in keys.iter().enumerate() {
        let value = if at + 1 == keys.len() { format!(" {}", field.example) } else { String::new() };
        let _ = writeln!(text, "{:indent$}{dash}{}:{value}", "", key.trim_end_matches("[]"));
        indent += 2 + dash.len();
        dash = if key.ends_with("[]") { "- " } else { "" };
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::reference::find;

    #[test]
    fn a_field_is_shown_in_its_place() {
        let argv = find("runtime.argv").unwrap();
        assert!(whole(argv[0], &argv[1..]).ends_with(
            "\n  nodes:\n    - runtime:\n        argv: [\"{{binary}}\", --config-file, /etc/etcd/etcd.yaml]\n"
        ));
        let soak = find("soak").unwrap();
        assert_eq!(
            whole(soak[0], &soak[1..]),
            "strategy.soak\n  How long a member must be ready before the next may go.\n\n  a duration with its unit, \
             such as `500ms`, `10s`, `1m30s` or `2h`; optional, else 10s\n\n  strategy:\n    soak: 10s\n"
        );
    }

    #[test]
    fn each_example_is_yaml_with_the_value_at_the_path() {
        for field in FIELDS.iter().filter(|field| !field.example.is_empty()) {
            let read: Value = serde_yaml::from_str(&example(field)).unwrap();
            let value: Value = serde_yaml::from_str(field.example).unwrap();
            let pointer = format!("/{}", field.path.replace("[]", ".0").replace('.', "/"));
            assert_eq!(read.pointer(&pointer), Some(&value), "{}", example(field));
        }
    }
}
