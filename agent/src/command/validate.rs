//! `agent validate`: the playbook in its normal form without its secrets, or what is wrong with it. Asks nobody, touches nothing.

use std::path::Path;

use super::Outcome;
use crate::{
    event::trouble::Trouble,
    playbook::Playbook,
    report::{
        file::json::Facts,
        stop::{Reason, Stop},
    },
};

const LEFT_OUT: &str = "# Values of `env` and queries of URLs are left out: this is not the playbook itself.\n";

/// Reads the playbook.
///
/// # Errors
/// The playbook's mistake.
pub fn validate(path: &Path) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(path)?;
    let text = playbook.to_yaml().map_err(|error| Trouble::Playbook(format!("{}: {error}", path.display())))?;
    let text = if playbook.has_secrets() { format!("{LEFT_OUT}{text}") } else { text };
    let (from, to) =
        playbook.kind.hops().map(|hops| (hops.first().from.to_string(), hops.last().to.to_string())).unzip();
    let mut facts = Facts { from, to, ..Facts::default() };
    facts.more.insert("playbook".into(), serde_json::to_value(&playbook).unwrap_or_default());
    let message = format!("{} is right; nothing was asked or touched", path.display());
    Ok(Outcome { stop: Stop::well(Reason::Valid, message, "plan", path), facts, text })
}
