//! What a database of etcd says of the cluster: two of its buckets. Source: etcd v3.6.14, `server/storage/schema/`.

use std::{collections::BTreeMap, fs::File};

use proto::{MemberId, Revision};
use serde::Deserialize;

use super::bbolt::{Database, Unread};
use crate::observe::view::Role;

/// How many members are read; a list of them has no more, and etcd advises seven.
const MAX_MEMBERS: usize = 64;

/// What is known of the cluster from one member's database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Who is a member, and as what; by 3.6 and later nobody else is.
    pub members: BTreeMap<MemberId, Role>,
    pub auth_is_on: bool,
}

/// Why nothing is known by it.
#[derive(Debug, thiserror::Error)]
pub enum NotUnderstood {
    #[error(transparent)]
    Unread(#[from] Unread),
    #[error("it is no database of etcd: it has no bucket `{0}`")]
    NoBucket(&'static str),
    #[error("its entry `{0}` of the members is not understood")]
    Member(String),
    #[error("it has more than {MAX_MEMBERS} members")]
    TooMany,
}

/// A member as etcd writes it, as JSON.
#[derive(Deserialize)]
struct Stored {
    #[serde(rename = "isLearner", default)]
    is_learner: bool,
}

impl Content {
    /// Reads a file that was written whole.
    ///
    /// # Errors
    /// [`NotUnderstood`].
    pub fn read(file: File) -> Result<Self, NotUnderstood> {
        let database = Database::open(file)?;
        let stored = database.bucket("members")?.ok_or(NotUnderstood::NoBucket("members"))?;
        if stored.len() > MAX_MEMBERS {
            return Err(NotUnderstood::TooMany);
        }
        let members = stored.iter().map(|(key, value)| {
            let key = String::from_utf8_lossy(key);
            member(&key, value).ok_or_else(|| NotUnderstood::Member(key.chars().take(32).collect()))
        });
        let members = members.collect::<Result<_, _>>()?;
        Ok(Self { members, auth_is_on: auth_is_on(&database)? })
    }
}

/// Whether users are asked who they are.
///
/// # Errors
/// It cannot be read.
pub(super) fn auth_is_on(database: &Database) -> Result<bool, Unread> {
    // None where nobody has ever used it.
    let auth = database.bucket("auth")?.unwrap_or_default();
    Ok(auth.iter().any(|(key, value)| key == b"authEnabled" && value == &[1]))
}

/// The revision of the last write that is in it. Keys are revisions there: eight bytes, the greatest first (etcd v3.6.14,
/// `server/storage/mvcc/revision.go`).
pub fn revision(file: File) -> Option<Revision> {
    let key = Database::open(file).ok()?.last_key("key").ok()??;
    Some(Revision(i64::from_be_bytes(key.get(..8)?.try_into().ok()?)))
}

fn member(key: &str, value: &[u8]) -> Option<(MemberId, Role)> {
    let stored: Stored = serde_json::from_slice(value).ok()?;
    let role = if stored.is_learner { Role::Learner } else { Role::Voter };
    Some((key.parse().ok()?, role))
}
