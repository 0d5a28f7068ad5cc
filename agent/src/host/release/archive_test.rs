use flate2::{Compression, write::GzEncoder};
use std::{fs, io::Write, os::unix::fs::PermissionsExt};

use tar::Header;
use tempfile::TempDir;

use super::*;

struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Unpacks an archive with these entries; names are written as they are, which no honest tool would do.
    fn unpack(&self, entries: &[(&str, EntryType, u32, &[u8])]) -> Result<(), UnpackError> {
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, kind, mode, content) in entries {
            let mut header = Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(*mode);
            header.set_size(content.len() as u64);
            if kind.is_symlink() || kind.is_hard_link() {
                header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
            }
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        self.unpack_bytes(&builder.into_inner().unwrap().finish().unwrap(), Room::ALL)
    }

    fn unpack_bytes(&self, bytes: &[u8], room: Room) -> Result<(), UnpackError> {
        let path = self.folder.path().join("artifact.tar.gz");
        fs::write(&path, bytes).unwrap();
        let into = self.target();
        let _ = fs::remove_dir_all(&into);
        fs::create_dir(&into).unwrap();
        archive_within(File::open(&path).unwrap(), &path, &into, room).map(drop)
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("into")
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn an_archive_lands_in_its_folder_without_dangerous_modes() {
    let case = Case::new();
    case.unpack(&[
        ("etcd-v1/", EntryType::Directory, 0o700, b""),
        ("etcd-v1/etcd", EntryType::Regular, 0o6777, b"program"),
        ("./etcd-v1/doc/read.me", EntryType::Regular, 0o666, b"text"),
    ])
    .unwrap();
    let (program, text) = (case.target().join("etcd-v1/etcd"), case.target().join("etcd-v1/doc/read.me"));
    assert_eq!((fs::read(&program).unwrap(), mode(&program)), (b"program".to_vec(), 0o755));
    assert_eq!((fs::read(&text).unwrap(), mode(&text)), (b"text".to_vec(), 0o644));
}

#[test]
fn an_entry_that_could_do_harm_is_refused_by_name() {
    for (name, kind, why) in [
        ("../evil", EntryType::Regular, "`../evil` leads out"),
        ("a/../../evil", EntryType::Regular, "`a/../../evil` leads out"),
        ("a/..", EntryType::Directory, "`a/..` leads out"),
        ("/tmp/evil", EntryType::Regular, "`/tmp/evil` has an absolute name"),
        ("soft", EntryType::Symlink, "`soft` is a link"),
        ("hard", EntryType::Link, "`hard` is a link"),
        ("tty", EntryType::Char, "`tty` is neither"),
        ("disk", EntryType::Block, "`disk` is neither"),
        ("pipe", EntryType::Fifo, "`pipe` is neither"),
    ] {
        let case = Case::new();
        let error = case.unpack(&[("good", EntryType::Regular, 0o644, b"x"), (name, kind, 0o644, b"")]).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(fs::read_dir(case.folder.path()).unwrap().count(), 2, "{name}: the archive and the folder");
    }
    let twice = [("same", EntryType::Regular, 0o644, b"1".as_slice()), ("./same", EntryType::Regular, 0o644, b"2")];
    let error = Case::new().unpack(&twice).unwrap_err().to_string();
    assert!(error.contains("`./same` is there twice"), "{error}");
}

#[test]
fn a_cut_or_damaged_archive_is_refused_wherever_it_is_cut() {
    let case = Case::new();
    case.unpack(&[("a", EntryType::Regular, 0o644, b"one"), ("b", EntryType::Regular, 0o644, b"two")]).unwrap();
    let whole = fs::read(case.folder.path().join("artifact.tar.gz")).unwrap();
    for cut in 0..whole.len() {
        let error = case.unpack_bytes(&whole[..cut], Room::ALL).unwrap_err();
        assert!(matches!(error, UnpackError::Archive { .. }), "cut at {cut}: {error}");
    }
    assert!(case.unpack_bytes(b"<html>not found</html>", Room::ALL).is_err());
}

#[test]
fn an_archive_that_grows_without_end_is_refused() {
    let case = Case::new();
    let content = vec![0; 100_000];
    // Each with its header, in blocks of 512 bytes, and two empty blocks at the end.
    let whole = 2 * (512 + 100_352) + 1024;
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    let mut builder = tar::Builder::new(&mut gz);
    for name in ["a", "b"] {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    builder.finish().unwrap();
    drop(builder);
    gz.flush().unwrap();
    let bytes = gz.finish().unwrap();
    case.unpack_bytes(&bytes, Room { bytes: whole, entries: 2 }).unwrap();
    for room in [Room { bytes: whole - 1, entries: 9 }, Room { bytes: MAX_BYTES, entries: 1 }] {
        assert!(matches!(case.unpack_bytes(&bytes, room), Err(UnpackError::TooLarge { .. })));
    }
}

/// An archive of raw blocks: header fields as they are given, whatever they claim.
fn raw(entries: &[(&str, EntryType, u64, &[u8])], trailing: usize) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, kind, size, content) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        header.set_size(*size);
        header.set_cksum();
        gz.write_all(header.as_bytes()).unwrap();
        gz.write_all(content).unwrap();
        gz.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).unwrap();
    }
    gz.write_all(&vec![0; 1024 + trailing]).unwrap();
    gz.finish().unwrap()
}

