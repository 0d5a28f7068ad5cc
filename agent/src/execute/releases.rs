//! The releases that lie beside a member's symlink, and which each of them is.

use std::path::{Path, PathBuf};

use proto::Release;

use super::node::{OwnNode, Side, Why, why};
use crate::host::executable;

impl OwnNode {
    /// Among the releases beside the link, the newest that `from` allows: what a member goes back to when
    /// the journal that knew it was lost.
    pub async fn previous(&self, from: &semver::VersionReq) -> Option<Side> {
        let entries = std::fs::read_dir(self.releases()?).ok()?;
        let mut found: Vec<Side> = Vec::new();
        for folder in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(executable) = executable_in(&folder, self.link.as_ref()?.link()) else { continue };
            if let Ok(release) = release_of(&executable).await {
                found.push(Side { release, executable: Some(executable) });
            }
        }
        found.retain(|side| from.matches(&side.release.0));
        found.into_iter().max_by(|one, other| one.release.cmp(&other.release))
    }
}

/// The release's folder holds the executable under the name it was installed with.
fn executable_in(folder: &Path, link: &Path) -> Option<PathBuf> {
    let named = folder.join(link.file_name()?);
    if named.is_file() {
        return Some(named);
    }
    let mut executables = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| executable::check(path).is_ok());
    executables.next().filter(|_| executables.next().is_none())
}

/// The release in the folder's name, which was checked when it was installed; else the binary is asked.
pub(super) async fn release_of(executable: &Path) -> Result<Release, Why> {
    let folder = executable.parent().filter(|folder| folder.parent().is_some_and(|above| above.ends_with("releases")));
    match folder.and_then(|folder| named_release(folder.file_name()?.to_str()?)) {
        Some(release) => Ok(release),
        None => executable::release(executable).await.map_err(|error| why(&error)),
    }
}

/// `3.5.30-` and twelve digits of its hash: a name that no packager gives.
fn named_release(folder: &str) -> Option<Release> {
    let (release, hash) = folder.rsplit_once('-')?;
    let is_hash = hash.len() == 12 && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    release.parse().ok().filter(|_| is_hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_an_agent_made_names_its_release() {
        for (folder, release) in [
            ("3.5.30-0123456789ab", Some("3.5.30")),
            ("3.5.30-rc.1-0123456789ab", Some("3.5.30-rc.1")),
            ("3.5.30-linux-amd64", None), // a packager's; read as a name of ours it would be a pre-release
            ("3.5.30", None),
            ("etcd-0123456789ab", None),
        ] {
            assert_eq!(named_release(folder).map(|release| release.to_string()).as_deref(), release, "{folder}");
        }
    }
}
