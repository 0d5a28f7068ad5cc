//! The table as a JSON Schema (draft 2020-12), for editors that complete and check.
//!
//! It refuses nothing that the parser takes. The parser knows more: what is impossible together, templates, limits.

use serde_json::{Map, Value, json};

use super::{FIELDS, Field, Need, Of, Shape, children};

pub fn schema() -> Value {
    let mut schema = group(None);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:baton:playbook:v1",
        "title": "Baton playbook",
        "description": "What one host's agent is told to do to a cluster. `agent validate` has the last word.",
    });
    for (key, value) in entries(head).into_iter().chain([("allOf".to_owned(), by_kind().into())]) {
        schema.insert(key, value);
    }
    schema.into()
}

fn field(field: &Field) -> Value {
    let mut schema = entries(shape(field.shape, field));
    schema.insert("description".into(), field.meaning.into());
    if let Some(default) = field.default.filter(|text| !text.contains('<')) {
        schema.insert("default".into(), value(default));
    }
    if !field.example.is_empty() {
        schema.insert("examples".into(), json!([value(field.example)]));
    }
    schema.into()
}

/// What may stand at a shape; `field` has the rows below it, where it is a group.
fn shape(shape: Shape, field: &Field) -> Value {
    let list = |items: Value| json!({ "type": "array", "items": items });
    let inner = |shape: &Shape| self::shape(*shape, field);
    match shape {
        Shape::Group => group(Some(field)).into(),
        Shape::Groups(least) => merged(list(group(Some(field)).into()), json!({ "minItems": least })),
        Shape::MapOf(values) => json!({ "type": "object", "additionalProperties": inner(values),
            "propertyNames": { "pattern": "^[^=\\u0000]+$" } }),
        Shape::Like(path) => {
            FIELDS.iter().find(|field| field.path == path).map_or(json!(true), |field| group(Some(field)).into())
        }
        Shape::SetOf(items) => merged(list(inner(items)), json!({ "minItems": 1, "uniqueItems": true })),
        Shape::ListOf(items) => list(inner(items)),
        Shape::Argv => {
            let program = json!({ "type": "string", "minLength": 1 });
            merged(list(json!({ "type": "string" })), json!({ "minItems": 1, "prefixItems": [program] }))
        }
        Shape::Word => json!({ "type": "string" }),
        Shape::Text => json!({ "type": "string", "minLength": 1 }),
        Shape::AsWritten => json!({ "type": ["string", "number", "boolean"], "pattern": "\\S" }),
        Shape::Count(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Choice(words) => json!({ "type": "string", "enum": words }),
        // `3.5` is a number to YAML and a requirement to the parser.
        Shape::Requirement => json!({ "type": ["string", "number"], "pattern": REQUIREMENT }),
        Shape::Name => pattern(r"^(?!\.{1,2}$)(?!.*\{\{)[^/\s]+$"),
        Shape::Path => pattern(r"^(?!.*\{\{)."),
        Shape::Url => pattern(r"^https?://[^/?#@]+:[0-9]+/?$"),
        Shape::PeerUrl => pattern(r"^https?://[^/?#@,=]+:[0-9]+$"),
        Shape::Duration => pattern(&format!("^(?=[0-9]){DURATION}$")),
        Shape::Deadline => pattern(&format!("^(?=.*[1-9]){DURATION}$")),
        Shape::Size => pattern("^[0-9]+(GiB|MiB|KiB|B)$"),
        Shape::Release => pattern(RELEASE),
        Shape::Window => pattern(WINDOW),
        Shape::Digest => pattern("^[0-9A-Fa-f]{64}$"),
    }
}

const DURATION: &str = "([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?";
/// What only the calendar knows, such as a time zone that there is, the parser says.
const WINDOW: &str = r"^(daily|[A-Z][a-z]{2}([-,][A-Z][a-z]{2})*) ([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00) [A-Za-z0-9/_+-]+$";
/// semver.org's grammar, its numbers and words.
const RELEASE: &str = r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$";
/// Comparators with commas between them.
const REQUIREMENT: &str = concat!(
    r"^\s*((>=|<=|>|<|=|\^|~)?\s*[0-9*xX]+(\.[0-9*xX]+){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?\s*,\s*)*",
    r"(>=|<=|>|<|=|\^|~)?\s*[0-9*xX]+(\.[0-9*xX]+){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?\s*$"
);

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// A mapping whose keys are all known: those of this field, or of the whole playbook.
fn group(of: Option<&Field>) -> Map<String, Value> {
    let rows: Vec<_> = children(of.map(|field| field.path)).collect();
    let properties: Map<_, _> = rows.iter().map(|row| (row.key().to_owned(), field(row))).collect();
    let always = |row: &&&Field| row.need == Need::Required && row.of == Of::Every;
    let required: Vec<_> = rows.iter().filter(always).map(|row| row.key()).collect();
    let beside: Map<_, _> = rows.iter().filter_map(beside).collect();
    let instead: Map<_, _> = rows.iter().filter_map(instead).collect();
    let mut schema = entries(json!({ "type": "object", "properties": properties, "additionalProperties": false }));
    for (key, value) in [
        ("required", json!(required)),
        ("dependentRequired", json!(beside)),
        ("dependentSchemas", json!(instead)),
        ("allOf", by_runtime(&rows)),
    ] {
        if value.as_array().is_none_or(|list| !list.is_empty()) && value.as_object().is_none_or(|map| !map.is_empty()) {
            schema.insert(key.into(), value);
        }
    }
    schema
}

fn beside(row: &&Field) -> Option<(String, Value)> {
    match row.need {
        Need::Beside(other) => Some((row.key().to_owned(), json!([other]))),
        Need::Optional | Need::Required | Need::For(_) | Need::Unless(_) | Need::Instead(_) => None,
    }
}

/// What may not stand beside another field.
fn instead(row: &&Field) -> Option<(String, Value)> {
    match row.need {
        Need::Instead(other) => Some((row.key().to_owned(), json!({ "properties": { (other): false } }))),
        _ => None,
    }
}

/// What a `runtime` of each kind must have, and may not.
fn by_runtime(rows: &[&Field]) -> Value {
    let of = |row: &&&Field| match row.of {
        Of::Runtime(kind) => Some(kind),
        Of::Every | Of::Kinds(_) => None,
    };
    let Some(kinds) = rows.iter().find(|row| row.key() == "kind").and_then(|row| choices(row)) else {
        return json!([]);
    };
    let rule = |kind: &&str| {
        let own = rows.iter().filter(|row| of(row) == Some(*kind) && row.need == Need::Required);
        let foreign = rows.iter().filter(|row| of(row).is_some_and(|other| other != *kind));
        when(kind, needs(own.map(|row| row.key()), foreign.map(|row| row.key())))
    };
    kinds.iter().map(rule).collect()
}

/// What a playbook of each kind must have, and may not, in each of its groups.
fn by_kind() -> Vec<Value> {
    let Some(kinds) = children(None).find(|row| row.key() == "kind").and_then(choices) else { return Vec::new() };
    let groups = || [None].into_iter().chain(FIELDS.iter().map(Some));
    let rule = |kind: &&str| {
        let needs: Vec<_> = groups().filter_map(|group| group_by_kind(group, kind)).collect();
        when(kind, json!({ "allOf": needs }))
    };
    kinds.iter().map(rule).collect()
}

fn group_by_kind(group: Option<&Field>, kind: &str) -> Option<Value> {
    let differs = |row: &&Field| matches!(row.of, Of::Kinds(_)) || matches!(row.need, Need::For(_));
    let rows: Vec<_> = children(group.map(|field| field.path)).filter(differs).collect();
    let (either, own): (Vec<&&Field>, Vec<&&Field>) =
        rows.iter().filter(|row| row.is_required_for(kind)).partition(|row| matches!(row.need, Need::Unless(_)));
    let foreign = rows.iter().filter(|row| matches!(row.of, Of::Kinds(kinds) if !kinds.contains(&kind)));
    let schema = needs(own.into_iter().map(|row: &&Field| row.key()), foreign.map(|row| row.key()));
    let schema = either.into_iter().fold(schema, |schema, row| merged(schema, one_of_both(row)));
    (!rows.is_empty()).then(|| group.map_or(schema.clone(), |field| at(field, schema)))
}

/// One stands, or the other.
fn one_of_both(row: &Field) -> Value {
    match row.need {
        Need::Unless(other) => json!({ "anyOf": [{ "required": [row.key()] }, { "required": [other] }] }),
        _ => json!({}),
    }
}

/// A schema of the whole for what stands in a group.
fn at(group: &Field, schema: Value) -> Value {
    let schema = if matches!(group.shape, Shape::Groups(_)) { json!({ "items": schema }) } else { schema };
    group.path.rsplit('.').fold(schema, |schema, key| match key.strip_suffix("[]") {
        Some(key) => json!({ "properties": { (key): { "items": schema } } }),
        None => json!({ "properties": { (key): schema } }),
    })
}

fn needs<'a>(own: impl Iterator<Item = &'a str>, foreign: impl Iterator<Item = &'a str>) -> Value {
    let forbidden: Map<_, _> = foreign.map(|key| (key.to_owned(), Value::Bool(false))).collect();
    json!({ "required": own.collect::<Vec<_>>(), "properties": forbidden })
}

fn when(kind: &str, then: Value) -> Value {
    json!({ "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] }, "then": then })
}

fn choices(field: &Field) -> Option<&'static [&'static str]> {
    match field.shape {
        Shape::Choice(words) => Some(words),
        _ => None,
    }
}

/// YAML as it stands in the table; a test reads every row of it.
fn value(yaml: &str) -> Value {
    serde_yaml::from_str(yaml).unwrap_or_default()
}

fn entries(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        _ => Map::new(),
    }
}

fn merged(one: Value, other: Value) -> Value {
    entries(one).into_iter().chain(entries(other)).collect::<Map<_, _>>().into()
}
