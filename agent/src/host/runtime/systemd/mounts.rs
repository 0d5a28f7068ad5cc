//! Where on the host lies what a unit's program calls by a path: a unit may have mounts of its own. Pure. Source: systemd.exec(5),
//! "Sandboxing".

use std::path::{Path, PathBuf};

/// The mounts of a unit that put something else in a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    /// What of the host, and in which place (`BindPaths=`, `BindReadOnlyPaths=`).
    pub binds: Vec<(PathBuf, PathBuf)>,
    /// Where there is nothing at each start (`TemporaryFileSystem=`).
    pub empty: Vec<PathBuf>,
}

/// Where a path of a unit's program leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lies {
    OnHost(PathBuf),
    /// In a file system that is made anew at each start.
    Nowhere,
}

impl Mounts {
    /// The mount that is nearest counts.
    pub fn place(&self, path: &Path) -> Lies {
        let bound = self.binds.iter().filter_map(|(source, place)| {
            let rest = path.strip_prefix(place).ok()?;
            let at = if rest.as_os_str().is_empty() { source.clone() } else { source.join(rest) };
            Some((place, Lies::OnHost(at)))
        });
        let empty = self.empty.iter().filter(|place| path.starts_with(place)).map(|place| (place, Lies::Nowhere));
        let nearest = empty.chain(bound).max_by_key(|(place, _)| place.components().count());
        nearest.map_or_else(|| Lies::OnHost(path.to_owned()), |(_, lies)| lies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = Mounts {
            binds: vec![("/var/lib/etcd".into(), "/data".into()), ("/disk".into(), "/tmp/kept".into())],
            empty: vec!["/tmp".into(), "/data/cache".into()],
        };
        for (path, expected) in [
            ("/var/lib/etcd", Some("/var/lib/etcd")),
            ("/data", Some("/var/lib/etcd")),
            ("/data/member", Some("/var/lib/etcd/member")),
            ("/database", Some("/database")),
            ("/data/cache/x", None),
            ("/tmp/etcd", None),
            ("/tmp/kept/etcd", Some("/disk/etcd")),
        ] {
            let expected = expected.map_or(Lies::Nowhere, |at| Lies::OnHost(at.into()));
            assert_eq!(mounts.place(Path::new(path)), expected, "{path}");
        }
    }
}
