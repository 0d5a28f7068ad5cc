//! A disk in memory that keeps what was synced apart from what was only written, and loses its power at any moment.
//!
//! Every call that changes something is a *boundary*, counted from 0. Its faults say what happens at which one.

#![allow(clippy::unwrap_used, reason = "a tool of tests")]

mod chance;
mod survival;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

use disk::{File, Folder};

pub use chance::Chance;
pub use survival::Survival;
use survival::{surviving, surviving_names};

/// Long enough for any machine; only a hang takes it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What goes wrong, and at which boundary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The process ends in the middle of this call, with the machine's power or without.
    pub ends_at: Option<usize>,
    /// There is no space from this call on.
    pub full_at: Option<usize>,
    /// When this call is a sync it fails, and the system forgets that there was anything to write (fsyncgate).
    pub sync_fails_at: Option<usize>,
    /// Syncs of files do nothing and say that all is well, but for the first one of each.
    pub records_are_not_synced: bool,
    /// The same for names.
    pub names_are_not_synced: bool,
}

#[derive(Clone, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// What was written since the last sync.
    writes: Vec<(usize, Vec<u8>)>,
    synced: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Link(String, usize),
    Rename(String, String, usize),
    Unlink(String),
}

#[derive(Clone, Default)]
struct World {
    faults: Faults,
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// All that were ever made. That they are durable is left to the file system here.
    folders: BTreeSet<String>,
    /// What was done to the names since they were last synced.
    name_changes: Vec<NameChange>,
    boundaries: usize,
    syncs: usize,
    written_bytes: u64,
    dead: bool,
    held: bool,
    waiting: bool,
}

/// The disk, as one of its folders; every clone is the same one.
#[derive(Clone, Default)]
pub struct SimulatedDisk {
    world: Arc<(Mutex<World>, Condvar)>,
    /// What names in this folder begin with: nothing, or a path that ends with `/`.
    prefix: String,
}

struct Handle {
    disk: SimulatedDisk,
    file: usize,
}

fn error(kind: io::ErrorKind) -> io::Error {
    kind.into()
}

fn write(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    bytes.resize(bytes.len().max(offset + written.len()), 0);
    bytes[offset..offset + written.len()].copy_from_slice(written);
}

impl SimulatedDisk {
    pub fn new(faults: Faults) -> Self {
        Self::of(World { faults, ..World::default() })
    }

    /// A disk on which these files are durable.
    pub fn with_files(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let names: BTreeMap<_, _> = files.keys().cloned().zip(0..).collect();
        let files = files.values().map(|bytes| Content::durable(bytes.clone())).collect();
        Self::of(World { files, durable_names: names.clone(), names, ..World::default() })
    }

    fn of(world: World) -> Self {
        Self { world: Arc::new((Mutex::new(world), Condvar::new())), prefix: String::new() }
    }

    /// What is in the files, as the system shows them.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let world = self.world();
        world.names.iter().map(|(name, file)| (name.clone(), world.files[*file].now.clone())).collect()
    }

    pub fn boundaries(&self) -> usize {
        self.world().boundaries
    }

    pub fn syncs(&self) -> usize {
        self.world().syncs
    }

    pub fn is_dead(&self) -> bool {
        self.world().dead
    }

    pub fn written_bytes(&self) -> u64 {
        self.world().written_bytes
    }

    /// Whether there is space from now on.
    pub fn fill(&self, is_full: bool) {
        let mut world = self.world();
        world.faults.full_at = is_full.then_some(world.boundaries);
    }

    /// Removes everything whose name begins so, for good: a disk that was lost, a folder that was removed.
    pub fn empty(&self, prefix: &str) {
        let mut world = self.world();
        let World { names, durable_names, folders, name_changes, .. } = &mut *world;
        name_changes.drain(..).for_each(|change| apply_name_change(durable_names, &change));
        names.retain(|name, _| !name.starts_with(prefix));
        durable_names.retain(|name, _| !name.starts_with(prefix));
        folders.retain(|name| !name.starts_with(prefix));
    }

    /// Turns one bit over in what the disk has, durably.
    pub fn flip(&self, name: &str, bit: usize) {
        let mut world = self.world();
        let Some(file) = world.names.get(name).copied() else { return };
        let content = &mut world.files[file];
        for bytes in [&mut content.now, &mut content.durable] {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }

    /// Another disk with the same on it: a copy that is put away.
    pub fn copy(&self) -> Self {
        self.after_exit(Faults::default())
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn has_in_it(&self, change: &NameChange) -> bool {
        let (NameChange::Link(name, _) | NameChange::Rename(_, name, _) | NameChange::Unlink(name)) = change;
        name.strip_prefix(&self.prefix).is_some_and(|rest| !rest.contains('/'))
    }

    /// Makes the next call that changes something wait.
    pub fn hold(&self) {
        self.world().held = true;
    }

    /// Waits until such a call is there.
    pub fn wait_for_a_call(&self) {
        let world = self.world();
        let (world, timeout) = self.world.1.wait_timeout_while(world, PATIENCE, |world| !world.waiting).unwrap();
        drop(world);
        assert!(!timeout.timed_out(), "nobody calls the disk");
    }

    pub fn release(&self) {
        self.world().held = false;
        self.world.1.notify_all();
    }

    /// The disk as the next process finds it, when only the process ended.
    pub fn after_exit(&self, faults: Faults) -> Self {
        let world = self.world().clone();
        Self::of(World { faults, boundaries: 0, dead: false, held: false, ..world })
    }

    /// The disk when the power is back.
    pub fn after_power_loss(&self, survival: Survival, chance: &mut Chance, faults: Faults) -> Self {
        let world = self.world();
        let files = world.files.iter().map(|content| surviving(content, survival, chance)).collect();
        let names = surviving_names(&world, survival, chance);
        let folders = world.folders.clone();
        Self::of(World { faults, files, durable_names: names.clone(), names, folders, ..World::default() })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.0.lock().unwrap()
    }

    /// Comes to a boundary: the world, and its number.
    fn boundary(&self) -> io::Result<(MutexGuard<'_, World>, usize)> {
        let mut world = self.world();
        world.waiting = true;
        self.world.1.notify_all();
        world = self.world.1.wait_timeout_while(world, PATIENCE, |world| world.held).unwrap().0;
        world.waiting = false;
        world.alive()?;
        let number = world.boundaries;
        world.boundaries += 1;
        world.dead = world.faults.ends_at == Some(number);
        Ok((world, number))
    }

    fn change_names(&self, change: impl FnOnce(&mut World) -> io::Result<NameChange>) -> io::Result<()> {
        let (mut world, _) = self.boundary()?;
        let change = change(&mut world)?;
        apply_name_change(&mut world.names, &change);
        world.name_changes.push(change);
        world.alive()
    }
}

impl Content {
    fn durable(bytes: Vec<u8>) -> Self {
        Self { now: bytes.clone(), durable: bytes, writes: Vec::new(), synced: true }
    }
}

impl World {
    fn alive(&self) -> io::Result<()> {
        if self.dead { Err(error(io::ErrorKind::BrokenPipe)) } else { Ok(()) }
    }

    fn is_full(&self, boundary: usize) -> bool {
        self.faults.full_at.is_some_and(|full| full <= boundary)
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or(error(io::ErrorKind::NotFound))
    }
}

fn apply_name_change(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Link(name, file) => {
            names.insert(name.clone(), *file);
        }
        NameChange::Rename(from, to, file) => {
            names.remove(from);
            names.insert(to.clone(), *file);
        }
        NameChange::Unlink(name) => {
            names.remove(name);
        }
    }
}

