//! The strict reading of one value: its type, and for a mapping its keys. Nothing is converted silently.

use super::{
    fault::{Fault, Place},
    tree::{Entry, Tree, Value},
};

impl Tree {
    pub fn fault(&self, problem: impl Into<String>, expected: impl Into<String>) -> Fault {
        Fault::new(self.place, problem, expected)
    }

    fn wrong_type(&self, expected: &str) -> Fault {
        let found = self.describe();
        self.fault(format!("{found} stands here"), expected)
    }

    fn describe(&self) -> String {
        match &self.value {
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a mapping".into(),
            Value::Scalar { text, plain: true } if is_null(text) => "nothing".into(),
            Value::Scalar { text, plain: true } if is_bool(text) => format!("the boolean `{text}`"),
            Value::Scalar { text, plain: true } if is_number(text) => format!("the number `{text}`"),
            Value::Scalar { text, .. } => format!("the text `{text}`"),
        }
    }

    /// The characters of a scalar whatever YAML takes them for: `3.10` is a version here, never a fraction.
    pub fn written(&self, expected: &str) -> Result<&str, Fault> {
        match &self.value {
            Value::Scalar { text, plain } if !(*plain && is_null(text)) => Ok(text),
            _ => Err(self.wrong_type(expected)),
        }
    }

    /// A text, perhaps an empty one. A number or boolean wants quotes, so that nothing is guessed.
    pub fn word(&self, expected: &str) -> Result<&str, Fault> {
        match &self.value {
            Value::Scalar { text, plain: true } if is_bool(text) || is_number(text) => {
                let problem = format!("{} stands here, where a text belongs", self.describe());
                Err(self.fault(problem, format!("{expected}; in quotes: `\"{text}\"`")))
            }
            Value::Scalar { text, .. } if text.contains('\0') => {
                Err(self.fault("the text has a NUL character", expected))
            }
            _ => self.written(expected),
        }
    }

    /// A text that is not empty.
    pub fn text(&self, expected: &str) -> Result<&str, Fault> {
        match self.word(expected)? {
            "" => Err(self.fault("an empty text stands here", expected)),
            text => Ok(text),
        }
    }

    pub fn bool(&self) -> Result<bool, Fault> {
        match &self.value {
            Value::Scalar { text, plain: true } if text == "true" => Ok(true),
            Value::Scalar { text, plain: true } if text == "false" => Ok(false),
            _ => Err(self.wrong_type("`true` or `false`")),
        }
    }

    pub fn list(&self, expected: &str) -> Result<&[Tree], Fault> {
        match &self.value {
            Value::List(items) => Ok(items),
            _ => Err(self.wrong_type(expected)),
        }
    }

    pub fn map(&self, expected: &str) -> Result<&[Entry], Fault> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.wrong_type(expected)),
        }
    }

    /// One word out of a closed list.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Fault> {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let expected = one_of(&names);
        let word = self.written(&expected)?;
        let found = choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice);
        found.ok_or_else(|| self.fault(format!("`{word}` is none of the choices"), expected))
    }
}

/// A mapping whose keys are all known.
#[derive(Clone, Copy)]
pub struct Fields<'t> {
    name: &'static str,
    place: Place,
    entries: &'t [Entry],
}

impl<'t> Fields<'t> {
    /// Takes `tree` as the mapping `name`, its keys not yet looked at.
    pub fn open(tree: &'t Tree, name: &'static str, expected: &str) -> Result<Self, Fault> {
        Ok(Self { name, place: tree.place, entries: tree.map(expected)? })
    }

