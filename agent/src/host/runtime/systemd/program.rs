//! Whether a program's path leads through a symlink: only then does a switch of that change what is started.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// As many links are followed (path_resolution(7)).
const MOST: usize = 40;

/// Whether whoever runs `program` goes by the symlink `link`. Folders on the way may be links themselves.
pub(super) fn leads_through(program: &Path, link: &Path) -> bool {
    let Some(link) = at_home(link) else { return false };
    let mut at = program.to_owned();
    for _ in 0..MOST {
        let Some(here) = at_home(&at) else { return false };
        if here == link {
            return true;
        }
        let Ok(target) = fs::read_link(&here) else { return false };
        at = here.parent().unwrap_or(Path::new("/")).join(target);
    }
    false
}

/// The path with its folder followed, and its last part as it is.
fn at_home(path: &Path) -> Option<PathBuf> {
    Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_path_by_way_of_the_link_leads_through_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("opt/releases")).unwrap();
        fs::create_dir(at("bin")).unwrap();
        fs::write(at("opt/releases/etcd"), "").unwrap();
        for (target, link) in [
            ("releases/etcd", "opt/current"),
            ("../opt/current", "bin/etcd"),
            ("../opt/releases/etcd", "bin/past-it"),
            ("../opt/current/nothing", "bin/into-a-file"),
            ("itself", "bin/itself"),
            ("opt", "alias"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        for (program, expected) in [
            ("opt/current", true),
            ("alias/current", true),
            ("bin/etcd", true),
            ("opt/../bin/etcd", true),
            ("opt/releases/etcd", false),
            ("bin/past-it", false),
            ("bin/into-a-file", false),
            ("bin/itself", false),
            ("bin/absent", false),
            ("absent/etcd", false),
        ] {
            assert_eq!(leads_through(&at(program), &at("opt/current")), expected, "{program}");
            assert_eq!(leads_through(&at(program), &at("alias/current")), expected, "{program}");
        }
    }
}
