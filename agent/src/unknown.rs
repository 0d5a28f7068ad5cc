//! What a newer release wrote beside what this one knows: kept, and written back where it stood.
//!
//! Values that hosts share, and the journal, gain fields. An older agent that reads such a value and writes it changed
//! must not drop them, however deep they lie. So what it does not know is set apart when a value is read, and laid back
//! into it when it is written; where the part that held it is gone by then, so is it.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Fields of one value that this release does not know, as the tree they were found in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unknown(Option<Arc<Map<String, Value>>>);

impl Unknown {
    /// Whether there are any at this path, or below it.
    pub fn is_at(&self, path: &[&str]) -> bool {
        let mut fields = self.0.as_deref();
        for (depth, name) in path.iter().enumerate() {
            match fields.and_then(|fields| fields.get(*name)) {
                Some(Value::Object(below)) => fields = Some(below),
                found => return found.is_some() && depth + 1 == path.len(),
            }
        }
        fields.is_some()
    }
}

/// A value that keeps what this release does not know of it, apart from what it is made of.
pub trait Keeps: DeserializeOwned + Serialize {
    fn unknown(&self) -> &Unknown;
    fn keep(&mut self, unknown: Unknown);
}

/// Says of types that keep it in a field `unknown` that they do.
macro_rules! keeps {
    ($($value:ty),*) => {
        $(impl $crate::unknown::Keeps for $value {
            fn unknown(&self) -> &$crate::unknown::Unknown {
                &self.unknown
            }

            fn keep(&mut self, unknown: $crate::unknown::Unknown) {
                self.unknown = unknown;
            }
        })*
    };
}
pub(crate) use keeps;

/// Reads a value, and has it keep what this release does not know of it.
///
/// # Errors
/// It is no such value.
pub fn read<T: Keeps>(json: Value) -> Result<T, serde_json::Error> {
    let mut value = T::deserialize(&json)?;
    if let (Value::Object(found), Value::Object(known)) = (json, serde_json::to_value(&value)?) {
        value.keep(Unknown(left_over(found, &known).map(Arc::new)));
    }
    Ok(value)
}

/// A value as it is written: what this release knows, and beside it what it does not.
///
/// # Errors
/// JSON cannot hold it.
pub fn written(value: &impl Keeps) -> Result<Value, serde_json::Error> {
    let mut json = serde_json::to_value(value)?;
    if let (Value::Object(fields), Some(more)) = (&mut json, value.unknown().0.as_deref()) {
        lay_into(fields, more);
    }
    Ok(json)
}

fn left_over(found: Map<String, Value>, known: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut left = Map::new();
    for (name, value) in found {
        match (value, known.get(&name)) {
            (value, None) => drop(left.insert(name, value)),
            (Value::Object(found), Some(Value::Object(known))) => {
                if let Some(below) = left_over(found, known) {
                    left.insert(name, below.into());
                }
            }
            _ => {}
        }
    }
    (!left.is_empty()).then_some(left)
}

/// A part that this release has written otherwise has no room for what was in it.
fn lay_into(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (fields.get_mut(name), value) {
            (None, value) => drop(fields.insert(name.clone(), value.clone())),
            (Some(Value::Object(fields)), Value::Object(more)) => lay_into(fields, more),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Known {
        a: u8,
        state: State,
        #[serde(skip)]
        unknown: Unknown,
    }

    keeps! { Known }

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum State {
        Rolling,
        Failed { why: String },
    }

    #[test]
    fn what_is_not_known_comes_back_where_it_stood() {
        let failed = || json!({ "a": 1, "x": [1, { "y": null }], "state": { "failed": { "why": "it", "since": 7 } } });
        for (found, state, written) in [
            (json!({ "a": 1, "state": "rolling" }), None, json!({ "a": 2, "state": "rolling" })),
            (
                failed(),
                None,
                json!({ "a": 2, "x": [1, { "y": null }], "state": { "failed": { "why": "it", "since": 7 } } }),
            ),
            // What was said of the failure goes with it.
            (failed(), Some(State::Rolling), json!({ "a": 2, "x": [1, { "y": null }], "state": "rolling" })),
        ] {
            let mut known: Known = read(found.clone()).unwrap();
            known.a = 2;
            known.state = state.unwrap_or(known.state);
            assert_eq!(super::written(&known).unwrap(), written, "{found}");
        }
    }

    #[test]
    fn a_path_tells_where_the_unknown_lies() {
        let found = json!({ "a": 1, "x": 1, "state": { "failed": { "why": "", "since": { "s": 7 } } } });
        let known: Known = read(found).unwrap();
        for (path, is_there) in [
            (&["state"][..], true),
            (&["state", "failed"], true),
            (&["state", "failed", "since"], true),
            (&["state", "failed", "why"], false),
            (&["x"], true),
            (&["x", "y"], false),
            (&["a"], false),
        ] {
            assert_eq!(known.unknown.is_at(path), is_there, "{path:?}");
        }
        assert!(!Unknown::default().is_at(&["a"]));
        assert!(read::<Known>(json!([1])).is_err());
    }
}
