//! `agent explain` and `agent schema`: what a playbook may say. Ask nobody, touch nothing.

use super::{Outcome, shown};
use crate::{
    cli,
    event::trouble::Trouble,
    playbook::reference::{self, FIELDS},
    report::shown::explain,
};

/// Explains a field with all below it, or lists every field.
///
/// # Errors
/// There is no such field.
pub fn explain(typed: &cli::Explain) -> Result<Outcome, Trouble> {
    let Some(field) = &typed.field else {
        return Ok(shown(explain::lines(FIELDS), "fields", explain::objects(FIELDS)));
    };
    let found = reference::find(field).map_err(|error| Trouble::Usage(error.to_string()))?;
    let text = explain::whole(found[0], &found[1..]);
    Ok(shown(text, "fields", explain::objects(found)))
}

pub fn schema() -> Outcome {
    let schema = reference::schema();
    shown(format!("{schema:#}\n"), "schema", schema)
}
