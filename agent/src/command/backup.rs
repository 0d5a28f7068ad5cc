//! `agent backup`: the database of the member that has most, in a file that `etcdutl snapshot restore` takes. Touches no member.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::SystemTime};

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::Outcome;
use crate::{
    calendar::rfc3339,
    cli,
    event::trouble::Trouble,
    guarded::{Place, is_unfinished},
    host::files::{durable, room},
    observe::{
        Observer,
        database::{NotTold, Saved},
        view::{ClusterView, Member},
    },
    playbook::Playbook,
    report::{
        file::json::Facts,
        names::Names,
        stop::{Reason, Stop},
    },
    words::with_causes,
};

/// What a backup's name ends with, behind the cluster's name and the moment.
const SUFFIX: &str = ".db";

/// Saves one member's database; of those that fail the next one is tried.
///
/// # Errors
/// The folder cannot be written to, or no member could be read to its end: then no file is left.
pub(super) async fn backup(typed: &cli::Backup) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let dir = &typed.dir;
    let unusable = |why: String| Trouble::Usage(format!("--dir {}: {why}", dir.display()));
    if !fs::metadata(dir).map_err(|error| unusable(with_causes(&error)))?.is_dir() {
        return Err(unusable("expected a folder".into()));
    }
    let observer = Observer::connect(&playbook.cluster)?;
    let view = observer.look().await?;
    let names = Names::of(&view);
    // Two clusters may have one name.
    let cluster = format!("{}-{}", plain(&playbook.cluster.name), view.cluster);
    let own = format!("{cluster}-{}{SUFFIX}", moment(SystemTime::now()));
    let path = dir.join(&own);
    remove_unfinished(dir, &cluster);
    let others = observer.examine(&view).await.others;
    let mut reasons = Vec::new();
    for member in most_advanced(&view) {
        let free = room::free(dir).map_err(|error| unusable(with_causes(&error)))?;
        match save(&observer, member, (&path, free), !others.contains(&member.id)).await? {
            Ok(saved) => {
                let (removed, newer) =
                    typed.keep.map_or_else(Default::default, |keep| remove_older(dir, &cluster, &own, keep));
                let newer = newer
                    .iter()
                    .map(|name| format!("{name} is of a time that is to come: it is left, and not counted"));
                let warnings = beside_the_data(&playbook, dir).into_iter().chain(newer).collect();
                return Ok(told(&names.short(member.id), &path, saved, (removed, warnings)));
            }
            Err(NotTold::NoRoom { wanted, free, .. }) => return Ok(no_room(dir, wanted, free)),
            Err(why) => reasons.push(format!("{}: {why}", names.short(member.id))),
        }
    }
    if reasons.is_empty() {
        reasons.push("no voter is ready".to_owned());
    }
    Err(Trouble::NoAnswer(format!("no database was saved: {}", reasons.join("; "))))
}

/// Those that are ready, who has applied most first; of several the leader last, as it has most to do.
fn most_advanced(view: &ClusterView) -> Vec<&Member> {
    let mut ready: Vec<_> = view.voters().filter(|voter| voter.is_ready()).collect();
    ready.sort_by_key(|voter| {
        let applied = voter.report().map(|report| report.applied);
        (std::cmp::Reverse(applied), view.is_leader(voter.id), voter.id)
    });
    ready
}

/// The outer error is the folder's.
async fn save(
    observer: &Observer,
    member: &Member,
    (path, free): (&Path, u64),
    is_etcd: bool,
) -> Result<Result<Saved, NotTold>, Trouble> {
    let failed = |error: crate::guarded::FileError| Trouble::System(with_causes(&error));
    let place = Place::named(path).map_err(failed)?;
    let unfinished = place.begin().map_err(failed)?;
    let file = unfinished.file.try_clone().map_err(|error| Trouble::System(with_causes(&error)))?;
    let folder = path.parent().unwrap_or(path);
    match observer.save_database(member.id, file, (folder, free), is_etcd).await {
        Ok(saved) => unfinished.finish().map(|()| Ok(saved)).map_err(failed),
        Err(why) => Ok(Err(why)),
    }
}

/// Of this cluster's backups up to the one that was just written all but the newest so many. Gives the names of those that are gone, and of
/// those that seem to be newer than it.
fn remove_older(dir: &Path, cluster: &str, own: &str, keep: usize) -> (Vec<String>, Vec<String>) {
    let mut found = names(dir);
    found.retain(|name| is_backup(name, cluster));
    found.sort_unstable();
    let (mut found, newer): (Vec<_>, Vec<_>) = found.into_iter().partition(|name| name.as_str() <= own);
    found.truncate(found.len().saturating_sub(keep));
    found.retain(|name| name != own && durable::remove(&dir.join(name)).is_ok());
    (found, newer)
}

