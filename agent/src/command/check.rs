//! `agent check`: whether a live cluster may go to a release, without a playbook. Touches nothing.

use std::collections::BTreeMap;

use super::{Outcome, init, reach};
use crate::{
    cli,
    event::trouble::Trouble,
    host::files::room,
    observe::{Hashes, Observer, view::ClusterView},
    plan::way::Way,
    playbook,
    report::{
        file::json::Facts,
        names::Names,
        shown::check::{Checked, Database},
        stop::{Reason, Stop},
    },
    words::with_causes,
};

/// Looks at every member, and reads their databases where those may show something that matters.
///
/// # Errors
/// What was typed makes no sense, or the cluster cannot be looked at.
pub(super) async fn check(typed: &cli::Check) -> Result<Outcome, Trouble> {
    let folder = typed.dir.clone().unwrap_or_else(std::env::temp_dir);
    let free = room::free(&folder)
        .map_err(|error| Trouble::Usage(format!("--dir {}: {}", folder.display(), with_causes(&error))))?;
    let cluster = reach::cluster(&typed.endpoints, &typed.reach)?;
    let observer = init::observer(&cluster)?;
    let view = observer.look().await?;
    let evidence = observer.examine(&view).await;
    let mut way = Way { view: &view, etcd: &evidence.etcd, told: &BTreeMap::new(), to: &typed.to };
    let mut databases: BTreeMap<_, _> = view.members.iter().map(|member| (member.id, Database::NotAsked)).collect();
    let mut told = BTreeMap::new();
    // One after the other: each reads a member's whole disk.
    for member in way.to_be_read() {
        let database = match observer.database(member.id, &folder, free).await {
            Ok(read) => {
                told.insert(member.id, read);
                Database::Read
            }
            Err(why) => Database::NotRead(why.to_string()),
        };
        databases.insert(member.id, database);
    }
    way.told = &told;
    let checked = Checked {
        names: Names::of(&view),
        findings: way.findings(),
        obstacles: obstacles(typed, &view, &observer).await,
        accepted: typed.accepting.ids(),
        databases,
        way,
    };
    Ok(told_of(&checked))
}

/// What stands in the way of any release: a sentence each.
async fn obstacles(typed: &cli::Check, view: &ClusterView, observer: &Observer) -> Vec<String> {
    let names = Names::of(view);
    let mut found = Vec::new();
    for member in &view.members {
        let name = names.member(member.id);
        if let Some(trouble) = member.trouble() {
            found.push(format!("{name} is not ready: {trouble}"));
        }
        let other =
            |from: &&proto::Release| member.release().is_some_and(|release| release != *from && *release != typed.to);
        if let (Some(from), Some(release)) = (typed.from.as_ref().filter(other), member.release()) {
            found.push(format!("{name} runs {release}, and not {from}"));
        }
    }
    // A comparison needs everybody.
    if found.is_empty()
        && let Hashes::Different { revision, .. } = observer.hashes(view, playbook::Verify::default().max_db).await
    {
        found.push(format!("the members' data differ at revision {revision}: `etcdctl endpoint hashkv` shows whose"));
    }
    found
}

fn told_of(checked: &Checked) -> Outcome {
    let refused = checked.refused();
    let not_read = checked.not_read();
    let (reason, message, next) = match (&refused[..], checked.obstacles.first()) {
        ([], None) if not_read.is_empty() => {
            let passed = checked.passed();
            let but = if passed.is_empty() { String::new() } else { format!(", but for {}", passed.join(", ")) };
            (Reason::Clear, format!("nothing that is known stands in the way to {}{but}", checked.way.to), None)
        }
        ([], None) => (
            Reason::Hazard,
            format!(
                "whether {} may be run next is not known: the database of {} was not read",
                checked.way.to,
                not_read.join(", ")
            ),
            None,
        ),
        ([first, ..], _) => (
            Reason::Hazard,
            format!("{} stands in the way to {}", refused.join(", "), checked.way.to),
            Some(format!("agent hazards --explain {first}")),
        ),
        ([], Some(first)) => (Reason::Hazard, first.clone(), None),
    };
    let left = "nothing was touched".into();
    let mut facts = Facts::default();
    facts.more.insert("check".into(), checked.object());
    let stop = Stop { exit: reason.exit().code(false), reason, message, left, next, cluster: None };
    Outcome { stop, facts, text: checked.text() }
}
