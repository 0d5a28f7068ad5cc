//! As whom a program runs: user, group and all further groups.
//!
//! Read off the system's list of users, or off a process that runs. The owner of `/proc/PID` is not asked: a process can
//! make that root (proc(5), `PR_SET_DUMPABLE`).

use std::{ffi::CString, fs, io};

use nix::unistd::{Gid, Uid, User, getgrouplist};

use crate::host::program::path_owner::Writers;

/// A user with its groups, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

/// The group of a user that the system's list does not have.
const NOGROUP: u32 = 65534;

impl Credentials {
    pub fn own() -> Self {
        let groups = nix::unistd::getgroups().unwrap_or_default();
        Self {
            uid: Uid::effective().as_raw(),
            gid: Gid::effective().as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
        }
    }

    /// Those of a user by its name; `None` when there is no such user.
    pub fn of_name(name: &str) -> io::Result<Option<Self>> {
        User::from_name(name)?.map(Self::of_user).transpose()
    }

    /// Those of a user by its number. One that is on no list has no group that means anything.
    pub fn of_uid(uid: u32) -> io::Result<Self> {
        match User::from_uid(Uid::from_raw(uid))? {
            Some(user) => Self::of_user(user),
            None => Ok(Self { uid, gid: NOGROUP, groups: Vec::new() }),
        }
    }

    fn of_user(user: User) -> io::Result<Self> {
        let name = CString::new(user.name).map_err(io::Error::other)?;
        let groups = getgrouplist(&name, user.gid)?;
        let groups = groups.into_iter().map(Gid::as_raw).collect();
        Ok(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw(), groups })
    }

    /// Those of a process that runs.
    ///
    /// # Errors
    /// It has ended; or it runs as two users at once, as a program with a set-id bit does, and so as neither.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let status = fs::read(format!("/proc/{pid}/status"))?;
        let parsed = parse(&String::from_utf8_lossy(&status));
        parsed.ok_or_else(|| io::Error::other(format!("pid {pid} runs as more than one user")))
    }

    /// What this agent may run a program as: only root may become another user.
    pub fn that_may_be_had(self) -> Self {
        if Uid::effective().is_root() { self } else { Self::own() }
    }

    /// Who may write to what runs as this user.
    pub fn writers(&self) -> Writers {
        Writers::own().and(self.uid)
    }
}

/// Reads `/proc/<pid>/status` (proc_pid_status(5)): real, effective, saved and file system's id. A process names itself
/// in the first line, and cannot end that.
fn parse(status: &str) -> Option<Credentials> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().map(|id| id.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    let one = |ids: Vec<u32>| ids.first().copied().filter(|first| ids.len() == 4 && ids.iter().all(|id| id == first));
    Some(Credentials { uid: one(field("Uid")?)?, gid: one(field("Gid")?)?, groups: field("Groups")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_of_one_user_or_of_none() {
        let status = |name: &str, uid: &str, groups: &str| {
            format!("Name:\t{name}\nUmask:\t0022\nUid:\t{uid}\nGid:\t7\t7\t7\t7\nFDSize:\t64\nGroups:\t{groups} \n")
        };
        for (text, expected) in [
            (status("etcd", "5\t5\t5\t5", "7 8"), Some((5, 7, vec![7, 8]))),
            (status("etcd", "5\t5\t5\t5", ""), Some((5, 7, vec![]))),
            // The kernel writes a newline in a name as `\n`.
            (status("x\\nUid:\\t0\\t0\\t0\\t0", "5\t5\t5\t5", ""), Some((5, 7, vec![]))),
            (status("passwd", "5\t0\t0\t0", ""), None),
            (status("dropped", "5\t5\t0\t5", ""), None),
            (status("cut", "5\t5", ""), None),
            (status("odd", "5\t5\t5\tx", ""), None),
            (String::new(), None),
        ] {
            let expected = expected.map(|(uid, gid, groups)| Credentials { uid, gid, groups });
            assert_eq!(parse(&text), expected, "{text}");
        }
    }

    #[test]
    fn this_process_is_read_as_it_is() {
        let own = Credentials::own();
        let read = Credentials::of_process(std::process::id()).unwrap();
        assert_eq!((read.uid, read.gid), (own.uid, own.gid));
        assert_eq!(Credentials::of_name("no such user").unwrap(), None);
        assert_eq!(Credentials::of_name("root").unwrap(), Some(Credentials::of_uid(0).unwrap()));
    }
}
