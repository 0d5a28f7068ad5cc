//! The variables that systemd gives a unit's program at its next start. Pure, but for the files that the unit names.
//!
//! A process that runs shows those of its last start, and files may have changed since. Source: systemd.exec(5), "Environment", and
//! systemd v257, `src/basic/env-file.c` and `src/core/exec-invoke.c`.

use std::{collections::BTreeMap, path::Path};

use super::{preflight::Finding, unit::Unit};

/// What the next start is given, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    pub variables: BTreeMap<String, String>,
    /// Names that are taken from systemd's own process.
    passed: Vec<String>,
    /// Whether each file that is named was read.
    is_whole: bool,
}

/// What reading a file of variables came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    Text(Vec<u8>),
    /// There is none.
    Absent,
    /// It is a folder, or the like.
    NotAFile,
    /// There may be one, and it is not for this agent to read.
    Unread,
}

/// What systemd itself sets for each start, as far as somebody may name it.
const OF_SYSTEMD: [&str; 5] = ["HOME", "USER", "LOGNAME", "SHELL", "CREDENTIALS_DIRECTORY"];

fn wrong(unit: &Unit, path: &str, why: &str) -> Finding {
    Finding {
        unit: unit.name.clone(),
        fault: format!("takes variables from {path} (EnvironmentFile=), which {why}, so that it would not start"),
        remedy: "put the file there, or correct EnvironmentFile=".into(),
    }
}

impl Environment {
    /// Of a unit of a systemd that gives each unit `manager`.
    ///
    /// # Errors
    /// A file without which there is no start is not there, or cannot be read by systemd.
    pub(super) fn of(unit: &Unit, manager: &[String], read: impl Fn(&Path) -> Read) -> Result<Self, Finding> {
        let passed = unit.passed.iter().cloned().chain(OF_SYSTEMD.map(str::to_owned)).collect();
        let mut told = Self { passed, is_whole: true, ..Self::default() };
        let pair = |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        told.variables.extend(manager.iter().filter_map(pair));
        told.variables.extend(unit.directories.iter().map(|(name, paths)| ((*name).to_owned(), paths.clone())));
        told.variables.extend(unit.environment.iter().filter_map(pair));
        for (path, may_be_absent) in &unit.environment_files {
            // Which files it stands for is known at the start.
            let is_pattern = path.contains(['*', '?', '[']);
            let why = match if is_pattern { Read::Unread } else { read(Path::new(path)) } {
                Read::Text(text) => match String::from_utf8(text).ok().filter(|text| !text.contains('\0')) {
                    Some(text) => {
                        told.variables.extend(assignments(&text));
                        continue;
                    }
                    None => "is no text",
                },
                Read::NotAFile => "is no file",
                Read::Absent => "is not there",
                Read::Unread => {
                    told.is_whole = false;
                    continue;
                }
            };
            // With a `-` whatever is wrong with it is passed over.
            if !may_be_absent {
                return Err(wrong(unit, path, why));
            }
        }
        for word in &unit.unset {
            match word.split_once('=') {
                Some((name, value)) if told.variables.get(name).is_some_and(|is| is == value) => {
                    told.variables.remove(name);
                }
                Some(_) => {}
                None => {
                    told.variables.remove(word);
                    told.passed.retain(|name| name != word);
                }
            }
        }
        Ok(told)
    }

    /// Beside those of the process that runs, for what is not known otherwise.
    pub fn over(self, process: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let is_taken = |name: &String| !self.is_whole || self.passed.contains(name);
        let taken =
            process.iter().filter(|(name, _)| is_taken(name)).map(|(name, value)| (name.clone(), value.clone()));
        let mut all: BTreeMap<_, _> = taken.collect();
        all.extend(self.variables);
        all
    }

