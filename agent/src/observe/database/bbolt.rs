//! Reads buckets of a bbolt file, as `Maintenance.Snapshot` of etcd sends one. Nothing is written, and nothing is mapped into memory.
//!
//! What is read may be torn, or somebody's who lies: every number is held against the file, and no more than [`MAX_BYTES`] of one
//! bucket are read. Integers are little-endian, as on every machine that etcd supports. Source: bbolt v1.4, `internal/common/page.go`,
//! `meta.go` and `bucket.go`.

use std::{collections::VecDeque, fs::File, io, os::unix::fs::FileExt};

/// How much of one bucket is read, in bytes: those that tell of the cluster have some kilobytes.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// How long the pages of a file may be. bbolt takes the system's, and reads others.
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 512..=65_536;
const PAGE_HEAD: usize = 16;
/// From the end of the page's head: the magic number, the version, the page size, flags, the root bucket's page and sequence, the
/// list of free pages, the number of pages, the transaction, the checksum.
const META: usize = 64;
const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// How many pages lie above each other; more are a circle.
const MAX_DEPTH: usize = 32;
/// Flags of a page.
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
/// Flag of an element of a leaf: its value is a bucket.
const IS_BUCKET: u32 = 0x01;
const ELEMENT: usize = 16;
/// What a bucket's value begins with: its root page and its sequence. Where the page is 0, the page itself follows.
const BUCKET_HEAD: usize = 16;

/// Why a file, or a bucket of it, was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error("it is no file of bbolt")]
    NoDatabase,
    #[error("its page {page} is damaged")]
    Damaged { page: u64 },
    #[error("one of its buckets has more than {MAX_BYTES} bytes")]
    TooMuch,
    #[error("it cannot be read")]
    File(#[from] io::Error),
}

impl Unread {
    /// Whether it is another program's file, or too short to be any.
    pub fn is_no_database(&self) -> bool {
        matches!(self, Self::NoDatabase)
    }
}

/// A key and its value, in the order of keys.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A bbolt file.
#[derive(Debug)]
pub struct Database {
    file: File,
    page_size: u64,
    /// How many pages there are, as the file says and has.
    pages: u64,
    root: u64,
}

/// What one of the two first pages says.
#[derive(Clone, Copy, Debug)]
struct Meta {
    page_size: u64,
    root: u64,
    pages: u64,
    transaction: u64,
}

/// One page, its overflow included; or what stands in for one within a bucket's value.
#[derive(Debug)]
struct Page {
    id: u64,
    bytes: Vec<u8>,
}

impl Database {
    /// Reads the newer of the two first pages that is whole.
    ///
    /// # Errors
    /// [`Unread::NoDatabase`], [`Unread::Damaged`] where its file is shorter than it says, [`Unread::File`].
    pub fn open(file: File) -> Result<Self, Unread> {
        let length = file.metadata()?.len();
        let at = |offset: u64| meta(&file, offset);
        let first = at(0)?;
        // The second is a page further on, of whichever size.
        let mut others = std::iter::successors(Some(*PAGE_SIZES.start()), |size| Some(size * 2));
        let second = others
            .by_ref()
            .take_while(|size| PAGE_SIZES.contains(size))
            .find_map(|size| at(size).transpose().filter(|found| !matches!(found, Ok(meta) if meta.page_size != size)))
            .transpose()?;
        let newest = [first, second].into_iter().flatten().max_by_key(|meta| meta.transaction);
        let Meta { page_size, root, pages, .. } = newest.ok_or(Unread::NoDatabase)?;
        match pages.checked_mul(page_size) {
            Some(end) if end <= length => Ok(Self { file, page_size, pages, root }),
            _ => Err(Unread::Damaged { page: pages }),
        }
    }

    /// The names of all buckets at the top.
    ///
    /// # Errors
    /// [`Unread`].
    pub fn names(&self) -> Result<Vec<String>, Unread> {
        let named = self.leaves(self.root)?.into_iter().filter(|(.., is_bucket)| *is_bucket);
        Ok(named.map(|(key, ..)| String::from_utf8_lossy(&key).into_owned()).collect())
    }

    /// All of one bucket at the top; `None` where there is none of this name. Buckets within it are left out.
    ///
    /// # Errors
    /// [`Unread`].
    pub fn bucket(&self, name: &str) -> Result<Option<Vec<Pair>>, Unread> {
        let found =
            self.leaves(self.root)?.into_iter().find(|(key, _, is_bucket)| *is_bucket && key == name.as_bytes());
        let Some((_, value, _)) = found else { return Ok(None) };
        let damaged = || Unread::Damaged { page: self.root };
        let root = u64_at(&value, 0).ok_or_else(damaged)?;
        let pairs = match root {
            0 => elements(&Page { id: self.root, bytes: value.get(BUCKET_HEAD..).ok_or_else(damaged)?.to_vec() })?,
            root => self.leaves(root)?,
        };
        Ok(Some(pairs.into_iter().filter(|(.., is_bucket)| !is_bucket).map(|(key, value, _)| (key, value)).collect()))
    }

