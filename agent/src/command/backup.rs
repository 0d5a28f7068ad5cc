//! `agent backup`: the database of the member that has most, in a file. Touches no member.

use std::sync::atomic::AtomicU8;

use serde_json::json;

use super::{Outcome, ask::no_signals};
use crate::{
    cli,
    event::trouble::Trouble,
    execute::{
        backup::{NotTaken, Taken, beside_the_data, take},
        interrupt::Interrupt,
    },
    observe::database::Saved,
    playbook::{Backup, Playbook},
    report::{
        file::json::Facts,
        stop::{Reason, Stop},
    },
};

/// Saves one member's database; of those that fail the next one is tried.
///
/// # Errors
/// No folder is named, or it cannot be written to, or no member could be read to its end: then no file is left.
pub(super) async fn backup(typed: &cli::Backup) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let known = playbook.backup.as_ref();
    let Some(dir) = typed.dir.as_ref().or(known.map(|backup| &backup.dir)) else {
        return Err(Trouble::Usage(
            "no folder to write to: expected --dir DIR, or `backup: { dir: … }` in the playbook".into(),
        ));
    };
    let keep = typed.keep.or(known.and_then(|backup| backup.keep));
    let to = Backup { dir: dir.clone(), keep };
    let interrupt = Interrupt::install().map_err(no_signals)?;
    let percent = AtomicU8::new(0);
    let taken = tokio::select! {
        taken = take(&playbook.cluster, &to, &percent) => taken,
        // What was written of it goes as it is dropped.
        () = interrupt.asked(1) => return Err(Trouble::Interrupted),
    };
    match taken {
        Ok(taken) => Ok(told(taken, beside_the_data(&playbook, dir))),
        Err(why @ NotTaken::NoRoom { .. }) => Ok(no_room(why.to_string())),
        Err(why @ NotTaken::Folder { .. }) if typed.dir.is_some() => Err(Trouble::Usage(format!("--dir {why}"))),
        Err(why @ NotTaken::Folder { .. }) => Err(Trouble::Usage(format!("backup.dir {why}"))),
        Err(why @ NotTaken::Unwritable { .. }) => Err(Trouble::System(why.to_string())),
        Err(NotTaken::Observe(error)) => Err(error.into()),
        Err(why @ NotTaken::NoMember(_)) => Err(Trouble::no_answer(why.to_string())),
    }
}

fn told(taken: Taken, beside: Option<String>) -> Outcome {
    let Taken { member, names, path, saved: Saved { bytes, revision, sha256 }, removed, newer } = taken;
    let member = names.short(member);
    let of = revision.map_or_else(String::new, |revision| format!(" at revision {revision}"));
    let message = format!("the database of {member}{of} is saved as {}", path.display());
    let mut text = format!("{message} ({} MB)\n", bytes / 1_000_000);
    removed.iter().for_each(|name| text += &format!("removed: {name}\n"));
    let newer = newer.iter().map(|name| format!("{name} is of a time that is to come: it is left, and not counted"));
    let mut facts = Facts { warnings: beside.into_iter().chain(newer).collect(), ..Facts::default() };
    facts.more.insert(
        "backup".into(),
        json!({ "file": path.to_string_lossy(), "bytes": bytes, "member": member, "revision": revision.map(|at| at.0), "sha256": sha256, "removed": removed }),
    );
    Outcome { stop: stop(Reason::BackedUp, message, None), facts, text }
}

fn no_room(message: String) -> Outcome {
    let next = Some("make room there, or name another folder with --dir".to_owned());
    Outcome { stop: stop(Reason::NoRoom, message, next), facts: Facts::default(), text: String::new() }
}

fn stop(reason: Reason, message: String, next: Option<String>) -> Stop {
    let left = if reason == Reason::NoRoom { "nothing was written" } else { "" };
    Stop { exit: reason.exit().code(false), reason, message, left: left.into(), next, cluster: None }
}