impl Folder for SimulatedDisk {
    fn path(&self, name: &str) -> PathBuf {
        self.full(name).into()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let world = self.world();
        world.alive()?;
        let known = world.names.keys().chain(&world.folders);
        let inside = known.filter_map(|name| name.strip_prefix(&self.prefix)).filter(|rest| !rest.is_empty());
        let names: BTreeSet<&str> = inside.map(|rest| rest.split_once('/').map_or(rest, |(first, _)| first)).collect();
        Ok(names.into_iter().map(Into::into).collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut file = 0;
        self.change_names(|world| {
            if world.is_full(world.boundaries - 1) {
                return Err(error(io::ErrorKind::StorageFull));
            }
            file = world.files.len();
            world.files.push(Content::default());
            Ok(NameChange::Link(self.full(name), file))
        })?;
        Ok(Arc::new(Handle { disk: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let world = self.world();
        world.alive()?;
        Ok(Arc::new(Handle { disk: self.clone(), file: world.file(&self.full(name))? }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_names(|world| Ok(NameChange::Rename(self.full(from), self.full(to), world.file(&self.full(from))?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change_names(|world| world.file(&self.full(name)).map(|_| NameChange::Unlink(self.full(name))))
    }

    fn sync_names(&self) -> io::Result<()> {
        let (mut world, number) = self.boundary()?;
        world.alive()?;
        if world.faults.sync_fails_at == Some(number) {
            return Err(error(io::ErrorKind::Other));
        }
        if !world.faults.names_are_not_synced {
            let (now, rest) =
                std::mem::take(&mut world.name_changes).into_iter().partition(|change| self.has_in_it(change));
            let now: Vec<NameChange> = now;
            now.iter().for_each(|change| apply_name_change(&mut world.durable_names, change));
            world.name_changes = rest;
        }
        Ok(())
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        let mut world = self.world();
        world.alive()?;
        let prefix = format!("{}/", self.full(name));
        world.folders.insert(prefix.clone());
        Ok(Arc::new(Self { world: self.world.clone(), prefix }))
    }

    /// There is one process on it at a time.
    fn lock(&self) -> io::Result<()> {
        self.world().alive()
    }
}

impl File for Handle {
    fn length(&self) -> io::Result<u64> {
        let world = self.disk.world();
        world.alive()?;
        Ok(world.files[self.file].now.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let world = self.disk.world();
        world.alive()?;
        let range = offset as usize..offset as usize + buffer.len();
        let bytes = world.files[self.file].now.get(range).ok_or(error(io::ErrorKind::UnexpectedEof))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut world, number) = self.disk.boundary()?;
        let full = world.is_full(number);
        let content = &mut world.files[self.file];
        let fits = if full { bytes.len() / 2 } else { bytes.len() };
        write(&mut content.now, offset as usize, &bytes[..fits]);
        content.writes.push((offset as usize, bytes[..fits].to_vec()));
        world.written_bytes += fits as u64;
        world.alive()?;
        if full { Err(error(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let (mut world, number) = self.disk.boundary()?;
        world.alive()?;
        world.syncs += 1;
        let faults = world.faults;
        let content = &mut world.files[self.file];
        if faults.sync_fails_at == Some(number) {
            content.writes.clear();
            return Err(error(io::ErrorKind::Other));
        }
        if !(faults.records_are_not_synced && content.synced) {
            for (offset, written) in content.writes.drain(..) {
                write(&mut content.durable, offset, &written);
            }
            content.synced = true;
        }
        Ok(())
    }
}
