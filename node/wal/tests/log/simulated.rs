//! A disk in memory that keeps what was synced apart from what was only written, and loses its power at any moment.
//!
//! Every call that changes something is a *boundary*, counted from 0. Its faults say what happens at which one.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

use wal::{Disk, DiskFile};

use crate::chance::Chance;

/// What a drive writes in one go.
const SECTOR: usize = 512;

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

/// What is left of the writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    Nothing,
    Everything,
    /// The first so many bytes, in the order of the writes.
    Prefix,
    /// Any sectors.
    Sectors,
}

impl Survival {
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Everything, Self::Prefix, Self::Sectors];
}

#[derive(Clone, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// What was written since the last sync.
    writes: Vec<(usize, Vec<u8>)>,
    synced: bool,
}

#[derive(Clone)]
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
    /// What was done to the names since they were last synced.
    name_changes: Vec<NameChange>,
    boundaries: usize,
    syncs: usize,
    dead: bool,
    held: bool,
    waiting: bool,
}

/// The disk; every clone is the same one.
#[derive(Clone, Default)]
pub struct Simulated {
    world: Arc<(Mutex<World>, Condvar)>,
}

struct Handle {
    disk: Simulated,
    file: usize,
}

fn error(kind: io::ErrorKind) -> io::Error {
    kind.into()
}

fn write(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    bytes.resize(bytes.len().max(offset + written.len()), 0);
    bytes[offset..offset + written.len()].copy_from_slice(written);
}

impl Simulated {
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
        Self { world: Arc::new((Mutex::new(world), Condvar::new())) }
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
        Self::of(World { faults, files, durable_names: names.clone(), names, ..World::default() })
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

fn surviving(content: &Content, survival: Survival, chance: &mut Chance) -> Content {
    let mut bytes = content.durable.clone();
    match survival {
        Survival::Nothing => {}
        Survival::Everything => content.writes.iter().for_each(|(offset, written)| write(&mut bytes, *offset, written)),
        Survival::Prefix => {
            let total: usize = content.writes.iter().map(|(_, written)| written.len()).sum();
            let mut left = chance.below(total + 1);
            for (offset, written) in &content.writes {
                let part = left.min(written.len());
                write(&mut bytes, *offset, &written[..part]);
                left -= part;
            }
        }
        Survival::Sectors => {
            for (offset, written) in &content.writes {
                let mut at = 0;
                while at < written.len() {
                    let end = written.len().min(at + SECTOR - (offset + at) % SECTOR);
                    if chance.below(2) == 0 {
                        write(&mut bytes, offset + at, &written[at..end]);
                    }
                    at = end;
                }
            }
        }
    }
    Content::durable(bytes)
}

fn surviving_names(world: &World, survival: Survival, chance: &mut Chance) -> BTreeMap<String, usize> {
    let mut names = world.durable_names.clone();
    let changes = &world.name_changes;
    let prefix = chance.below(changes.len() + 1);
    for (at, change) in changes.iter().enumerate() {
        let survives = match survival {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Prefix => at < prefix,
            Survival::Sectors => chance.below(2) == 0,
        };
        if survives {
            apply_name_change(&mut names, change);
        }
    }
    names
}

impl Disk for Simulated {
    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let world = self.world();
        world.alive()?;
        Ok(world.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut file = 0;
        self.change_names(|world| {
            if world.is_full(world.boundaries - 1) {
                return Err(error(io::ErrorKind::StorageFull));
            }
            file = world.files.len();
            world.files.push(Content::default());
            Ok(NameChange::Link(name.into(), file))
        })?;
        Ok(Arc::new(Handle { disk: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let world = self.world();
        world.alive()?;
        Ok(Arc::new(Handle { disk: self.clone(), file: world.file(name)? }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_names(|world| Ok(NameChange::Rename(from.into(), to.into(), world.file(from)?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change_names(|world| world.file(name).map(|_| NameChange::Unlink(name.into())))
    }

    fn sync_names(&self) -> io::Result<()> {
        let (mut world, number) = self.boundary()?;
        world.alive()?;
        if world.faults.sync_fails_at == Some(number) {
            return Err(error(io::ErrorKind::Other));
        }
        if !world.faults.names_are_not_synced {
            world.durable_names = world.names.clone();
            world.name_changes.clear();
        }
        Ok(())
    }
}

impl DiskFile for Handle {
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
