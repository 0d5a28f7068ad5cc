//! What a run changes, as the hosts share it. What each kind asks of a run is said in `plan/change/`.

use std::sync::Arc;

use proto::Release;
use semver::VersionReq;
use serde::{Deserialize, Serialize};

/// One kind of change. In the shared keys it goes by the kind's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// See [`Upgrade`].
    Upgrade(Upgrade),
    /// See [`Downgrade`].
    Downgrade(Downgrade),
    /// See [`Restart`].
    Restart(Restart),
    /// See [`Scale`].
    Scale(Scale),
    /// See [`Replace`].
    Replace(Replace),
}

/// Every member to a newer release, a minor up at most: one hop of a longer way (`hops.rs`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Upgrade {
    /// What a member must run to take part, unless it is at `to` already.
    pub from: VersionReq,
    /// The one release to reach.
    pub to: Release,
}

/// Every member to an older release, a minor down at most.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Downgrade {
    /// What a member must run to take part, unless it is at `to` already.
    pub from: VersionReq,
    /// The one release to reach.
    pub to: Release,
}

/// Every process anew, at the release it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Restart {
    /// Free text that tells this restart from the last: a ticket, a date.
    pub id: String,
}

/// Other members than there are: so many voters, by their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scale {
    /// Who votes at the end, each once, in order.
    pub members: Vec<Arc<str>>,
}

/// One member for another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replace {
    /// Who goes.
    pub member: Arc<str>,
    /// Who comes; the same name where a host lost its disk.
    pub by: Arc<str>,
}
