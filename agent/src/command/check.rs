//! `agent check`: whether a live cluster may go to a release, without a playbook. Touches nothing.

use std::collections::BTreeMap;

use super::{
    Outcome, init,
    look::{Downgrade, Prober},
    reach,
};
use crate::{
    cli,
    event::trouble::Trouble,
    host::files::room,
    plan::way::{Path, Way},
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
    let unusable = |why: &str| Trouble::Usage(format!("--dir {}: {why}", folder.display()));
    if !folder.is_dir() {
        return Err(unusable("expected a folder"));
    }
    let free = room::free(&folder).map_err(|error| unusable(&with_causes(&error)))?;
    let path = Path::new(typed.via.clone(), typed.to.clone()).map_err(|error| {
        Trouble::Usage(format!("--via: {error}; expected the releases in the order in which members get to them"))
    })?;
    let cluster = reach::cluster(&typed.endpoints, &typed.reach)?;
    // What was typed is named as it was typed.
    init::observer(&cluster).map(drop)?;
    let prober = Prober::open(&cluster)?;
    let observer = prober.observer();
    let view = observer.look().await?;
    let evidence = observer.examine_and_compare(&view, playbook::Verify::default().max_db).await;
    let (others, differences) = (&evidence.others, &evidence.differences[..]);
    let mut way = Way { view: &view, others, told: &BTreeMap::new(), differences, path: &path };
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
        obstacles: obstacles(typed, &way, &prober).await,
        accepted: typed.accepting.ids(),
        databases,
        way,
    };
    Ok(told_of(&checked))
}

/// What stands in the way of any release: a sentence each.
async fn obstacles(typed: &cli::Check, way: &Way<'_>, prober: &Prober) -> Vec<String> {
    let view = way.view;
    let names = Names::of(view);
    let mut found: Vec<_> = way.too_far().into_iter().collect();
    let downgrade = match view.downgrade() {
        Some(version) => Downgrade::To(version),
        None => prober.downgrade(view).await,
    };
    match downgrade {
        Downgrade::None => {}
        Downgrade::To(version) => {
            found.push(format!(
                "a downgrade to {version} is enabled: let it end, or cancel it by `etcdctl downgrade cancel`"
            ));
        }
        Downgrade::NotReported => found.push("the leader does not say whether a downgrade is enabled".to_owned()),
    }
    for member in &view.members {
        let name = names.member(member.id);
        if let Some(trouble) = member.trouble() {
            found.push(format!("{name} is not ready: {trouble}"));
        }
        let expected =
            |release: &&proto::Release| typed.from.iter().chain(way.path.releases()).any(|one| one == *release);
        if let (Some(from), Some(release)) = (&typed.from, member.release().filter(|release| !expected(release))) {
            found.push(format!("{name} runs {release}, and not {from}"));
        }
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
            (Reason::Clear, format!("nothing that is known stands in the way to {}{but}", checked.way.path.to), None)
        }
        ([], None) => (
            Reason::Hazard,
            format!(
                "whether {} may be run next is not known: the database of {} was not read",
                checked.way.path.to,
                not_read.join(", ")
            ),
            None,
        ),
        ([first, ..], _) => (
            Reason::Hazard,
            format!("{} stands in the way to {}", refused.join(", "), checked.way.path.to),
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
