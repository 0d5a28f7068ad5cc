//! Who may do what with a file: owner, mode, and what else the system keeps with it.
//!
//! Extended attributes (xattr(7)) hold ACLs, the labels of a security module and capabilities. A file that takes another's
//! place without them may be closed to whoever could read the other.

use std::{
    collections::BTreeMap,
    fs::{File, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
};

use serde::{Deserialize, Serialize};

use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr},
    io::Errno,
};

/// The ACL of a file that has more than its mode says.
const ACL: &str = "system.posix_acl_access";
/// What the kernel derives from a file's content, and keeps by itself: another content has another one.
const OF_THE_CONTENT: [&str; 2] = ["security.ima", "security.evm"];
/// The most that a list of names, or a value, may take, in bytes (`XATTR_LIST_MAX`, `XATTR_SIZE_MAX`).
const MOST: usize = 65_536;

/// Extended attributes: names, such as `security.selinux`, and their values. A name is any bytes but NUL. As JSON a list of
/// pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(Vec<u8>, Vec<u8>)>", into = "Vec<(Vec<u8>, Vec<u8>)>")]
pub struct Attributes(BTreeMap<Vec<u8>, Vec<u8>>);

impl From<Vec<(Vec<u8>, Vec<u8>)>> for Attributes {
    fn from(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl From<Attributes> for Vec<(Vec<u8>, Vec<u8>)> {
    fn from(attributes: Attributes) -> Self {
        attributes.0.into_iter().collect()
    }
}

/// Who may do what with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Permission bits, such as `0o640`.
    pub mode: u32,
    /// Owner and group; `None` leaves them to the system: the agent's own.
    pub owner: Option<(u32, u32)>,
    /// Its extended attributes; `None` leaves them to the system.
    pub attributes: Option<Attributes>,
}

impl Access {
    /// For the agent's own eyes.
    pub const PRIVATE: Self = Self::of_mode(0o600);

    /// The agent's own file with this mode.
    pub const fn of_mode(mode: u32) -> Self {
        Self { mode, owner: None, attributes: None }
    }

    pub(super) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let owner = Some((metadata.uid(), metadata.gid()));
        Ok(Self { mode: metadata.mode() & 0o7777, owner, attributes: Some(attributes(file)?) })
    }

    /// Whether a file with that access is as this one wants it.
    pub(crate) fn is_met_by(&self, found: &Self) -> bool {
        self.mode == found.mode
            && (self.owner.is_none() || self.owner == found.owner)
            && (self.attributes.is_none() || self.attributes == found.attributes)
    }

    /// Gives it to a file. A change of owner clears set-id bits, and both that and a write clear capabilities: so the
    /// mode comes after the owner, and attributes last. The umask has no part in it.
    pub(super) fn give_to(&self, file: &File) -> io::Result<()> {
        if let Some((user, group)) = self.owner {
            fchown(file, Some(user), Some(group))?;
        }
        file.set_permissions(Permissions::from_mode(self.mode))?;
        let Some(Attributes(wanted)) = &self.attributes else { return Ok(()) };
        let named = |name: &[u8], error: Errno| {
            let (error, name) = (io::Error::from(error), String::from_utf8_lossy(name));
            io::Error::new(error.kind(), format!("its extended attribute {name} cannot be kept: {error}"))
        };
        let Attributes(found) = attributes(file)?;
        // One that the folder gave to it.
        if found.contains_key(ACL.as_bytes()) && !wanted.contains_key(ACL.as_bytes()) {
            fremovexattr(file, ACL).map_err(|error| named(ACL.as_bytes(), error))?;
        }
        wanted.iter().filter(|(name, value)| found.get(*name) != Some(value)).try_for_each(|(name, value)| {
            fsetxattr(file, &name[..], value, XattrFlags::empty()).map_err(|error| named(name, error))
        })
    }
}

/// All that can be given to another file; none where the file system has no such thing.
fn attributes(file: &File) -> io::Result<Attributes> {
    let mut names = vec![0; MOST];
    let length = match flistxattr(file, &mut names[..]) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Attributes::default()),
        length => length?,
    };
    let mut found = Attributes::default();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if OF_THE_CONTENT.iter().any(|of_the_content| of_the_content.as_bytes() == name) {
            continue;
        }
        let mut value = vec![0; MOST];
        match fgetxattr(file, name, &mut value[..]) {
            Ok(length) => value.truncate(length),
            // Gone meanwhile.
            Err(Errno::NODATA) => continue,
            Err(error) => return Err(error.into()),
        }
        found.0.insert(name.to_owned(), value);
    }
    Ok(found)
}
