//! File systems of one's own, where this machine and user can mount any.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Error,
    wait::{self, GENEROUS},
};

/// `EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH`: from now on nothing reaches the image, not even
/// what is in the file system's own journal but not on disk. Unsafe code, so not in this language.
const SHUTDOWN: &str = "import fcntl, os, struct, sys\n\
    fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))\n";

/// A folder on a file system of its own; unmounted with this value.
pub struct Mounted {
    folder: PathBuf,
    image: Option<PathBuf>,
}

impl Mounted {
    /// A tmpfs of this many bytes.
    pub fn tmpfs(folder: &Path, size: usize) -> Result<Self, Error> {
        fs::create_dir_all(folder)?;
        let options = format!("size={size},mode=0700");
        run("mount", &["-t", "tmpfs", "-o", &options, "baton-lab", text(folder)?])?;
        Ok(Self { folder: folder.into(), image: None })
    }

    /// What lies in this folder, as on a file system that became read-only: whoever opened a file before may write on.
    pub fn read_only(folder: &Path) -> Result<Self, Error> {
        run("mount", &["--bind", text(folder)?, text(folder)?])?;
        let mounted = Self { folder: folder.into(), image: None };
        run("mount", &["-o", "remount,ro,bind", text(folder)?])?;
        Ok(mounted)
    }

    /// An ext4 of this many bytes, in a file.
    pub fn ext4(folder: &Path, image: &Path, size: u64) -> Result<Self, Error> {
        fs::create_dir_all(folder)?;
        File::create(image)?.set_len(size)?;
        run("mkfs.ext4", &["-q", "-F", text(image)?])?;
        mount(image, folder)?;
        Ok(Self { folder: folder.into(), image: Some(image.into()) })
    }

    /// Writes all that is on it to disk: what was there long before the power is lost.
    pub fn sync(&self) -> Result<(), Error> {
        run("sync", &["-f", text(&self.folder)?])
    }

    /// Whatever was not synced is lost, and nothing can be written any more.
    pub fn lose_power(&self) -> Result<(), Error> {
        run("python3", &["-c", SHUTDOWN, text(&self.folder)?])
    }

    /// Mounts it again, as after a boot. Nobody may have a file open on it.
    ///
    /// A container that is started gets every mount there is into its own namespace until it has put them away, and as long
    /// the file system is kept as it was: then it is mounted once more.
    pub fn power_on(&self) -> Result<(), Error> {
        let image = self.image.as_deref().ok_or("no image")?;
        wait::until_blocking("a file system that can be written to again", GENEROUS, || {
            let on = || {
                run("umount", &[text(&self.folder)?])?;
                mount(image, &self.folder)?;
                Ok::<_, Error>(fs::write(self.folder.join("power"), "on")?)
            };
            on().map_err(|error| error.to_string())
        })?;
        Ok(())
    }

    pub fn fill(&self) -> Result<(), Error> {
        let mut ballast = File::create(self.ballast())?;
        while ballast.write(&[1; 4096]).is_ok_and(|written| written > 0) {}
        Ok(())
    }

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

fn mount(image: &Path, folder: &Path) -> Result<(), Error> {
    run("mount", &["-o", "loop", text(image)?, text(folder)?])
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
