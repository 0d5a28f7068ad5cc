//! `agent restore`: this host's members made anew from a saved file; on every host, at once or one after the other.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{
    Outcome,
    ask::{is_person, is_yes, no_signals},
    trusted_playbook,
};
use crate::{
    cli::{self, Output},
    event::trouble::Trouble,
    execute::{
        interrupt::Interrupt,
        restore::{self, Came, GivenUp, NotRestored, Order, Ready, Refused, Restored},
    },
    host::files::state_dir::StateDirError,
    report::{
        file::json::Facts,
        stop::{Reason, Stop},
    },
    visible,
    words::{typed as word, with_causes},
};

/// As many as etcd's own guide leaves out ("Disaster recovery").
const BUMP: u64 = 1_000_000_000;

/// Restores, or says what it would do.
///
/// # Errors
/// The file, this host or the cluster stands in the way; or a member did not come back.
pub(super) async fn restore(typed: &cli::Restore, output: Output) -> Result<Outcome, Trouble> {
    let playbook = trusted_playbook::load(&typed.playbook)?;
    if typed.give_up {
        let given_up = restore::give_up(&playbook).await.map_err(trouble)?;
        return Ok(ended_by_hand(&given_up, &typed.playbook));
    }
    let said = playbook.restore.as_ref().and_then(|restore| restore.bump_revision).map(|bump| bump as u64);
    let order = Order {
        from: std::path::absolute(&typed.from).unwrap_or_else(|_| typed.from.clone()),
        release: typed.release.clone(),
        bump: typed.bump_revision.or(said).unwrap_or(BUMP),
        discard: typed.discard_cluster,
        again: typed.again.clone(),
    };
    let interrupt = Interrupt::install().map_err(no_signals)?;
    let ready = tokio::select! {
        ready = Ready::look(&playbook, &order) => ready.map_err(trouble)?,
        () = interrupt.asked(1) => return Err(Trouble::Interrupted),
    };
    let foreseen = foreseen(&ready, &order);
    if typed.check {
        let next = format!("agent restore {}{}", word(&typed.playbook.to_string_lossy()), typed.words());
        let stop =
            Stop { next: Some(next), ..Stop::well(Reason::Planned, "nothing was touched".into(), "", &typed.playbook) };
        return Ok(Outcome { stop, facts: facts(&ready, &Restored::default()), text: foreseen });
    }
    if !typed.yes && output == Output::Text && is_person() {
        let question = format!("{foreseen}\nTake down the members of this host, and go on?");
        if !is_yes(&question, &interrupt).await? {
            return Err(Trouble::NotConfirmed);
        }
    }
    let mut facts = facts(&ready, &Restored::default());
    let founders: Vec<_> = ready.founders().keys().cloned().collect();
    let mut say = |line: &str| eprintln!("{}", visible::line(line));
    let (restored, came) = ready.restore(&playbook, &interrupt, &mut say).await.map_err(trouble)?;
    note(&mut facts, &restored);
    let stop = ended(&came, &restored, &founders, typed);
    Ok(Outcome { text: crate::report::live::text::end(&stop), stop, facts })
}

/// What is to be done, for a person.
fn foreseen(ready: &Ready, order: &Order) -> String {
    let mut text = format!("from  {}", order.from.display());
    if let Some(revision) = ready.revision() {
        text += &format!(", at revision {}", revision.0);
    }
    let watchers = match order.bump {
        0 => "no revision is left out: watchers may not notice that time went back".to_owned(),
        bump => format!("{bump} revisions are left out, by which watchers notice that time went back"),
    };
    text += &format!("\n      {watchers}\n");
    let founders: Vec<_> = ready
        .founders()
        .iter()
        .map(|(name, urls)| format!("{name} ({})", urls.iter().cloned().collect::<Vec<_>>().join(", ")))
        .collect();
    text += &format!("to    a new cluster of {}\n", founders.join(", "));
    if let Some(replaced) = ready.replaces() {
        text += &format!("      it replaces cluster {replaced}, whose data is put aside\n");
    }
    for (name, tool, release) in ready.members() {
        text += &match ready.is_placed() {
            true => format!("{name}  has the new data\n"),
            false => {
                format!("{name}  its data is made by {}; it is stopped, and started as {release}\n", tool.display())
            }
        };
    }
    text
}

fn facts(ready: &Ready, restored: &Restored) -> Facts {
    let mut facts = Facts::default();
    let members: Vec<_> =
        ready.founders().iter().map(|(name, urls)| json!({ "name": name, "peer_urls": urls })).collect();
    let own: Vec<_> = ready.members().map(|(name, ..)| name).collect();
    let replaces = ready.replaces().map(|cluster| cluster.to_string());
    let of = ready.revision().map(|revision| revision.0);
    facts.more.insert(
        "restore".into(),
        json!({ "revision": of, "voters": members, "own": own, "replaces": replaces, "cluster": null, "archived": {} }),
    );
    note(&mut facts, restored);
    facts
}

