//! Who may change what is found under a name. Pure: from owner and mode alone.
//!
//! Root and the agent's own user are trusted, nobody else. An ACL (acl(5)) that lets others write shows in the bits of
//! the group, which are its mask.
//!
//! `host/program/path_owner.rs` judges the way to a program by another rule: there one more user may write, and a group of nobody
//! else, as users have one each, since a program is often that user's own. What is written here as root is never.

use std::path::Path;

use super::error::Unguarded;

/// Write permission for the group and for everybody.
const OTHERS_WRITE: u32 = 0o022;
/// Write permission for everybody.
const EVERYBODY_WRITES: u32 = 0o002;
/// In a folder with this bit nobody renames or removes what is another's (`S_ISVTX`, inode(7)).
const STICKY: u32 = 0o1000;

/// Owner and permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) owner: u32,
    pub(super) mode: u32,
}

/// Whether others may add names to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Own,
    /// Others may, but can not change what is ours, as in `/tmp`: each name in it is to be judged by its owner.
    Shared,
    /// A group may, and may exchange what is ours for something else of ours, as in Ubuntu's `/var/log` (root:syslog, 0775).
    Group,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Folders in which nobody can exchange what is ours.
    Strict,
    /// Between them, folders that a group may write to, too. Such a group can at most have another of root's own folders
    /// found in the place of the one that was meant: so it is for what is only appended to.
    PastGroups,
}

/// Judges a folder on the way; `us` is the agent's user.
pub(super) fn folder(path: &Path, bits: Bits, us: u32, way: Way) -> Result<Sharing, Unguarded> {
    owner(path, bits.owner, us)?;
    match (bits.mode & OTHERS_WRITE, bits.mode & STICKY) {
        (0, _) => Ok(Sharing::Own),
        (_, 0) if way == Way::PastGroups && bits.mode & EVERYBODY_WRITES == 0 => Ok(Sharing::Group),
        (_, 0) => Err(Unguarded::Writable { path: path.into(), mode: bits.mode & 0o7777 }),
        _ => Ok(Sharing::Shared),
    }
}

/// Judges whose something is.
pub(super) fn owner(path: &Path, owner: u32, us: u32) -> Result<(), Unguarded> {
    match owner == 0 || owner == us {
        true => Ok(()),
        false => Err(Unguarded::Owner { path: path.into(), owner, us }),
    }
}

/// Judges a file whose content the agent believes.
pub(super) fn believed(path: &Path, bits: Bits, us: u32) -> Result<(), Unguarded> {
    owner(path, bits.owner, us)?;
    match bits.mode & OTHERS_WRITE {
        0 => Ok(()),
        _ => Err(Unguarded::Writable { path: path.into(), mode: bits.mode & 0o7777 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_agents_user_may_change_what_is_found() {
        let path = Path::new("/a");
        let wrong_owner = |owner, us| Unguarded::Owner { path: path.into(), owner, us };
        let open = |mode| Unguarded::Writable { path: path.into(), mode };
        for (owner, mode, us, expected) in [
            (0, 0o755, 0, Ok(Sharing::Own)),
            (0, 0o755, 7, Ok(Sharing::Own)),
            (7, 0o700, 7, Ok(Sharing::Own)),
            (7, 0o700, 0, Err(wrong_owner(7, 0))), // root trusts no user's folder
            (8, 0o755, 7, Err(wrong_owner(8, 7))),
            (0, 0o775, 0, Err(open(0o775))),   // a group, or an ACL with its mask
            (0, 0o2775, 0, Err(open(0o2775))), // set-group-id is not sticky
            (0, 0o777, 7, Err(open(0o777))),
            (0, 0o1777, 0, Ok(Sharing::Shared)),
            (8, 0o1777, 0, Err(wrong_owner(8, 0))), // its owner may take the bit away
        ] {
            assert_eq!(folder(path, Bits { owner, mode }, us, Way::Strict), expected, "{owner} {mode:o} seen by {us}");
        }
        for (owner, mode, expected) in [
            (0, 0o775, Ok(Sharing::Group)),
            (0, 0o755, Ok(Sharing::Own)),
            (0, 0o1777, Ok(Sharing::Shared)),
            (0, 0o777, Err(open(0o777))),
            (7, 0o775, Err(wrong_owner(7, 0))),
        ] {
            assert_eq!(folder(path, Bits { owner, mode }, 0, Way::PastGroups), expected, "{owner} {mode:o}");
        }
        for (owner, mode, us, expected) in [
            (0, 0o644, 0, Ok(())),
            (7, 0o600, 7, Ok(())),
            (7, 0o600, 0, Err(wrong_owner(7, 0))),
            (0, 0o1666, 0, Err(open(0o1666))), // sticky says nothing of a file
        ] {
            assert_eq!(believed(path, Bits { owner, mode }, us), expected, "{owner} {mode:o} seen by {us}");
        }
    }
}
