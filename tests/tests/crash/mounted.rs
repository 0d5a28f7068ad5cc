//! File systems of a test's own, where this machine and user can mount any.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use tests::Error;

/// A folder on a file system of its own; unmounted with this value.
pub struct Mounted {
    folder: PathBuf,
}

impl Mounted {
    /// A tmpfs of this many bytes.
    pub fn tmpfs(folder: &Path, size: usize) -> Result<Self, Error> {
        fs::create_dir_all(folder)?;
        let options = format!("size={size}");
        run("mount", &["-t", "tmpfs", "-o", &options, "baton-test", text(folder)?])?;
        Ok(Self { folder: folder.into() })
    }

    /// Takes all of its space.
    pub fn fill(&self) -> Result<(), Error> {
        let mut ballast = File::create(self.ballast())?;
        while ballast.write(&[1; 4096]).is_ok_and(|written| written > 0) {}
        Ok(())
    }

    /// Gives the space back.
    pub fn make_space(&self) -> Result<(), Error> {
        Ok(fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a test that fails may have left a process in it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), Error> {
    let done = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&done.stderr).trim()).into()),
    }
}

fn text(path: &Path) -> Result<&str, Error> {
    Ok(path.to_str().ok_or("a path that is no text")?)
}
