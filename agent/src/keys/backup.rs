//! The backup that was made before a run changed anything: where it lies, and what is in it. Written by the host that made it.

use std::sync::Arc;

use proto::{MemberId, Revision};
use serde::{Deserialize, Serialize};

use crate::sha256::Sha256;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backup {
    /// The host that has it, for people.
    pub host_name: Arc<str>,
    /// Where it lies there.
    pub path: Arc<str>,
    /// Whose database it is.
    pub member: MemberId,
    /// The revision of its last write; none where the database is another program's, or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Of the database, without the checksum behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// How long the file is, its checksum included.
    pub bytes: u64,
}
