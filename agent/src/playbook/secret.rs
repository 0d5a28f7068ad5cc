//! What of a playbook is nobody's to see but the member's and the agent's: values of `env`; user, password and query of
//! a URL. Output goes to logs of CI and of Ansible, so they are left out of all that is shown.
//!
//! It goes by the source's lines, since a file that is not even YAML is shown too.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeSeq};

/// Stands for each character that is left out, so that a caret stays under its place.
const HIDDEN: char = '*';

/// The line at `index` of a source, from 0, without its secrets.
pub fn line(source: &str, index: usize) -> String {
    let mut block: Option<Block> = None;
    let mut shown = String::new();
    for line in source.lines().take(index + 1) {
        let indent = line.chars().take_while(|c| *c == ' ').count();
        if line.trim().is_empty() {
            shown = line.to_owned();
            continue;
        }
        block = block.filter(|block| indent > block.key);
        shown = match &mut block {
            Some(block) => block.line(line, indent),
            None => match env_key(line) {
                Some((key, value)) => {
                    block = Some(Block { key, names: None });
                    hide_from(line, value)
                }
                None => line.to_owned(),
            },
        };
    }
    in_text(&shown)
}

/// The lines below an `env:`.
struct Block {
    /// The column of `env`.
    key: usize,
    /// The column of the variables' names.
    names: Option<usize>,
}

impl Block {
    /// A name may be seen. What is indented further goes on with a value.
    fn line(&mut self, line: &str, indent: usize) -> String {
        let is_name = *self.names.get_or_insert(indent) == indent;
        let value = line.find(": ").map(|at| line[..at].chars().count() + 1).filter(|_| is_name);
        let is_bare = is_name && line.trim_end().ends_with(':');
        if is_bare { line.to_owned() } else { hide_from(line, value.unwrap_or(indent)) }
    }
}

/// Keys whose values are left out. A playbook has no `password`, and who writes one is not to see it in a log.
const KEYS: [&str; 6] = ["env:", "\"env\":", "'env':", "env :", "password:", "\"password\":"];

/// Where such a key is in a line, and where its value begins.
fn env_key(line: &str) -> Option<(usize, usize)> {
    for name in KEYS {
        for (at, _) in line.match_indices(name) {
            let before = line[..at].chars().next_back();
            if before.is_none_or(|c| " {,[\t".contains(c)) {
                let key = line[..at].chars().count();
                return Some((key, key + name.chars().count()));
            }
        }
    }
    None
}

fn hide_from(line: &str, column: usize) -> String {
    line.chars().enumerate().map(|(at, c)| if at < column || c.is_whitespace() { c } else { HIDDEN }).collect()
}

/// A text without user, password and query of the URLs in it.
pub fn in_text(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || "\"'`<>".contains(c);
    text.split_inclusive(ends).map(in_word).collect()
}

fn in_word(word: &str) -> String {
    let scheme = word.find("://").map(|at| at + "://".len());
    // Without a scheme, too: `user:password@host` is a mistake that people make.
    let at = word.rfind('@').filter(|at| scheme.is_some_and(|scheme| scheme <= *at) || word[..*at].contains(':'));
    let query = scheme.and_then(|scheme| Some(word[scheme..].find(['?', '#'])? + scheme + 1));
    let from = scheme.filter(|scheme| at.is_none_or(|at| *scheme <= at)).unwrap_or(0);
    let end = word.trim_end_matches(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).len();
    let is_secret = |index: usize| {
        at.is_some_and(|at| (from..at).contains(&index)) || query.is_some_and(|query| (query..end).contains(&index))
    };
    word.char_indices().map(|(index, c)| if is_secret(index) { HIDDEN } else { c }).collect()
}

/// The names of variables, as a list: what is shown cannot be taken for the playbook itself.
pub(super) fn names_alone<S: Serializer>(env: &BTreeMap<String, String>, serializer: S) -> Result<S::Ok, S::Error> {
    if env.is_empty() {
        return env.serialize(serializer);
    }
    let mut names = serializer.serialize_seq(Some(env.len()))?;
    env.keys().try_for_each(|name| names.serialize_element(name))?;
    names.end()
}

pub(super) fn without_query<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&in_text(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_password_and_query_are_left_out_of_a_text() {
        for (text, expected) in [
            ("https://a.test/b.tar.gz", "https://a.test/b.tar.gz"),
            ("source: \"https://a.test/b?X-Sig=1&y=2\" # why?", "source: \"https://a.test/b?***********\" # why?"),
            ("`http://u:p@h:1` is no URL", "`http://***@h:1` is no URL"),
            ("{ source: ftp://token@h/x#y, b: c }", "{ source: ftp://*****@h/x#** b: c }"),
            ("[u:p@s@h:2379]", "******@h:2379]"),
            ("`etcd@.service` is a template", "`etcd@.service` is a template"),
            ("why? a@b", "why? a@b"),
        ] {
            let shown = in_text(text);
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn values_of_env_are_left_out_of_every_line() {
        let source = "nodes:\n  - name: m1\n    runtime:\n      kind: process\n      env:\n        TOKEN: s3cret\n        \
                      PEM: |\n          s3cret: s3cret\n        \"Q\": \"a\n          s3cret\"\n\n        LIST:\n          - s3cret\n      \
                      log: /x\n  - { env: { A: s3cret } }\n  - {\"env\":{\"A\":\"s3cret\"}}\n  - env: s3cret\n    environment: seen\n";
        let shown: Vec<_> = (0..source.lines().count()).map(|index| line(source, index)).collect();
        assert!(shown.iter().all(|line| !line.contains("s3cret")), "{shown:#?}");
        for (index, name) in [(5, "TOKEN:"), (6, "PEM:"), (8, "\"Q\":"), (11, "LIST:"), (13, "log: /x"), (17, "seen")] {
            assert!(shown[index].contains(name), "{name}: {shown:#?}");
        }
        for (line, whole) in shown.iter().zip(source.lines()) {
            assert_eq!(line.chars().count(), whole.chars().count());
        }
    }
}
