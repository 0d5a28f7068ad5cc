//! The disk of a host: a layer of its own over the disk that all share.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::run;
use crate::Error;

/// Mounts a host's disk over the shared one, and returns where.
pub(super) fn mount(shared: &Path, home: &Path) -> Result<PathBuf, Error> {
    for folder in ["upper", "work", "root"] {
        fs::create_dir_all(home.join(folder))?;
    }
    let (root, home) = (home.join("root"), home.display());
    let layers = format!("lowerdir={},upperdir={home}/upper,workdir={home}/work", shared.display());
    run("mount", &["-t", "overlay", "overlay", "-o", &layers, &root.to_string_lossy()])?;
    Ok(root)
}

/// Unmounts whatever is mounted below this folder, the innermost first.
pub(super) fn unmount_below(folder: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let targets = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for target in targets.filter(|target| Path::new(target).starts_with(folder)).collect::<Vec<_>>().into_iter().rev() {
        // Lazily: whoever looks into it just now is to keep nothing from its end.
        let _ = run("umount", &["--lazy", target]);
    }
}
