//! `agent init --print-role`: which users and roles Baton wants of etcd. Asks nobody without `--endpoints`, and then for
//! releases alone, by `GET /version`, which needs no user.

use super::{Outcome, shown};
use crate::{
    cli,
    event::trouble::Trouble,
    report::shown::grants::{self, Asked},
};

/// Prints what is to be typed.
///
/// # Errors
/// None of the endpoints says what it runs.
pub async fn print_role(typed: &cli::Init) -> Result<Outcome, Trouble> {
    let mut found = Vec::new();
    let cluster = super::reach::cluster(&typed.endpoints, &typed.reach)?;
    if !typed.endpoints.is_empty() {
        found = super::init::observer(&cluster)?.releases().await;
        if found.is_empty() {
            let asked = typed.endpoints.join(", ");
            return Err(Trouble::Unreachable(format!("nobody says which release runs at {asked}")));
        }
    }
    let asked = Asked { endpoints: &cluster.endpoints, tls: cluster.tls.as_ref(), found: &found };
    let text = grants::text(&asked);
    let mut outcome = shown(text.clone(), "text", text.into());
    outcome.facts.more.insert("roles".into(), grants::object(&asked));
    Ok(outcome)
}
