//! etcd's configuration file, read as etcd reads it: its first document, whatever the case of a key, and of a key that is there twice the
//! last. Source: sigs.k8s.io/yaml; seen with etcd 3.4.23, 3.5.30 and 3.6.14.

use std::fmt;

use serde::de::{Deserialize, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde_yaml::{Mapping, Value};

/// A nest of brackets costs libyaml the square of its length, in bytes.
const MOST: usize = 64 * 1024;

/// Why nothing is known of its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is too long, or no UTF-8: etcd may read it all the same.
    Unknown,
    NotYaml,
}

/// What it says, each key in small letters. Of a list or a single word nothing.
///
/// # Errors
/// Why it was not read.
pub fn settings(bytes: &[u8]) -> Result<Mapping, Unread> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MOST).ok_or(Unread::Unknown)?;
    let says_nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let first = serde_yaml::Deserializer::from_str(text).next().filter(|_| !text.lines().all(says_nothing));
    let Some(first) = first else { return Ok(Mapping::new()) };
    let Read(mut value) = Read::deserialize(first).map_err(|_| Unread::NotYaml)?;
    // A merge of what is no mapping is left where it is.
    let _ = value.apply_merge();
    match value {
        Value::Mapping(settings) => Ok(settings),
        _ => Ok(Mapping::new()),
    }
}

struct Read(Value);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Read(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Sequence(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut mapping = Mapping::new();
        while let Some((Read(key), Read(value))) = map.next_entry()? {
            let key = key.as_str().map(|key| Value::from(key.to_lowercase())).unwrap_or(key);
            mapping.insert(key, value);
        }
        Ok(Value::Mapping(mapping))
    }

    /// A tag says nothing here.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Value, A::Error> {
        let (_, value) = tagged.variant::<String>()?;
        value.newtype_variant::<Read>().map(|Read(value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_etcd_reads_it() {
        for (text, expected) in [
            ("", Ok("{}\n")),
            ("# nothing\n", Ok("{}\n")),
            ("name: m1\n", Ok("name: m1\n")),
            ("\u{feff}name: m1\n", Ok("name: m1\n")),
            (
                "Name: m1\nPeer-Transport-Security: {Cert-File: /C}\n",
                Ok("name: m1\npeer-transport-security:\n  cert-file: /C\n"),
            ),
            ("a: 1\nb: 2\na: 3\n", Ok("a: 3\nb: 2\n")),
            ("---\na: 1\n---\na: 2\n", Ok("a: 1\n")),
            ("---\na: 1\n---\n{{{\n", Ok("a: 1\n")),
            ("x: &t {cert-file: /c}\ny: {<<: *t}\n", Ok("x:\n  cert-file: /c\ny:\n  cert-file: /c\n")),
            ("x: &t {a: 1, b: 2}\ny: {<<: *t, a: 3}\n", Ok("x:\n  a: 1\n  b: 2\ny:\n  a: 3\n  b: 2\n")),
            ("a: !mine 3\n", Ok("a: 3\n")),
            ("{\"name\": \"m1\", \"quota-backend-bytes\": 1}", Ok("name: m1\nquota-backend-bytes: 1\n")),
            ("- a\n", Ok("{}\n")),
            ("name: {{{", Err(Unread::NotYaml)),
            ("name: \"a\n", Err(Unread::NotYaml)),
        ] {
            let read = settings(text.as_bytes()).map(|settings| serde_yaml::to_string(&sorted(settings)).unwrap());
            assert_eq!(read.as_deref(), expected.as_ref().map(|text| *text), "{text}");
        }
        assert_eq!(settings(b"\xff\xfen\0"), Err(Unread::Unknown));
        assert_eq!(settings("[".repeat(MOST + 1).as_bytes()), Err(Unread::Unknown));
        assert_eq!(settings("[".repeat(MOST).as_bytes()), Err(Unread::NotYaml));
        let list = |of: usize| format!("l{of}: &l{of} [{}]\n", format!("*l{},", of - 1).repeat(50));
        let bomb = format!("l0: &l0 [{}]\n{}", "x,".repeat(50), (1..6).map(list).collect::<String>());
        assert_eq!(settings(bomb.as_bytes()), Err(Unread::NotYaml));
    }

    /// In one order: that of merged keys is nobody's business.
    fn sorted(settings: Mapping) -> std::collections::BTreeMap<String, Value> {
        let inside = |value| match value {
            Value::Mapping(inner) => serde_yaml::to_value(sorted(inner)).unwrap(),
            other => other,
        };
        settings.into_iter().map(|(key, value)| (key.as_str().unwrap().to_owned(), inside(value))).collect()
    }
}
