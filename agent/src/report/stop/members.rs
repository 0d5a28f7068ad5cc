//! How refusals of a change of members are told.

use super::{Context, Stop, reason::Reason};
use crate::{keys::change::Change, plan::membership::refusal::MembersRefusal, report::names::printable};

const THEN: &str = "then: agent run";

/// What brings a member back whose data is gone.
pub(super) fn back_by_itself(name: &str) -> String {
    format!("a playbook of `kind: Replace` with `member: {name}` and `by: {name}` brings it back")
}

impl Context<'_> {
    pub(super) fn refused_members(&self, refusal: &MembersRefusal) -> Stop {
        let name = |member| self.names.member(member);
        let list = |names: &[std::sync::Arc<str>]| {
            names.iter().map(|name| printable(name).to_string()).collect::<Vec<_>>().join(", ")
        };
        match refusal {
            MembersRefusal::ForeignChange { member, is_listed } => {
                let message = match is_listed {
                    true => format!("{} is a member, and not by this run", name(*member)),
                    false => format!("{} is no member any more, and not by this run", name(*member)),
                };
                let left = "somebody else changes the members; `agent resume` takes them as they are now";
                self.stop(Reason::ForeignChange, message, "status").leaving(left)
            }
            MembersRefusal::SameName { name } => {
                let message = format!("two members have the name {}", printable(name));
                let left = "give each a name of its own, or take one out with `etcdctl member remove`";
                self.stop(Reason::NameTaken, message, "status").leaving(left)
            }
            MembersRefusal::NameTaken { name: taken, member } => {
                let message = format!("the newcomer's name {} is that of member {member}", printable(taken));
                self.stop(Reason::NameTaken, message, "validate").leaving("another name for the newcomer")
            }
            MembersRefusal::UrlTaken { url, member } => {
                let message = format!("the newcomer is to be reached at {}, as {} is", printable(url), name(*member));
                self.stop(Reason::NameTaken, message, "validate").leaving("correct `nodes[].peer_urls`")
            }
            MembersRefusal::NotAMember { name } => {
                let message = format!("{} is to be replaced, and no member has that name", printable(name));
                self.stop(Reason::TargetRefused, message, "status").leaving("correct `replace.member`")
            }
            MembersRefusal::StillThere { member, is_emptied } => {
                let message = format!("{} is to come back by its own name, and it is there and ready", name(*member));
                let left = match is_emptied {
                    true => "it runs on data that is gone from its directory: end its process, then run this",
                    false => "another name in `replace.by`",
                };
                self.stop(Reason::TargetRefused, message, "status").leaving(left)
            }
            MembersRefusal::SameHost { member, by } => {
                let message = format!(
                    "{} would be replaced by {} on the same host while it is ready",
                    name(*member),
                    printable(by)
                );
                let left = "a newcomer on another host; both would be lost with this one";
                self.stop(Reason::TargetRefused, message, "validate").leaving(left)
            }
            MembersRefusal::AddsAndDrops { adds, drops } => {
                let message = format!("`members` adds {} and leaves out {}", list(adds), list(drops));
                let left = "replace members with `kind: Replace` first, one by one; then scale";
                self.stop(Reason::TargetRefused, message, "validate").leaving(left)
            }
            MembersRefusal::DownToOne => {
                let message = "one voter would be left, and with it every restart is an outage".to_owned();
                let left = "`strategy.allow_downtime: true` allows it";
                self.stop(Reason::TargetRefused, message, "validate").leaving(left)
            }
            MembersRefusal::SeveralReleases { member, release, other } => {
                let message = format!("{} runs {release}, and another voter {other}", name(*member));
                self.stop(Reason::SeveralReleases, message, "status").leaving("end that upgrade or downgrade first")
            }
            MembersRefusal::NoPlace { seat } => {
                let seat = printable(seat);
                let message =
                    format!("{seat} is to join, and the playbook does not say where its data is and how it is reached");
                let left = "`data_dir` and `peer_urls` beside its `name`";
                self.stop(Reason::NewcomerUnfit, message, "validate").leaving(left)
            }
            MembersRefusal::DataGone { seat, member } => {
                let seat = printable(seat);
                let message = format!(
                    "the data of {} is gone, or its disk is not mounted; a member does not begin anew",
                    name(*member)
                );
                self.stop(Reason::DataGone, message, "status").leaving(&back_by_itself(&seat))
            }
            MembersRefusal::RunsAlready { seat } => {
                let message = format!("{} is to join, and its process runs already, as no member", printable(seat));
                self.stop(Reason::NewcomerUnfit, message, "status").leaving("end that process")
            }
            MembersRefusal::ForeignData { seat, cluster } => {
                let message = format!("the data directory of {} holds data of the cluster {cluster}", printable(seat));
                let left = "correct `data_dir`, or move that data away";
                self.stop(Reason::NewcomerUnfit, message, "validate").leaving(left)
            }
            MembersRefusal::ListedData { seat, member } => {
                let message = format!("the data directory of {} holds data of {}", printable(seat), name(*member));
                let left = match self.change {
                    Some(Change::Replace(replace)) if replace.member == replace.by => {
                        "start it from that; where it does not start, move that directory away, and run this again"
                    }
                    _ => "correct `data_dir`, or `--wal-dir` where that is wrong; nothing was moved",
                };
                self.stop(Reason::NewcomerUnfit, message, "validate").leaving(left)
            }
            MembersRefusal::UnknownData { seat, why } => {
                let message = format!("it is not known whose data {} has: {}", printable(seat), printable(why));
                let left = "correct `data_dir` and `--wal-dir`; nothing is put aside that may be a member's, and what is \
                            surely nobody's is yours to move away";
                self.stop(Reason::NewcomerUnfit, message, "validate").leaving(left)
            }
            MembersRefusal::SeatOfAnother { seat, host_name } => {
                let message = format!("{} is joining from {}", printable(seat), printable(host_name));
                self.seat_of_another(message, seat)
            }
            MembersRefusal::JoinLeft { seat, host_name } => {
                let message =
                    format!("{} has begun to join from {}, which takes no part", printable(seat), printable(host_name));
                self.seat_of_another(message, seat)
            }
            MembersRefusal::HostMarked { host_name, by } => {
                let (host, by) = (printable(host_name), printable(by));
                let message = format!("{host} is marked to go by {by}, so no member joins there");
                let left = format!("another host; or take the mark away: {} {host} --undo", self.command("drain"));
                self.stop(Reason::HostMarked, message, "status").leaving(&left)
            }
            MembersRefusal::LearnerInTheWay { member } => {
                let message = format!("{} is a learner, and the cluster takes no other beside it", name(*member));
                let left = format!("`etcdctl member promote {member}`, or `etcdctl member remove {member}`; {THEN}");
                self.stop(Reason::LearnerInTheWay, message, "status").leaving(&left)
            }
        }
    }

    fn seat_of_another(&self, message: String, seat: &str) -> Stop {
        let left =
            format!("run it there; where that host is gone for good: {} {}", self.command("abandon"), printable(seat));
        self.stop(Reason::SeatOfAnother, message, "status").leaving(&left)
    }
}