    /// Refuses every key that is not in `known`.
    pub fn only(self, known: &[&str]) -> Result<Self, Fault> {
        match self.entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            Some(stranger) => Err(self.unknown(stranger, known)),
            None => Ok(self),
        }
    }

    /// Takes `tree` as the mapping `name` with keys in `known` alone.
    pub fn of(tree: &'t Tree, name: &'static str, known: &[&str]) -> Result<Self, Fault> {
        Self::open(tree, name, &format!("a mapping with keys out of {}", quoted(known)))?.only(known)
    }

    pub fn get(&self, key: &str) -> Option<&'t Tree> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub fn key_place(&self, key: &str) -> Option<Place> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_place)
    }

    pub fn need(&self, key: &str, expected: &str) -> Result<&'t Tree, Fault> {
        self.get(key).ok_or_else(|| Fault::new(self.place, format!("{} lacks `{key}`", self.name), expected))
    }

    /// Reads an optional key with `read`, or takes `default`.
    pub fn or<T>(&self, key: &str, default: T, read: impl FnOnce(&'t Tree) -> Result<T, Fault>) -> Result<T, Fault> {
        self.get(key).map_or(Ok(default), read)
    }

    /// Reads a key that may be absent.
    pub fn maybe<T>(&self, key: &str, read: impl FnOnce(&'t Tree) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
        self.get(key).map(read).transpose()
    }

    fn unknown(&self, stranger: &Entry, known: &[&str]) -> Fault {
        let problem = format!("{} has no key `{}`", self.name, stranger.key);
        let expected = match nearest(&stranger.key, known) {
            Some(near) => format!("`{near}`, perhaps; the keys here are {}", quoted(known)),
            None => one_of(known),
        };
        Fault::new(stranger.key_place, problem, expected)
    }
}

/// The known word that was most likely meant.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let word = plain(word);
    let distance = |near: &&str| strsim::damerau_levenshtein(&word, &plain(near));
    let close = |near: &&&str| {
        let near = plain(near);
        let contained = word.len() >= 3 && (near.contains(&word) || word.contains(&near));
        contained || strsim::damerau_levenshtein(&word, &near) <= near.len().max(word.len()) / 3
    };
    known.iter().filter(close).min_by_key(|near| distance(near)).copied()
}

pub fn one_of(words: &[&str]) -> String {
    match words {
        [word] => format!("`{word}`"),
        _ => format!("one of {}", quoted(words)),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Whether a text may be written without quotes, in a list or after a key, and is read as that text; of those that may,
/// the harmless ones.
pub(super) fn is_plain(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || "/._".contains(c);
    let inner = |c: char| first(c) || "-+=%:,@".contains(c);
    let begins = text.trim_start_matches('-').starts_with(first) && text.chars().all(inner);
    // Older readers take `1:30` for a number, and `no` for false.
    let is_time = text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(':');
    let is_word = !matches!(text, "." | ".." | "..." | "yes" | "no" | "on" | "off");
    begins && is_word && !is_time && !text.ends_with(':') && !is_null(text) && !is_bool(text) && !is_number(text)
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn is_bool(text: &str) -> bool {
    matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
}

/// Whether YAML's core schema takes a plain text for a number.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let radix = |prefix: &str, radix: u32| {
        unsigned
            .strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
    };
    let special = matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN");
    let decimal = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') && unsigned.parse::<f64>().is_ok();
    special || decimal || radix("0x", 16) || radix("0o", 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_the_one_that_was_meant() {
        let known = ["name", "endpoints", "election_timeout", "tls", "password_file", "health"];
        for (word, near) in [
            ("endpoint", Some("endpoints")),
            ("endpionts", Some("endpoints")),
            ("electionTimeout", Some("election_timeout")),
            ("password", Some("password_file")),
            ("Name", Some("name")),
            ("tsl", Some("tls")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, &known), near, "{word}");
        }
    }

    #[test]
    fn a_number_is_what_yaml_takes_for_one() {
        for text in ["0", "-1", "+1", "3.6", "1e3", ".5", "0x1F", "0o17", ".inf", "-.inf", ".nan"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "3.6.14", "inf", "nan", "1_000", "-", "0x", "ten", "10s", "infinity"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
