//! `agent hazards`: what is known to hurt on the way from one release of etcd to another. Asks nobody, touches nothing.

use super::{Outcome, shown};
use crate::{
    cli,
    event::trouble::Trouble,
    hazards::{self, Hazard},
    playbook::fields::nearest,
    report::{Form, shown::hazards as shown_hazards},
};

/// Lists what the releases let happen, or says all there is of one.
///
/// # Errors
/// There is none of this id.
pub fn hazards(typed: &cli::Hazards, form: Form) -> Result<Outcome, Trouble> {
    let found: Vec<&Hazard> = match &typed.explain {
        Some(id) => vec![hazards::find(id).ok_or_else(|| unknown(id))?],
        None => hazards::all().filter(|hazard| hazard.concerns(typed.from.as_ref(), typed.to.as_ref())).collect(),
    };
    let text = match (form, &typed.explain) {
        (Form::Osv, _) => format!("{:#}\n", shown_hazards::osv(&found)),
        (_, Some(_)) => found.iter().map(|hazard| shown_hazards::whole(hazard)).collect(),
        (_, None) => shown_hazards::lines(&found),
    };
    Ok(shown(text, "hazards", shown_hazards::objects(&found)))
}

fn unknown(id: &str) -> Trouble {
    let known: Vec<_> = hazards::all().map(|hazard| hazard.id).collect();
    let near = nearest(id, &known).map_or_else(String::new, |near| format!("; perhaps `{near}` is meant"));
    Trouble::Usage(format!("there is no hazard `{id}`{near}; `agent hazards` lists all of them"))
}
