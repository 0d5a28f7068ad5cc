//! `agent validate`: the playbook in its normal form, or what is wrong with it. Asks nobody, touches nothing.

use std::path::Path;

use super::Outcome;
use crate::{
    playbook::Playbook,
    report::{
        json::Facts,
        stop::{Reason, Stop},
        trouble::Trouble,
    },
};

/// Reads the playbook.
///
/// # Errors
/// The playbook's mistake.
pub fn validate(path: &Path) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(path)?;
    let text = playbook.to_yaml().map_err(|error| Trouble::Playbook(format!("{}: {error}", path.display())))?;
    let (from, to) = playbook.kind.releases().map(|(from, to, _)| (from.to_string(), to.to_string())).unzip();
    let mut facts = Facts { from, to, ..Facts::default() };
    facts.more.insert("playbook".into(), serde_json::to_value(&playbook).unwrap_or_default());
    let message = format!("{} is right; nothing was asked or touched", path.display());
    Ok(Outcome { stop: Stop::well(Reason::Valid, message, "plan", path), facts, text })
}
