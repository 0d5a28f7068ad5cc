//! `scripts/fetch-etcd --mirror`, against a mirror that is whole and against mirrors that are not.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;
use tests::{
    skip::build_or_skip,
    system::{System, said_by},
};

use crate::mirror;

const STEM: &str = "etcd-v3.4.23-linux-amd64";

/// A mirror with one release, and a cache of its own.
struct Place {
    home: TempDir,
}

impl Place {
    fn new() -> Option<Self> {
        let real = build_or_skip(System::Etcd, "3.4")?;
        let place = Self { home: tempfile::tempdir().expect("a folder") };
        let unpacked = place.home.path().join(STEM);
        fs::create_dir_all(&unpacked).expect("made");
        fs::create_dir_all(place.release()).expect("made");
        for tool in ["etcd", "etcdctl"] {
            fs::copy(real.bin.join(tool), unpacked.join(tool)).expect("copied");
        }
        place.pack();
        place.sum();
        Some(place)
    }

    fn release(&self) -> PathBuf {
        self.home.path().join("mirror/v3.4.23")
    }

    fn archive(&self) -> PathBuf {
        self.release().join(format!("{STEM}.tar.gz"))
    }

    fn pack(&self) {
        run(Command::new("tar").arg("-czf").arg(self.archive()).arg("-C").arg(self.home.path()).arg(STEM));
    }

    fn sum(&self) {
        let done = run(Command::new("sha256sum").arg(format!("{STEM}.tar.gz")).current_dir(self.release()));
        fs::write(self.release().join("SHA256SUMS"), done.stdout).expect("written");
    }

    fn fetch(&self, version: &str) -> Output {
        let url = mirror::serve(self.home.path().join("mirror"));
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/fetch-etcd"))
            .args(["--mirror", &url, version])
            .env("XDG_CACHE_HOME", self.home.path().join("cache"))
            .output()
            .expect("the script runs")
    }

    /// The script fails with this reason, and no release has a name.
    fn refuses(&self, version: &str, reason: &str) {
        let done = self.fetch(version);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains(reason), "`{reason}` in: {said}");
        assert_eq!(String::from_utf8_lossy(&done.stdout), "");
        let cache = self.home.path().join("cache/baton/etcd");
        let entries = fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let visible: Vec<_> = entries.filter(|name| !name.to_string_lossy().ends_with(".lock")).collect();
        assert!(visible.is_empty(), "{visible:?}");
    }
}

fn run(command: &mut Command) -> Output {
    let done = command.output().expect("it runs");
    assert!(done.status.success(), "{done:?}");
    done
}

#[test]
fn a_release_comes_from_the_mirror_once() {
    let Some(place) = Place::new() else { return };
    for _ in 0..2 {
        let done = place.fetch("3.4");
        let bin = PathBuf::from(String::from_utf8_lossy(&done.stdout).trim());
        assert_eq!(bin, place.home.path().join("cache/baton/etcd/3.4.23/bin"), "{done:?}");
        assert_eq!(said_by(&bin.join("etcd")).expect("it runs").to_string(), "3.4.23");
        assert!(bin.join("etcdctl").exists());
        // The second time there is no mirror to come from.
        let _ = fs::remove_dir_all(place.release());
    }
}

#[test]
fn an_archive_with_another_checksum_is_refused() {
    let Some(place) = Place::new() else { return };
    let mut bytes = fs::read(place.archive()).expect("read");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(place.archive(), bytes).expect("written");
    place.refuses("3.4", "and SHA256SUMS says");
}

#[test]
fn an_archive_that_is_not_listed_is_refused() {
    let Some(place) = Place::new() else { return };
    fs::write(place.release().join("SHA256SUMS"), "").expect("written");
    place.refuses("3.4", "does not list");
}

#[test]
fn an_executable_of_another_release_is_refused() {
    let Some(place) = Place::new() else { return };
    let script = "#!/bin/sh\necho 'etcd Version: 3.4.22'\n";
    fs::write(place.home.path().join(STEM).join("etcd"), script).expect("written");
    place.pack();
    place.sum();
    place.refuses("3.4", "the executable says it is 'etcd Version: 3.4.22'");
}

#[test]
fn a_release_that_the_mirror_lacks_is_refused() {
    let Some(place) = Place::new() else { return };
    place.refuses("3.4.99", "404");
    place.refuses("3.4.x", "neither a release");
}