fn pax(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let length = (1..).find(|length: &usize| length.to_string().len() + rest.len() == *length).unwrap();
    format!("{length}{rest}").into_bytes()
}

#[test]
fn long_names_are_read_and_bounded() {
    let case = Case::new();
    let long = "d/".repeat(20) + &"n".repeat(120);
    for (kind, content) in
        [(EntryType::GNULongName, [long.as_bytes(), b"\0"].concat()), (EntryType::XHeader, pax("path", &long))]
    {
        let entries: [(&str, EntryType, u64, &[u8]); 2] =
            [("long", kind, content.len() as u64, &content), ("short", EntryType::Regular, 3, b"one")];
        case.unpack_bytes(&raw(&entries, 0), Room::ALL).unwrap();
        assert_eq!(fs::read(case.target().join(&long)).unwrap(), b"one");
    }
    let huge = 3 << 30;
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let error = case.unpack_bytes(&raw(&[("long", kind, huge, &[b'n'; 100_000])], 0), Room::ALL).unwrap_err();
        assert!(error.to_string().contains("description that is too long"), "{error}");
    }
    let deep = pax("path", &"d/".repeat(MAX_DEPTH + 1));
    let out = pax("path", "../evil");
    let absolute = pax("path", "/evil");
    let size = pax("size", "4");
    let sparse = pax("GNU.sparse.realsize", "1099511627776");
    for (extension, why) in [
        (&deep, "too deep"),
        (&out, "leads out"),
        (&absolute, "absolute"),
        (&size, "two sizes"),
        (&sparse, "`short` is a sparse file"),
    ] {
        let entries: [(&str, EntryType, u64, &[u8]); 2] =
            [("x", EntryType::XHeader, extension.len() as u64, extension), ("short", EntryType::Regular, 3, b"one")];
        let error = case.unpack_bytes(&raw(&entries, 0), Room::ALL).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    let error = case.unpack_bytes(&raw(&[("s", EntryType::GNUSparse, 0, b"")], 0), Room::ALL).unwrap_err();
    assert!(error.to_string().contains("`s` is a sparse file"), "{error}");
}

#[test]
fn what_follows_the_end_of_an_archive_counts() {
    let case = Case::new();
    let entry: [(&str, EntryType, u64, &[u8]); 1] = [("a", EntryType::Regular, 3, b"one")];
    let most = MAX_TRAILING as usize;
    case.unpack_bytes(&raw(&entry, most - 1024), Room::ALL).unwrap();
    let error = case.unpack_bytes(&raw(&entry, most + 1), Room::ALL).unwrap_err();
    assert!(matches!(error, UnpackError::TooLarge { .. }), "{error}");
    // Another member of the same gzip file, as large as one likes.
    let mut two = raw(&entry, 0);
    two.extend(raw(&[], 2 * most));
    let error = case.unpack_bytes(&two, Room::ALL).unwrap_err();
    assert!(matches!(error, UnpackError::TooLarge { .. }), "{error}");
    // Entries that only describe others are entries.
    let names: Vec<(&str, EntryType, u64, &[u8])> = vec![("n", EntryType::GNULongName, 1, b"n"); 3];
    let error = case.unpack_bytes(&raw(&names, 0), Room { entries: 2, ..Room::ALL }).unwrap_err();
    assert!(matches!(error, UnpackError::TooLarge { .. }), "{error}");
}

/// The checksum that is compared is of the bytes that were unpacked.
#[test]
fn the_checksum_is_that_of_all_that_was_read() {
    let case = Case::new();
    let bytes = raw(&[("etcd", EntryType::Regular, 3, b"one"), ("doc", EntryType::Directory, 0, b"")], 512);
    let path = case.folder.path().join("artifact.tar.gz");
    fs::write(&path, &bytes).unwrap();
    fs::create_dir(case.target()).unwrap();
    let unpacked = archive(File::open(&path).unwrap(), &path, &case.target()).unwrap();
    let of = crate::host::release::digest::Sha256::of;
    assert_eq!(unpacked.sha256, of(&bytes));
    assert_eq!(unpacked.executables, [("etcd".to_owned(), of(b"one"))].into());
}
