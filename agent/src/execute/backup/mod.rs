//! One member's database in a file that `etcdutl snapshot restore` takes: what `agent backup` makes, and a run before it changes anything.
//! No member is touched.

mod kept;

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use proto::MemberId;
use tokio::time::{Instant, interval_at};

use super::{Execution, own_data::told_folder, send::Saying};
use crate::{
    event::RunEvent,
    guarded::{FileError, Place},
    host::files::room,
    keys,
    machine::act::Event,
    observe::{
        ObserveError, Observer,
        database::{NotTold, Saved, room_for},
        view::{ClusterView, Member},
    },
    playbook::{Backup, Cluster, Node, Playbook},
    report::names::Names,
    words::with_causes,
};

/// How often it is told how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// A backup that was made.
#[derive(Debug)]
pub struct Taken {
    pub member: MemberId,
    pub names: Names,
    pub path: PathBuf,
    pub saved: Saved,
    /// Names of older backups that are gone.
    pub removed: Vec<String>,
    /// Names of backups that seem to be newer than this one.
    pub newer: Vec<String>,
}

/// Why there is none. Then no file is left.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// There is none.
    #[error("{folder}: {why}")]
    Folder { folder: String, why: String },
    /// It cannot be written to, or others may.
    #[error("{folder}: {why}")]
    Unwritable { folder: String, why: String },
    #[error("{folder} has {free} bytes free, and a backup may take {wanted}")]
    NoRoom { folder: String, wanted: u64, free: u64 },
    #[error("{}", with_causes(.0))]
    Observe(#[from] ObserveError),
    /// Of each that was asked.
    #[error("no database was saved: {0}")]
    NoMember(String),
}

/// Saves the database of the member that has most; of those that fail the next one is tried. `percent` says meanwhile how much is had.
///
/// # Errors
/// [`NotTaken`].
pub async fn take(cluster: &Cluster, to: &Backup, percent: &AtomicU8) -> Result<Taken, NotTaken> {
    let Backup { dir, keep } = to;
    check_folder(dir)?;
    let observer = Observer::connect(cluster)?;
    let view = observer.look().await?;
    let names = Names::of(&view);
    // Two clusters may have one name.
    let of = kept::of(&cluster.name, view.cluster);
    let own = kept::name(&of, SystemTime::now());
    let path = dir.join(&own);
    kept::remove_unfinished(dir, &of);
    let others = observer.examine(&view).await.others;
    let mut reasons = Vec::new();
    for member in most_advanced(&view) {
        match save(&observer, member, &path, (!others.contains(&member.id), percent)).await? {
            Ok(saved) => {
                let (removed, newer) =
                    keep.map_or_else(Default::default, |keep| kept::remove_older(dir, &of, &own, keep));
                return Ok(Taken { member: member.id, names, path, saved, removed, newer });
            }
            Err(NotTold::NoRoom { folder, wanted, free }) => return Err(NotTaken::NoRoom { folder, wanted, free }),
            Err(why) => reasons.push(format!("{}: {why}", names.short(member.id))),
        }
    }
    if reasons.is_empty() {
        reasons.push("no voter is ready".to_owned());
    }
    Err(NotTaken::NoMember(reasons.join("; ")))
}

/// Whether files can be made there, as far as that is seen without a try.
///
/// # Errors
/// [`NotTaken::Folder`], [`NotTaken::Unwritable`].
pub fn check_folder(dir: &Path) -> Result<(), NotTaken> {
    let unusable = |why: String| NotTaken::Folder { folder: dir.display().to_string(), why };
    if !fs::metadata(dir).map_err(|error| unusable(with_causes(&error)))?.is_dir() {
        return Err(unusable("expected a folder".into()));
    }
    let place = Place::named(&dir.join("backup"));
    place.and_then(|place| place.check_writable()).map_err(|error| unwritable(dir, &error.source))
}

fn unwritable(folder: &Path, error: &io::Error) -> NotTaken {
    NotTaken::Unwritable { folder: folder.display().to_string(), why: error.to_string() }
}

/// What a host wants of the folder before a run: it can be written to, and has room for the largest database. Gives what is to be known all
/// the same.
///
/// # Errors
/// As [`check_folder`], and [`NotTaken::NoRoom`].
pub fn check(playbook: &Playbook, view: Option<&ClusterView>) -> Result<Option<String>, NotTaken> {
    let Some(Backup { dir, .. }) = &playbook.backup else { return Ok(None) };
    check_folder(dir)?;
    let folder = dir.display().to_string();
    let free = room::free(dir).map_err(|error| unwritable(dir, &error))?;
    let bytes = view.into_iter().flat_map(ClusterView::reports).map(|report| u64::try_from(report.db_bytes));
    let wanted = bytes.filter_map(Result::ok).max().map(room_for).unwrap_or_default();
    match free < wanted {
        true => Err(NotTaken::NoRoom { folder, wanted, free }),
        false => Ok(beside_the_data(playbook, dir)),
    }
}

