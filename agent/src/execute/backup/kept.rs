//! The names of backups in their folder, and which of them go. Nothing else there is ever removed.

use std::{fs, path::Path, time::SystemTime};

use proto::ClusterId;
use rustix::fs::{FlockOperation, flock};

use crate::{calendar::rfc3339, guarded::is_unfinished, host::files::durable};

/// What a backup's name ends with, behind the cluster's name and the moment.
const SUFFIX: &str = ".db";

/// What the names of one cluster's backups begin with.
pub(super) fn of(name: &str, cluster: ClusterId) -> String {
    format!("{}-{cluster}", plain(name))
}

/// `orders-8e9e05c52164694d-20261129T081500.123Z.db`
pub(super) fn name(of: &str, time: SystemTime) -> String {
    format!("{of}-{}{SUFFIX}", moment(time))
}

/// Of this cluster's backups up to the one that was just written all but the newest so many. Gives the names of those that are gone, and of
/// those that seem to be newer than it.
pub(super) fn remove_older(dir: &Path, of: &str, own: &str, keep: usize) -> (Vec<String>, Vec<String>) {
    let mut found = names(dir);
    found.retain(|name| is_backup(name, of));
    found.sort_unstable();
    let (mut found, newer): (Vec<_>, Vec<_>) = found.into_iter().partition(|name| name.as_str() <= own);
    found.truncate(found.len().saturating_sub(keep));
    found.retain(|name| name != own && durable::remove(&dir.join(name)).is_ok());
    (found, newer)
}

/// What backups of this cluster have begun and not ended: their process was killed, or the file would be locked.
pub(super) fn remove_unfinished(dir: &Path, of: &str) {
    let begun = names(dir).into_iter().filter(|name| is_unfinished(name.as_ref(), |name| is_backup(name, of)));
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

fn is_backup(name: &str, of: &str) -> bool {
    let moment = name.strip_prefix(of).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(SUFFIX));
    moment.is_some_and(is_moment)
}

/// Whether it is one that an agent writes: with a date that there may be, and a time of day. Those of earlier releases have no
/// milliseconds.
fn is_moment(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    if !["00000000T000000Z", "00000000T000000.000Z"].contains(&shape.as_str()) {
        return false;
    }
    let part = |from: usize| text[from..from + 2].parse().unwrap_or(u8::MAX);
    let (month, day, hour, minute, second) = (part(4), part(6), part(9), part(11), part(13));
    (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60
}

/// `20261129T081500.123Z`, which sorts as time does.
fn moment(time: SystemTime) -> String {
    rfc3339(time).chars().filter(|c| !matches!(c, '-' | ':')).collect()
}

/// A cluster's name, as far as a file may have it.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::guarded::Place;

    #[test]
    fn only_older_backups_of_this_cluster_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let time = |days: u64| moment(SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400));
        let moment = moment(SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_262_581_007));
        assert_eq!(moment, "20261121T120301.007Z");
        let backup = |days| format!("orders-a1-{}.db", time(days));
        let others = [
            "orders-a1-2026.db",
            "orders-a2-19700102T000000.000Z.db",
            "orders-a1-19700102T000000.000Z.db.old",
            "orders-a1-19701302T000000Z.db",
            "orders-a1-19700102T250000Z.db",
            "notes",
        ];
        for name in [3, 1, 2, 9].map(backup).iter().map(String::as_str).chain(others) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let of_an_earlier_release = "orders-a1-19700101T120000Z.db";
        fs::write(folder.path().join(of_an_earlier_release), "").unwrap();
        let remove = |own: u64, keep| remove_older(folder.path(), "orders-a1", &backup(own), keep);
        assert_eq!(remove(3, 2), (vec![of_an_earlier_release.to_owned(), backup(1)], vec![backup(9)]));
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
        let name = "orders-a1-19700102T000000.000Z.db";
        let left = format!(".{name}.baton-new.4711");
        for name in [&left, ".orders-a2-19700102T000000.000Z.db.baton-new.4711", ".notes.baton-new.1"] {
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
