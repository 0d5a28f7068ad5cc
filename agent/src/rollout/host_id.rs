//! Which host an agent speaks for.

use serde::{Deserialize, Serialize};

/// A host, told apart by its machine and by its state directory, never by its name: names change and repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId {
    /// The machine id; `None` where there is none.
    pub machine: Option<u128>,
    /// A random id kept in the state directory.
    pub instance: u128,
}