/// What lies on the disk of a member's data is lost with it.
pub fn beside_the_data(playbook: &Playbook, dir: &Path) -> Option<String> {
    let device = |path: &Path| fs::metadata(path).ok().map(|seen| seen.dev());
    let is_beside = |data: &&Path| device(data).is_some_and(|found| device(dir) == Some(found));
    let of = |node: &Node| node.data_dir.clone().or_else(|| told_folder(&node.runtime, "data-dir"));
    let data = playbook.nodes.iter().filter_map(of).find(|data| is_beside(&data.as_path()))?;
    Some(format!("{} is on the same disk as {}: what takes the one may take both", dir.display(), data.display()))
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
    path: &Path,
    (is_etcd, percent): (bool, &AtomicU8),
) -> Result<Result<Saved, NotTold>, NotTaken> {
    let folder = path.parent().unwrap_or(path);
    let failed = |error: FileError| unwritable(folder, &error.source);
    let free = room::free(folder).map_err(|error| unwritable(folder, &error))?;
    let place = Place::named(path).map_err(failed)?;
    let unfinished = place.begin().map_err(failed)?;
    let file = unfinished.file.try_clone().map_err(|error| unwritable(folder, &error))?;
    match observer.save_database(member.id, file, (folder, free), (is_etcd, percent)).await {
        Ok(saved) => {
            let written = unfinished.file.metadata().map_err(|error| unwritable(folder, &error))?;
            unfinished.finish().map_err(failed)?;
            // Its folder was opened once; meanwhile another one may have taken that name.
            match fs::symlink_metadata(path) {
                Ok(found) if (found.dev(), found.ino()) == (written.dev(), written.ino()) => Ok(Ok(saved)),
                _ => {
                    Err(unwritable(folder, &io::Error::other("it was put elsewhere meanwhile, and the backup with it")))
                }
            }
        }
        Err(why) => Ok(Err(why)),
    }
}

impl Execution<'_> {
    /// The backup of a run. Others see in this agent's key how far it is; a signal ends it.
    pub(super) async fn back_up(&mut self) -> Event {
        let Some(to) = self.playbook.backup.clone() else {
            return Event::Failed("the playbook has no `backup`".into());
        };
        self.tell(RunEvent::BackingUp { percent: 0 });
        let (cluster, percent) = (self.playbook.cluster.clone(), Arc::new(AtomicU8::new(0)));
        let (interrupt, patience) = (self.console.interrupt.clone(), self.playbook.strategy.stall_timeout);
        let (mut told, mut moved) = (0, Instant::now());
        let has = percent.clone();
        // On its own: a disk that hangs holds up what writes to it, and must not hold up the baton.
        let mut taken = tokio::spawn(async move { take(&cluster, &to, &has).await });
        let mut ticks = interval_at(Instant::now() + TOLD_EVERY, TOLD_EVERY);
        let taken = loop {
            tokio::select! {
                taken = &mut taken => break taken,
                () = interrupt.asked(1) => {
                    taken.abort();
                    return Event::Failed("interrupted".into());
                }
                _ = ticks.tick() => {
                    let percent = percent.load(Relaxed);
                    if std::mem::replace(&mut told, percent) != percent {
                        moved = Instant::now();
                        self.tell(RunEvent::BackingUp { percent });
                        self.say_in_key(self.done_members(), Saying::BacksUp(percent)).await;
                    } else if moved.elapsed() > patience {
                        taken.abort();
                        let seconds = patience.as_secs();
                        return Event::Failed(format!("{percent} % of a database was saved, and nothing more in {seconds} s").into());
                    }
                }
            }
        };
        let taken = taken.unwrap_or_else(|error| Err(NotTaken::NoMember(error.to_string())));
        match taken {
            Ok(taken) => {
                let path = taken.path.to_string_lossy();
                self.tell(RunEvent::BackedUp { member: taken.member, path: &path });
                let (member, host_name) = (taken.member, self.me.host_name.clone());
                let Saved { bytes, revision, sha256 } = taken.saved;
                let (path, sha256) = (path.into(), Some(sha256));
                Event::BackedUp(Arc::new(keys::Backup { host_name, path, member, revision, sha256, bytes }))
            }
            Err(why) => Event::Failed(why.to_string().into()),
        }
    }
}