    pub fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// A program's arguments with variables in their place: `${X}` within a word, `$X` as words of its own (systemd.service(5), "Command
/// lines").
pub(super) fn expand(arguments: &[String], variables: &BTreeMap<String, String>) -> Vec<String> {
    let value = |name: &str| variables.get(name).map_or("", String::as_str);
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let words = arguments.iter().flat_map(|word| match word.strip_prefix('$') {
        Some(name) if is_name(name) => words_of(value(name)),
        _ => vec![within(word, value)],
    });
    words.collect()
}

/// Split at whitespace, but for what stands in quotes or behind a backslash.
fn words_of(value: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (Some(end), c) if c == end => quote = None,
            (_, '\\') => word.get_or_insert_default().extend(characters.next()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn within<'a>(word: &str, value: impl Fn(&str) -> &'a str) -> String {
    let (mut expanded, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = match (after.strip_prefix('$'), after.strip_prefix('{').and_then(|inner| inner.split_once('}'))) {
            (Some(after), _) => {
                expanded.push('$');
                after
            }
            (None, Some((name, after))) => {
                expanded.push_str(value(name));
                after
            }
            (None, None) => {
                expanded.push('$');
                after
            }
        };
    }
    expanded + rest
}

/// Where the reader of a file stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Line,
    Comment,
    Name,
    /// Behind `=`, or behind quotes.
    Begin,
    Value,
    Single,
    Double,
}

/// What a file of variables assigns, in its order. A line that assigns nothing is passed over.
fn assignments(text: &str) -> Vec<(String, String)> {
    let (mut found, mut at, mut name, mut value) = (Vec::new(), At::Line, String::new(), String::new());
    // Behind the last character that is not a space, within a value without quotes.
    let mut end = 0;
    // A line that is not ended is one.
    let mut characters = text.chars().chain(['\n']);
    while let Some(character) = characters.next() {
        let is_end = matches!(character, '\n' | '\r');
        at = match (at, character) {
            (At::Line, '#' | ';') => At::Comment,
            (At::Line, c) if c.is_whitespace() => At::Line,
            (At::Line, c) => {
                name = c.to_string();
                At::Name
            }
            (At::Comment | At::Name, _) if is_end => At::Line,
            (At::Comment, _) => At::Comment,
            (At::Name, '=') => {
                (value, end) = (String::new(), 0);
                At::Begin
            }
            (At::Name, c) => {
                name.push(c);
                At::Name
            }
            (At::Begin | At::Value, _) if is_end => {
                if at == At::Value {
                    value.truncate(end);
                }
                found.push((name.trim_end().to_owned(), std::mem::take(&mut value)));
                At::Line
            }
            (At::Begin, '\'') => At::Single,
            (At::Begin, '"') => At::Double,
            (At::Begin, c) if c.is_whitespace() => At::Begin,
            (At::Begin | At::Value, '\\') => {
                value.extend(characters.next().filter(|next| !matches!(next, '\n' | '\r')));
                end = value.len();
                At::Value
            }
            (At::Begin | At::Value, c) => {
                value.push(c);
                end = if c.is_whitespace() { end } else { value.len() };
                At::Value
            }
            (At::Single, '\'') | (At::Double, '"') => At::Begin,
            (At::Double, '\\') => {
                match characters.next() {
                    Some(c @ ('"' | '\\' | '`' | '$')) => value.push(c),
                    Some('\n') | None => {}
                    Some(c) => value.extend(['\\', c]),
                }
                At::Double
            }
            (At::Single | At::Double, c) => {
                value.push(c);
                at
            }
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        text.split(' ')
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn a_file_is_read_as_systemd_reads_it() {
        for (text, expected) in [
            ("A=1\nB=2", vec![("A", "1"), ("B", "2")]),
            ("# A=1\n; B=2\n\n  C = 3 \nno line\n", vec![("C", "3")]),
            ("A='x y'\nB=\"x\\\"y\\$z\\n\"\n", vec![("A", "x y"), ("B", "x\"y$z\\n")]),
            ("A=x\\\ny\nB=a\"b\"\n", vec![("A", "xy"), ("B", "a\"b\"")]),
            ("A='a\nb' \"c\"\nB=", vec![("A", "a\nbc"), ("B", "")]),
            ("A=--x=1 --y\r\nexport B=2\n", vec![("A", "--x=1 --y"), ("export B", "2")]),
            ("A=x#y # z\n#c \\\nB=1\n", vec![("A", "x#y # z"), ("B", "1")]),
            ("A='open", vec![]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!(assignments(text), expected, "{text:?}");
        }
    }

    #[test]
    fn files_are_over_the_unit_and_the_unit_over_the_manager() {
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        for (manager, environment, files, unset, passed, process, expected) in [
            ("A=m", "A=u B=u", "/b", "", "", "Z=p", Some("A=u B=f C=f")),
            ("A=m", "", "/none-", "", "", "", Some("A=m")),
            ("", "", "/none", "", "", "", None),
            ("", "A=1 B=2", "", "A B=3", "", "A=p", Some("B=2")),
            ("", "", "", "", "A", "A=p B=p", Some("A=p")),
            ("", "A=u", "", "", "A", "A=p", Some("A=u")),
            ("", "A=u", "/folder", "", "", "", None),
            ("", "A=u", "/folder-", "", "", "", Some("A=u")),
            ("", "A=u", "/bytes", "", "", "", None),
            ("", "A=u", "/secret", "", "", "A=p B=p", Some("A=u B=p")), // what cannot be read may have it
            ("", "A=u", "/*.conf", "", "", "B=p", Some("A=u B=p")),
        ] {
            let file = |word: &str| match word.strip_suffix('-') {
                Some(path) => (path.to_owned(), true),
                None => (word.to_owned(), false),
            };
            let unit = Unit {
                environment: words(environment),
                environment_files: files.split(' ').filter(|file| !file.is_empty()).map(file).collect(),
                unset: words(unset),
                passed: words(passed),
                ..Unit::default()
            };
            let read = |path: &Path| match path.to_str() {
                Some("/b") => Read::Text(b"B=f\nC=f\n".to_vec()),
                Some("/secret") => Read::Unread,
                Some("/folder") => Read::NotAFile,
                Some("/bytes") => Read::Text(vec![b'A', b'=', 0xff]),
                _ => Read::Absent,
            };
            let told = Environment::of(&unit, &words(manager), read);
            let process = pairs(process).into_iter().collect();
            let found = told.ok().map(|told| told.over(&process));
            assert_eq!(found, expected.map(|expected| pairs(expected).into_iter().collect()), "{environment} {files}");
        }
    }

    #[test]
    fn a_variable_is_split_as_a_command_line_is() {
        for (value, expected) in [
            ("", vec![]),
            (" --a  --b=1\t", vec!["--a", "--b=1"]),
            ("--a='x y' \"\" \\ z", vec!["--a=x y", "", " z"]),
            ("--a=\"x'y\\\"z\" 'open", vec!["--a=x'y\"z", "open"]),
        ] {
            assert_eq!(words_of(value), expected, "{value}");
        }
    }

    #[test]
    fn words_have_variables_in_their_place() {
        let variables = pairs("A=1 B=--x DIR=/d").into_iter().chain([("TWO".to_owned(), "--y z".to_owned())]).collect();
        for (line, expected) in [
            ("--data-dir=${DIR}/etcd $TWO", "--data-dir=/d/etcd --y z"),
            ("$B $NONE ${NONE} $$A a$A ${A", "--x  $A a$A ${A"),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(expand(&words, &variables).join(" "), expected, "{line}");
        }
    }
}