    /// The last key of a bucket at the top, found by its rightmost pages alone; `None` where it has none.
    ///
    /// # Errors
    /// [`Unread`].
    pub fn last_key(&self, name: &str) -> Result<Option<Vec<u8>>, Unread> {
        let found =
            self.leaves(self.root)?.into_iter().find(|(key, _, is_bucket)| *is_bucket && key == name.as_bytes());
        let Some((_, value, _)) = found else { return Ok(None) };
        let mut id = u64_at(&value, 0).ok_or(Unread::Damaged { page: self.root })?;
        if id == 0 {
            return Ok(self.bucket(name)?.and_then(|pairs| Some(pairs.last()?.0.clone())));
        }
        for _ in 0..MAX_DEPTH {
            let page = self.page(id, MAX_BYTES)?;
            match page.flags() {
                Some(LEAF) => return Ok(elements(&page)?.pop().map(|(key, ..)| key)),
                Some(BRANCH) => id = children(&page)?.pop().ok_or_else(|| page.damaged())?,
                _ => return Err(page.damaged()),
            }
        }
        Err(Unread::Damaged { page: id })
    }

    /// What the leaves below this page have, from left to right.
    fn leaves(&self, root: u64) -> Result<Vec<Element>, Unread> {
        let (mut waiting, mut found, mut left) = (VecDeque::from([root]), Vec::new(), MAX_BYTES);
        // Each page takes of what is left, and so a circle comes to its end.
        while let Some(id) = waiting.pop_front() {
            let page = self.page(id, left)?;
            left = left.saturating_sub(page.bytes.len() as u64);
            match page.flags() {
                Some(LEAF) => found.extend(elements(&page)?),
                Some(BRANCH) => {
                    let children = children(&page)?;
                    children.into_iter().rev().for_each(|child| waiting.push_front(child));
                }
                _ => return Err(page.damaged()),
            }
        }
        Ok(found)
    }

    fn page(&self, id: u64, left: u64) -> Result<Page, Unread> {
        let damaged = || Unread::Damaged { page: id };
        // The first two have no elements, and no page is beyond the end.
        if !(2..self.pages).contains(&id) {
            return Err(damaged());
        }
        let offset = id * self.page_size;
        let mut head = [0; PAGE_HEAD];
        self.file.read_exact_at(&mut head, offset)?;
        let overflow = u64::from(u32_at(&head, 12).ok_or_else(damaged)?);
        if u64_at(&head, 0) != Some(id) || id + overflow >= self.pages {
            return Err(damaged());
        }
        let length = (overflow + 1) * self.page_size;
        if length > left {
            return Err(Unread::TooMuch);
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Unread::TooMuch)?];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(Page { id, bytes })
    }
}

/// Key, value, and whether the value is a bucket.
type Element = (Vec<u8>, Vec<u8>, bool);

impl Page {
    fn damaged(&self) -> Unread {
        Unread::Damaged { page: self.id }
    }

    fn flags(&self) -> Option<u16> {
        u16_at(&self.bytes, 8)
    }

    /// The heads of its elements, each with where it begins: positions count from there.
    fn heads(&self) -> Result<Vec<(usize, [u8; ELEMENT])>, Unread> {
        let count = usize::from(u16_at(&self.bytes, 10).ok_or_else(|| self.damaged())?);
        let heads = (0..count).map(|at| {
            let begins = PAGE_HEAD + at * ELEMENT;
            let head = self.bytes.get(begins..begins + ELEMENT).and_then(|head| head.try_into().ok());
            Some((begins, head?))
        });
        heads.collect::<Option<_>>().ok_or_else(|| self.damaged())
    }
}

/// What a leaf has.
fn elements(page: &Page) -> Result<Vec<Element>, Unread> {
    let element = |(begins, head): (usize, [u8; ELEMENT])| {
        let [flags, position, key, value] = [0, 4, 8, 12].map(|at| u32_at(&head, at).unwrap_or_default());
        let key_at = begins.checked_add(position as usize)?;
        let value_at = key_at.checked_add(key as usize)?;
        let end = value_at.checked_add(value as usize)?;
        let key = page.bytes.get(key_at..value_at)?.to_vec();
        Some((key, page.bytes.get(value_at..end)?.to_vec(), flags & IS_BUCKET != 0))
    };
    let (mut found, mut bytes) = (Vec::new(), 0);
    for head in page.heads()? {
        let element = element(head).ok_or_else(|| page.damaged())?;
        // Honest elements do not lie over each other; others would make much of a small page.
        bytes += element.0.len() + element.1.len();
        if bytes > page.bytes.len() {
            return Err(page.damaged());
        }
        found.push(element);
    }
    Ok(found)
}

fn children(page: &Page) -> Result<Vec<u64>, Unread> {
    page.heads()?.iter().map(|(_, head)| u64_at(head, 8).ok_or_else(|| page.damaged())).collect()
}

/// What a meta page at this place says, if it is whole.
fn meta(file: &File, offset: u64) -> io::Result<Option<Meta>> {
    let mut bytes = [0; PAGE_HEAD + META];
    match file.read_exact_at(&mut bytes, offset) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let meta = &bytes[PAGE_HEAD..];
    let [size, root, pages, transaction, checksum] =
        [u32_at(meta, 8).map(u64::from), u64_at(meta, 16), u64_at(meta, 40), u64_at(meta, 48), u64_at(meta, 56)]
            .map(Option::unwrap_or_default);
    let is_whole = u32_at(meta, 0) == Some(MAGIC)
        && u32_at(meta, 4) == Some(VERSION)
        && PAGE_SIZES.contains(&size)
        && size.is_power_of_two()
        && (checksum == fnv_1a(&meta[..META - 8]) || cfg!(fuzzing));
    Ok(is_whole.then_some(Meta { page_size: size, root, pages, transaction }))
}

/// FNV-1a, 64 bits.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
#[path = "bbolt_test.rs"]
mod tests;