/// What backups of this cluster have begun and not ended: their process was killed, or the file would be locked.
fn remove_unfinished(dir: &Path, cluster: &str) {
    let begun = names(dir).into_iter().filter(|name| is_unfinished(name.as_ref(), |name| is_backup(name, cluster)));
    for path in begun.map(|name| dir.join(name)) {
        let is_nobodys =
            durable::open_lock(&path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_nobodys {
            let _ = durable::remove(&path);
        }
    }
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

/// Nothing else in the folder is ever removed.
fn is_backup(name: &str, cluster: &str) -> bool {
    let moment = name.strip_prefix(cluster).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(SUFFIX));
    let shape = |moment: &str| moment.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>();
    moment.is_some_and(|moment| shape(moment) == "00000000T000000Z")
}

/// `20261129T081500Z`, which sorts as time does.
fn moment(time: SystemTime) -> String {
    let mut text: String = rfc3339(time).chars().filter(|c| !matches!(c, '-' | ':')).collect();
    text.truncate("20261129T081500".len());
    text + "Z"
}

/// A cluster's name, as far as a file may have it.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' }).collect()
}

fn beside_the_data(playbook: &Playbook, dir: &Path) -> Option<String> {
    let device = |path: &Path| fs::metadata(path).ok().map(|seen| seen.dev());
    let is_beside = |data: &&Path| device(data).is_some_and(|found| device(dir) == Some(found));
    let data = playbook.nodes.iter().filter_map(|node| node.data_dir.as_deref()).find(is_beside)?;
    Some(format!("{} is on the same disk as {}: what takes the one may take both", dir.display(), data.display()))
}

fn told(member: &str, path: &Path, saved: Saved, (removed, warnings): (Vec<String>, Vec<String>)) -> Outcome {
    let Saved { bytes, revision } = saved;
    let of = revision.map_or_else(String::new, |revision| format!(" at revision {revision}"));
    let message = format!("the database of {member}{of} is saved as {}", path.display());
    let mut text = format!("{message} ({} MB)\n", bytes / 1_000_000);
    removed.iter().for_each(|name| text += &format!("removed: {name}\n"));
    let mut facts = Facts { warnings, ..Facts::default() };
    facts.more.insert(
        "backup".into(),
        json!({ "file": path.to_string_lossy(), "bytes": bytes, "member": member, "revision": revision.map(|at| at.0), "removed": removed }),
    );
    Outcome { stop: stop(Reason::BackedUp, message, None), facts, text }
}

fn no_room(dir: &Path, wanted: u64, free: u64) -> Outcome {
    let message = format!("{} has {free} bytes free, and a backup may take {wanted}", dir.display());
    let next = Some("make room there, or name another folder with --dir".to_owned());
    Outcome { stop: stop(Reason::NoRoom, message, next), facts: Facts::default(), text: String::new() }
}

fn stop(reason: Reason, message: String, next: Option<String>) -> Stop {
    let left = if reason == Reason::NoRoom { "nothing was written" } else { "" };
    Stop { exit: reason.exit().code(false), reason, message, left: left.into(), next, cluster: None }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_older_backups_of_this_cluster_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let time = |days: u64| moment(SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400));
        assert_eq!(moment(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_262_581)), "20261121T120301Z");
        let backup = |days| format!("orders-a1-{}.db", time(days));
        let others =
            ["orders-a1-2026.db", "orders-a2-19700102T000000Z.db", "orders-a1-19700102T000000Z.db.old", "notes"];
        for name in [3, 1, 2, 9].map(backup).iter().map(String::as_str).chain(others) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let remove = |own: u64, keep| remove_older(folder.path(), "orders-a1", &backup(own), keep);
        assert_eq!(remove(3, 2), (vec![backup(1)], vec![backup(9)]));
        let set_back = (vec![], vec![backup(3), backup(9)]);
        assert_eq!(remove(2, 1), set_back, "what was just written stays");
        assert_eq!(remove(3, 1), (vec![backup(2)], vec![backup(9)]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2 + others.len());
        assert_eq!(plain("orders/eu west"), "orders_eu_west");
    }

    #[test]
    fn what_a_killed_backup_has_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let name = "orders-a1-19700102T000000Z.db";
        let left = format!(".{name}.baton-new.4711");
        for name in [&left, ".orders-a2-19700102T000000Z.db.baton-new.4711", ".notes.baton-new.1"] {
            fs::write(path(name), "").unwrap();
        }
        let place = Place::named(&path(name)).unwrap();
        let at_work = place.begin().unwrap();
        remove_unfinished(folder.path(), "orders-a1");
        assert!(!path(&left).exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "others', and the one that is being written");
        at_work.finish().unwrap();
        assert!(path(name).exists());
    }
}
