//! Whether a document is as a JSON Schema says, of draft 2020-12.

use serde_json::Value;

#[derive(Debug)]
pub struct Schema(jsonschema::Validator);

impl Schema {
    /// # Errors
    /// It is no schema of that draft.
    pub fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::draft202012::meta::validate(schema).map_err(|error| error.to_string())?;
        jsonschema::draft202012::new(schema).map(Self).map_err(|error| error.to_string())
    }

    /// What is wrong with a document, each fault with its place; empty where nothing is.
    pub fn faults(&self, document: &Value) -> Vec<String> {
        self.0.iter_errors(document).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
    }
}