fn note(facts: &mut Facts, restored: &Restored) {
    facts.changed = restored.changed;
    facts.warnings.clone_from(&restored.warnings);
    let Some(told) = facts.more.get_mut("restore") else { return };
    if restored.cluster != proto::ClusterId::default() {
        told["cluster"] = restored.cluster.to_string().into();
    }
    for (name, path) in &restored.aside {
        told["archived"][name] = path.to_string_lossy().into();
    }
}

fn ended(came: &Came, restored: &Restored, founders: &[String], typed: &cli::Restore) -> Stop {
    let cluster = restored.cluster;
    let again = format!("agent restore {}{}", word(&typed.playbook.to_string_lossy()), typed.words());
    let (reason, message, next) = match came {
        Came::All => {
            let message =
                format!("every member of the new cluster is ready: {}, cluster {cluster}", founders.join(", "));
            (Reason::Restored, message, None)
        }
        Came::Most(missing) => {
            let message = format!("cluster {cluster} serves; not ready yet: {}", missing.join(", "));
            (Reason::Partial, message, Some("the same command on the hosts that are left".to_owned()))
        }
        Came::Few { missing, known } if missing.is_empty() => {
            let known: String = known.iter().map(|known| format!("; {known}")).collect();
            let message = format!("this host's part of cluster {cluster} is done, and it was not seen to serve{known}");
            (Reason::Partial, message, None)
        }
        Came::Few { missing, known } => {
            let known: String = known.iter().map(|known| format!("; {known}")).collect();
            let message = format!(
                "this host's part of cluster {cluster} is done, and it serves once a majority is: {}; hosts that print another cluster \
                 than {cluster} were not given the same file, --bump-revision and --again{known}",
                missing.join(", ")
            );
            (Reason::Partial, message, Some("the same command on the hosts that are left".to_owned()))
        }
        Came::Interrupted => {
            let message = format!(
                "a signal asked for an end; this host's members have their new data, of cluster {cluster}, and were started"
            );
            (Reason::Interrupted, message, Some(again))
        }
    };
    let stop = Stop::well(reason, message, "status", Path::new(&typed.playbook));
    Stop { left: put_aside(&restored.aside), next: next.or(stop.next), ..stop }
}

/// Where each member's old data is.
fn put_aside(aside: &[(String, PathBuf)]) -> String {
    let aside = aside.iter().map(|(name, path)| format!("the old data of {name} is {}", path.display()));
    aside.collect::<Vec<_>>().join("; ")
}

fn ended_by_hand(given_up: &GivenUp, playbook: &Path) -> Outcome {
    let GivenUp { cluster, aside, has_release } = given_up;
    let release = match has_release {
        true => "; see that `binary` leads to the release that this data is of",
        false => "",
    };
    let message = format!(
        "no member of this host becomes one of cluster {cluster}; they keep the data that they have, and may be down{release}"
    );
    let stop = Stop { left: put_aside(aside), ..Stop::well(Reason::GivenUp, message, "run", playbook) };
    Outcome { text: crate::report::live::text::end(&stop), stop, facts: Facts { changed: true, ..Facts::default() } }
}

fn trouble(why: NotRestored) -> Trouble {
    let text = why.to_string();
    match why {
        NotRestored::File(_) => Trouble::BadBackup(text),
        NotRestored::Refused(Refused::Serves(_)) => {
            Trouble::Serves(format!("{text}; where that is meant: --discard-cluster"))
        }
        NotRestored::Refused(Refused::Unknown(_)) => {
            Trouble::Serves(format!("{text}; where it may go all the same: --discard-cluster"))
        }
        NotRestored::Refused(Refused::BothWouldServe(_)) => Trouble::Serves(text),
        NotRestored::Unfit(_) | NotRestored::Left { .. } => Trouble::Unprepared(text),
        NotRestored::StateDir(error @ StateDirError::Locked { .. }) => Trouble::StateDirLocked(with_causes(&error)),
        NotRestored::StateDir(_) | NotRestored::Record(_) => Trouble::StateDir(text),
        NotRestored::Another(record) => Trouble::Restoring { words: record.words(), from: record.from },
        NotRestored::DataGone { name, .. } => Trouble::DataGone { name, lock: None },
        NotRestored::Observe(error) => error.into(),
        NotRestored::Interrupted => Trouble::Interrupted,
        NotRestored::LeftBeside => Trouble::LeftBeside,
        NotRestored::AtOnce => Trouble::InterruptedAtOnce { member: None },
        NotRestored::UserWanted(_) => {
            Trouble::AuthRefused(format!("{text}; name one: `cluster.auth`, of the users that the file has"))
        }
        NotRestored::Member { .. } => Trouble::NotRestored(text),
        NotRestored::After { restored, why } => {
            let aside = put_aside(&restored.aside);
            let left = match aside.is_empty() {
                true => {
                    "members of this host were stopped; the same command goes on, and nothing was deleted".to_owned()
                }
                false => format!("members of this host were stopped, and nothing was deleted; {aside}"),
            };
            Trouble::AfterRestore { why: Box::new(trouble(*why)), left }
        }
    }
}
