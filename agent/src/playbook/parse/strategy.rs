//! `strategy`: how a rollout proceeds.

use std::{collections::BTreeSet, path::Path, time::Duration};

use super::value;
use crate::{
    hazards,
    playbook::{
        fault::Fault,
        fields::Fields,
        model::{Finalize, OnFailure, Order, Strategy},
        template::Name,
        tree::Tree,
        window::{self, Window},
    },
};

const KEYS: [&str; 15] = [
    "order",
    "soak",
    "health",
    "convergence",
    "stall_timeout",
    "join_window",
    "finalize",
    "on_failure",
    "allow_degraded",
    "allow_downtime",
    "max_learners",
    "probe",
    "window",
    "canary",
    "accept_hazards",
];

/// Relative paths start at `folder`; these templates may stand in argv lists.
pub(super) fn strategy(tree: &Tree, folder: &Path, templates: &[Name]) -> Result<Strategy, Fault> {
    let fields = Fields::of(tree, "`strategy`", &KEYS)?;
    let default = Strategy::default();
    let finalize = [("auto", Finalize::Auto), ("manual", Finalize::Manual)];
    let on_failure = [("rollback", OnFailure::Rollback), ("stop", OnFailure::Stop)];
    Ok(Strategy {
        order: fields.or("order", default.order, |tree| tree.choice(&[("leader_last", Order::LeaderLast)]))?,
        soak: fields.or("soak", default.soak, value::duration)?,
        health: fields.or("health", default.health, |tree| timeout(tree, "`strategy.health`"))?,
        convergence: fields.or("convergence", default.convergence, |tree| timeout(tree, "`strategy.convergence`"))?,
        stall_timeout: fields.or("stall_timeout", default.stall_timeout, value::deadline)?,
        join_window: fields.or("join_window", default.join_window, value::duration)?,
        finalize: fields.or("finalize", default.finalize, |tree| tree.choice(&finalize))?,
        on_failure: fields.or("on_failure", default.on_failure, |tree| tree.choice(&on_failure))?,
        allow_degraded: fields.or("allow_degraded", default.allow_degraded, Tree::bool)?,
        allow_downtime: fields.or("allow_downtime", default.allow_downtime, Tree::bool)?,
        max_learners: fields.or("max_learners", default.max_learners, |tree| value::count(tree, 9))?,
        probe: fields.or("probe", None, |tree| value::argv(tree, folder, templates).map(Some))?,
        window: fields.or("window", None, |tree| window(tree).map(Some))?,
        canary: fields.or("canary", default.canary, Tree::bool)?,
        accept_hazards: fields.or("accept_hazards", default.accept_hazards, accept_hazards)?,
    })
}

fn window(tree: &Tree) -> Result<Window, Fault> {
    let text = tree.text(window::EXPECTED)?;
    Window::parse(text).map_err(|problem| tree.fault(problem, window::EXPECTED))
}

/// Ids of hazards for which a run is refused, and which a person may know to be none here.
fn accept_hazards(tree: &Tree) -> Result<BTreeSet<String>, Fault> {
    let expected = "a list of hazards' ids, such as `[floor-36]`; `agent hazards` lists them";
    tree.list(expected)?.iter().map(|item| accepted(item, expected)).collect()
}

fn accepted(tree: &Tree, expected: &str) -> Result<String, Fault> {
    let id = tree.text(expected)?;
    let wanted = "one for which a run is refused, and that may do no harm here";
    let expected = if hazards::find(id).is_some() { wanted } else { expected };
    hazards::acceptable(id).map(|hazard| hazard.id.to_owned()).map_err(|problem| tree.fault(problem, expected))
}

/// `{ timeout: 2m }`
fn timeout(tree: &Tree, name: &'static str) -> Result<Duration, Fault> {
    value::deadline(Fields::of(tree, name, &["timeout"])?.need("timeout", "`{ timeout: 2m }`")?)
}
