//! File capabilities (capabilities(7)): what a program may by its file, such as to listen below port 1024.
//!
//! A release that is unpacked has none: what a program may is the operator's to say, and is taken over from no other
//! file. That a node needs those of its old executable cannot be known; that it had them can.

use std::path::{Path, PathBuf};

use crate::words::typed;

/// Where the kernel keeps them.
const ATTRIBUTE: &str = "security.capability";
/// More than any version of them takes, in bytes.
const MOST: usize = 256;

/// The old executable has some, and the new one has others or none.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} has not the file capabilities of {}, so a node that needs them would not start; give them to it: {}; or, where \
     they are not needed: setcap -r {}",
    new.display(), old.display(), command(old, new), word(old)
)]
pub struct NotTakenOver {
    /// The executable that has them.
    old: PathBuf,
    /// The one that is to take its place.
    new: PathBuf,
}

/// Refuses a new executable that has not what the old one has.
pub fn check(old: &Path, new: &Path) -> Result<(), NotTakenOver> {
    match of(old) {
        Some(capabilities) if of(new).as_ref() != Some(&capabilities) => {
            Err(NotTakenOver { old: old.into(), new: new.into() })
        }
        _ => Ok(()),
    }
}

/// What is to be known of an executable that will be replaced by one that is not unpacked yet.
pub fn warning(old: &Path) -> Option<String> {
    of(old)?;
    let old = old.display();
    Some(format!("{old} has file capabilities; the run unpacks the new release, and then says how to give it the same"))
}

fn of(file: &Path) -> Option<Vec<u8>> {
    let mut value = vec![0; MOST];
    // A file system that keeps none has none.
    let length = rustix::fs::getxattr(file, ATTRIBUTE, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

fn command(old: &Path, new: &Path) -> String {
    format!("setcap \"$(getcap {} | awk '{{print $NF}}')\" {}", word(old), word(new))
}

fn word(path: &Path) -> String {
    typed(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{XattrFlags, setxattr};

    use super::*;

    #[test]
    fn a_new_executable_must_have_what_the_old_one_has() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        fs::write(&old, "").unwrap();
        fs::write(&new, "").unwrap();
        check(&old, &new).unwrap();
        assert_eq!(warning(&old), None);
        let give = |file: &Path, capability: u32| {
            let value = [0x0200_0001, 1 << capability, 0, 0, 0].map(u32::to_le_bytes).concat();
            setxattr(file, ATTRIBUTE, &value, XattrFlags::empty()).is_ok()
        };
        if !give(&old, 10) {
            return eprintln!("skipped: only root can give files capabilities");
        }
        for wrong in [None, Some(12)] {
            wrong.map(|capability| give(&new, capability));
            let error = check(&old, &new).unwrap_err().to_string();
            let (old, new) = (old.display(), new.display());
            assert!(error.contains(&format!("setcap \"$(getcap {old} | awk '{{print $NF}}')\" {new};")), "{error}");
        }
        assert!(warning(&old).is_some());
        give(&new, 10);
        check(&old, &new).unwrap();
    }
}
