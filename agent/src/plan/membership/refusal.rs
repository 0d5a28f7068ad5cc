//! Why members are not changed, or not so.

use std::sync::Arc;

use proto::{ClusterId, MemberId, Release};

/// Each has its words in `report/stop/members.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MembersRefusal {
    /// The membership is not as the run left it: somebody else has changed it.
    ForeignChange {
        member: MemberId,
        /// Whether it is listed and was not to be; else the other way round.
        is_listed: bool,
    },
    /// Two members have this name.
    SameName { name: Arc<str> },
    /// A newcomer's name is that of another member.
    NameTaken { name: Arc<str>, member: MemberId },
    /// A newcomer's address is that of another member.
    UrlTaken { url: String, member: MemberId },
    /// Who is to be replaced is no member.
    NotAMember { name: Arc<str> },
    /// A member is to come back by its name, and is there; whether its process runs on data that nobody finds any more.
    StillThere { member: MemberId, is_emptied: bool },
    /// A member would be replaced by one on its own host.
    SameHost { member: MemberId, by: Arc<str> },
    /// A scaling would add and drop.
    AddsAndDrops { adds: Vec<Arc<str>>, drops: Vec<Arc<str>> },
    /// One voter is to be left of several.
    DownToOne,
    /// The voters run several releases.
    SeveralReleases { member: MemberId, release: Release, other: Release },
    /// The playbook does not say where a newcomer has its data, or is to be reached.
    NoPlace { seat: Arc<str> },
    /// A member that is to stay is down, and its data is gone.
    DataGone { seat: Arc<str>, member: MemberId },
    /// A newcomer's process runs, and is no member.
    RunsAlready { seat: Arc<str> },
    /// A newcomer's directory holds data of another cluster.
    ForeignData { seat: Arc<str>, cluster: ClusterId },
    /// A newcomer's directory holds data of a member.
    ListedData { seat: Arc<str>, member: MemberId },
    /// It is not understood whose data a newcomer's directory holds.
    UnknownData { seat: Arc<str>, why: Arc<str> },
    /// Another host's agent is at work on this seat, or was.
    SeatOfAnother { seat: Arc<str>, host_name: Arc<str> },
    /// A newcomer has the place, and its host takes no part.
    JoinLeft { seat: Arc<str>, host_name: Arc<str> },
    /// A newcomer's host is marked to go.
    HostMarked { host_name: Arc<str>, by: Arc<str> },
    /// A learner has the place, and is none of the run's.
    LearnerInTheWay { member: MemberId },
}
