//! What a refusal must leave as it was: processes, executables and links of every member, and the keys
//! that agents share.

use std::{collections::BTreeMap, fs, path::PathBuf};

use crate::{Error, client::Client, cluster::Layout};

/// Where agents keep their keys.
pub const PREFIX: &str = "/baton/";

/// How a cluster stands, seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Each member's process, the file it runs and where its symlink points.
    pub members: BTreeMap<String, (Option<i32>, Option<PathBuf>, PathBuf)>,
    /// The agents' keys, by name.
    pub keys: Vec<String>,
}

impl Standing {
    /// How it stands now; asked through the first member that answers.
    ///
    /// # Errors
    /// A link cannot be read, or no member answers.
    pub async fn of(layout: &Layout) -> Result<Self, Error> {
        let mut members = BTreeMap::new();
        for member in &layout.members {
            let process = member.process();
            let runs = process.as_ref().and_then(crate::process::Process::executable);
            let link = fs::read_link(member.binary())?;
            members.insert(member.name.clone(), (process.map(|process| process.pid), runs, link));
        }
        Ok(Self { members, keys: keys(layout).await? })
    }
}

/// The names of the keys that agents have left.
///
/// # Errors
/// No member answers.
pub async fn keys(layout: &Layout) -> Result<Vec<String>, Error> {
    let mut last: Error = "no members".into();
    for member in &layout.members {
        match Client::new(&member.client_url, &layout.access())?.under(PREFIX).await {
            Ok(found) => return Ok(found.iter().map(|kv| String::from_utf8_lossy(&kv.key).into_owned()).collect()),
            Err(status) => last = status.into(),
        }
    }
    Err(last)
}
