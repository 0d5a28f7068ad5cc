//! `agent verify`: whether the cluster is what the playbook expects; made for a unit's `ExecStartPre=`. Touches nothing.

use std::{collections::BTreeSet, fs, io, path::Path, time::Duration};

use proto::MemberId;
use serde_json::json;
use tokio::time::timeout;

use super::Outcome;
use crate::{
    cli,
    event::trouble::Trouble,
    host::files::room,
    observe::{Observer, database, peers::PeerUrls, view::Report},
    plan::expected_members::{Difference, differences},
    playbook::Playbook,
    report::{
        file::json::Facts,
        names::printable,
        stop::{Reason, Stop},
    },
};

/// A member that waits for this is down: nobody waits longer for those that may be down, too.
const LIMIT: Duration = Duration::from_secs(5);
/// One part of so many is asked for beside the database, at least, which may grow until it is written down.
const SPARE: u64 = 10;

/// Compares the members with those that are expected.
///
/// # Errors
/// The playbook expects nothing; or nobody answers, where an answer is required. What is no answer: a refusal of the user, or of a
/// certificate.
pub(super) async fn membership(typed: &cli::Membership) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let expected = &playbook.expect_members;
    if expected.is_empty() && !typed.print {
        let example = "expected `expect_members: { 8e9e05c52164694d: [\"http://10.0.0.1:2380\"] }`, as `etcdctl member list` shows them";
        return Err(Trouble::Playbook(format!("{}: no `expect_members`; {example}", typed.playbook.display())));
    }
    let observer = Observer::connect(&playbook.cluster)?;
    let asked = timeout(LIMIT, observer.peer_urls()).await;
    let late = || Trouble::Unreachable(format!("no answer from a quorum within {} s", LIMIT.as_secs()));
    match asked.map_err(|_| late()).and_then(|asked| asked.map_err(Trouble::from)) {
        Ok(found) if typed.print => Ok(printed(&found)),
        Ok(found) => Ok(compared(expected, &found)),
        Err(Trouble::Unreachable(why) | Trouble::NoAnswer(why)) if !typed.require_answer && !typed.print => {
            Ok(unknown(&why))
        }
        Err(trouble) => Err(trouble),
    }
}

/// Holds the room in a folder against the largest database that a member says it has.
///
/// # Errors
/// Nobody answers, or the folder cannot be looked at.
pub(super) async fn storage(typed: &cli::Storage) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let dir = typed.dir.display();
    let failed = |error: io::Error| Trouble::Usage(format!("--dir {dir}: {error}"));
    if !fs::metadata(&typed.dir).map_err(failed)?.is_dir() {
        return Err(Trouble::Usage(format!("--dir {dir}: expected a folder")));
    }
    let free = room::free(&typed.dir).map_err(failed)?;
    let view = Observer::connect(&playbook.cluster)?.probe().await?;
    let bytes = |report: &Report| u64::try_from(report.db_bytes).unwrap_or_default();
    let Some(largest) = view.reports().map(bytes).max() else {
        return Err(Trouble::NoAnswer("no member says how large its database is".to_owned()));
    };
    Ok(room_for(&typed.dir, free, largest))
}

fn room_for(dir: &Path, free: u64, largest: u64) -> Outcome {
    let wanted = largest.saturating_add(largest / SPARE).max(database::room_for(largest));
    let (reason, has) = if free < wanted { (Reason::NoRoom, "too little") } else { (Reason::Room, "enough") };
    let megabytes = |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10);
    let message = format!(
        "{} has {} free, {has} for a backup of {} (the largest member's database, and some more)",
        dir.display(),
        megabytes(free),
        megabytes(wanted)
    );
    let mut facts = Facts::default();
    facts
        .more
        .insert("storage".into(), json!({ "free_bytes": free, "database_bytes": largest, "wanted_bytes": wanted }));
    let next = (reason == Reason::NoRoom).then(|| "make room there, or name another folder with --dir".to_owned());
    let text = message.clone() + "\n";
    Outcome { stop: stop(reason, message, next), facts, text }
}

/// A block of YAML: each change of the members brings a new one (L-13).
fn printed(found: &PeerUrls) -> Outcome {
    let line = |(member, urls): (&MemberId, &BTreeSet<String>)| format!("  \"{member}\": {}\n", json!(urls));
    let text = format!("expect_members:\n{}", found.iter().map(line).collect::<String>());
    let mut facts = Facts::default();
    facts.more.insert("found".into(), json!(found));
    Outcome { stop: stop(Reason::Shown, format!("{} members are listed", found.len()), None), facts, text }
}

fn compared(expected: &PeerUrls, found: &PeerUrls) -> Outcome {
    let differing = differences(expected, found);
    let (reason, message) = match differing.len() {
        0 => (Reason::MembersAsExpected, format!("all {} members are as the playbook expects", expected.len())),
        1 => (Reason::MembersDiffer, "one member is not as the playbook expects".to_owned()),
        number => (Reason::MembersDiffer, format!("{number} members are not as the playbook expects")),
    };
    let text = match differing.is_empty() {
        true => message.clone() + "\n",
        false => differing.iter().map(|difference| line(difference) + "\n").collect(),
    };
    let mut facts = Facts::default();
    facts.more.insert("expected".into(), json!(expected));
    facts.more.insert("found".into(), json!(found));
    facts.more.insert("differences".into(), json!(differing));
    let next = (!differing.is_empty()).then(|| {
        "correct expect_members (`agent verify membership --print` shows it as it is), or the membership (etcdctl member)"
            .to_owned()
    });
    Outcome { stop: stop(reason, message, next), facts, text }
}

fn unknown(why: &str) -> Outcome {
    let message = "nobody answered, so no member is known to differ".to_owned();
    let warning = format!("the members were not compared: {}", printable(why));
    let facts = Facts { warnings: vec![warning], ..Facts::default() };
    Outcome { stop: stop(Reason::MembersUnknown, message, None), facts, text: String::new() }
}

fn stop(reason: Reason, message: String, next: Option<String>) -> Stop {
    Stop { exit: reason.exit().code(false), reason, message, left: "nothing was touched".into(), next, cluster: None }
}

fn line(difference: &Difference) -> String {
    let list = |urls: &[String]| printable(&urls.join(","));
    let id = difference.member();
    match difference {
        Difference::Missing { expected, .. } => format!("{id}: expected at {}, and no member", list(expected)),
        Difference::Unexpected { found, .. } => format!("{id}: a member at {}, and not expected", list(found)),
        Difference::Elsewhere { expected, found, .. } => {
            format!("{id}: expected at {}, and a member at {}", list(expected), list(found))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_wants_room_for_the_largest_database_and_a_tenth() {
        let small = 16 << 20;
        for (free, largest, exit) in [
            (1_100_000_000, 1_000_000_000, 0),
            (1_099_999_999, 1_000_000_000, 3),
            (small, 0, 0), // a backup itself wants no less
            (small + 99, 100, 3),
            (u64::MAX, u64::MAX, 0),
            (5, u64::MAX, 3),
        ] {
            let Outcome { stop, text, .. } = room_for(Path::new("/backup"), free, largest);
            assert_eq!((stop.exit, stop.next.is_some()), (exit, exit == 3), "{text}");
        }
        let Outcome { text, .. } = room_for(Path::new("/backup"), 12_345_678, 2_000_000_000);
        let expected = "/backup has 12.3 MB free, too little for a backup of 2200.0 MB (the largest member's database, and some more)\n";
        assert_eq!(text, expected);
    }
}
