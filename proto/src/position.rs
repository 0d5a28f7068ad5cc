//! Positions: in the store's history (revision), in the raft log (term, index), and the id of a lease.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A position in the key-value store's history; every write moves it up by one (etcd data model).
    Revision(i64)
);
number!(
    /// A raft term (raft paper, section 5.1).
    Term(u64)
);
number!(
    /// An index of the raft log; used for commit and applied index alike.
    LogIndex(u64)
);
number!(
    /// The id of a lease.
    LeaseId(i64)
);
