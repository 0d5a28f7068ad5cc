//! A newcomer, from its place among the learners to the point where it could be promoted; and back, where it was given up.
//!
//! Source: agent/MEMBERS.md, "Join".

use std::sync::Arc;

use proto::MemberId;

use super::{
    Move, Standing,
    begin::comes_back,
    hold, is_learner, of_join, promote,
    refusal::MembersRefusal,
    refuse,
    survey::{Data, Place},
    waits_for,
};
use crate::{
    keys::{
        AttemptId,
        membership::{Join, Stage},
    },
    observe::view::{Answer, Member},
    plan::{Case, Next, refusal::Wait},
};

const NO_LOG: &str = "it has a database and no log";

/// Takes a place among the learners, if this seat's newcomer may come.
pub(super) fn reserve(standing: &Standing, at: usize, place: &Place) -> Option<Next> {
    let Standing { case, membership, .. } = *standing;
    let seat = &case.me.seats.0[at];
    if let Some(voter) = standing.voter(&seat.name) {
        return taken_name(standing, place, voter);
    }
    if let Some(objection) = unfit(standing, seat.name.clone(), place) {
        return Some(refuse(objection));
    }
    if let Some(next) = in_the_way(standing, place) {
        return Some(next);
    }
    let join = Join {
        seat: seat.name.clone(),
        host: case.me.host,
        host_name: case.me.host_name.clone(),
        attempt: AttemptId(case.fresh),
        peer_urls: place.peer_urls.clone(),
        member: None,
        stage: Stage::Reserved,
    };
    Some(Next::Members(Move::Note(membership.with_join(join))))
}

/// It votes already; another one of its name is told by where it is reached.
fn taken_name(standing: &Standing, place: &Place, voter: &Member) -> Option<Next> {
    let there = standing.survey.listed.get(&voter.id)?;
    let is_it = place.peer_urls.is_empty() || place.peer_urls.iter().any(|url| there.contains(url));
    (!is_it).then(|| refuse(MembersRefusal::NameTaken { name: voter.name.clone(), member: voter.id }))
}

/// What of this host is not as a newcomer needs it.
pub(super) fn unfit(standing: &Standing, seat: Arc<str>, place: &Place) -> Option<MembersRefusal> {
    if let Some(marked) = hold::marked(standing, standing.case.me.host) {
        return Some(marked);
    }
    if place.peer_urls.is_empty() || place.data == Data::Unnamed {
        return Some(MembersRefusal::NoPlace { seat });
    }
    // A dead member that goes first may have the same address: its host lost its disk.
    let goes = |id: &MemberId| standing.membership.leaving.contains(id);
    let taken = standing.listed_at(&place.peer_urls).filter(|id| !goes(id) && !is_left_over(standing, *id, place));
    if let Some(member) = taken {
        return Some(MembersRefusal::UrlTaken { url: place.peer_urls.join(", "), member });
    }
    data_objection(standing, seat.clone(), place).or_else(|| {
        let is_known = matches!(&place.data, Data::Of { member, .. } if standing.is_listed(*member));
        (place.runs && !is_known).then_some(MembersRefusal::RunsAlready { seat })
    })
}

/// A learner that a try before this one left: never started, or with the data that is here.
fn is_left_over(standing: &Standing, id: MemberId, place: &Place) -> bool {
    let Some(member) = standing.case.view.member(id) else { return true };
    let is_here = matches!(place.data, Data::Of { member, .. } if member == id);
    is_learner(member) && (member.has_never_started() || is_here)
}

/// Data that must not be put aside.
fn data_objection(standing: &Standing, seat: Arc<str>, place: &Place) -> Option<MembersRefusal> {
    match &place.data {
        Data::Of { cluster, .. } if *cluster != standing.case.view.cluster => {
            Some(MembersRefusal::ForeignData { seat, cluster: *cluster })
        }
        // A leaver's host that lost its disk has none; one that has is no dead host.
        Data::Of { member, .. } if standing.is_listed(*member) && !is_left_over(standing, *member, place) => {
            Some(MembersRefusal::ListedData { seat, member: *member })
        }
        Data::Unknown(why) => Some(MembersRefusal::UnknownData { seat, why: why.clone() }),
        // Of one that comes back by its name it is what a start without its log has left.
        Data::NoLog if !comes_back(&standing.case.me.intent.change) => {
            Some(MembersRefusal::UnknownData { seat, why: NO_LOG.into() })
        }
        Data::Unnamed | Data::None | Data::NoLog | Data::Of { .. } => None,
    }
}

/// Who has the place, or keeps the cluster from taking anybody.
fn in_the_way(standing: &Standing, place: &Place) -> Option<Next> {
    let Standing { case, membership, .. } = *standing;
    // No member tells what its `--max-learners` is.
    if let Some(join) = membership.joins.first().filter(|_| membership.joins.len() >= case.me.max_learners) {
        let host = case.keys.agents.contains_key(&join.host);
        let left = || refuse(MembersRefusal::JoinLeft { seat: join.seat.clone(), host_name: join.host_name.clone() });
        let waits = Next::Wait(Wait::Seats { seats: vec![join.seat.clone()] });
        return Some(if host || !case.is_window_over() { waits } else { left() });
    }
    let learner = case.view.members.iter().filter(|member| is_learner(member)).find(|member| {
        let is_own = standing.listed_at(&place.peer_urls) == Some(member.id);
        let is_its =
            |join: &Join| join.member == Some(member.id) || standing.listed_at(&join.peer_urls) == Some(member.id);
        // The run is newer than the look at the members: who votes by it is no learner any more.
        let votes_by_now = membership.expected.iter().any(|one| one.member == member.id && !one.is_learner);
        let has_joined = votes_by_now || membership.joins.iter().any(is_its);
        !is_own && !has_joined && standing.is_listed(member.id)
    });
    if let Some(learner) = learner {
        return Some(refuse(MembersRefusal::LearnerInTheWay { member: learner.id }));
    }
    // One that comes back by its name or its address cannot be listed twice.
    let is_same =
        |member: &&Member| standing.listed_at(&place.peer_urls) == Some(member.id) || wants_name(case, member);
    if let Some(same) = standing.leavers().find(is_same) {
        return Some(hold::until_it_goes(standing, same));
    }
    // The dead go first where the cluster takes nobody beside them.
    let mut leavers = standing.leavers().filter(|member| !member.is_ready());
    if let Some(dead) = leavers.next().filter(|_| !takes_a_learner(case)) {
        return Some(hold::until_it_goes(standing, dead));
    }
    let sick = case.view.voters().find(|voter| !voter.is_ready() && !membership.leaving.contains(&voter.id));
    sick.map(|member| waits_for(case, member.id))
}

fn wants_name(case: &Case, member: &Member) -> bool {
    super::wants(&case.me.intent.change, &member.name)
}

/// Whether etcd adds a learner while a voter is not there. Before 3.5.30 and 3.6.11 it wants all of them; later so many that one
/// more could be lost (seen, and in its `server/etcdserver/server.go`). What is not known is not tried.
pub(super) fn takes_a_learner(case: &Case) -> bool {
    let (voters, ready) = (case.view.voters().count(), case.view.voters().filter(|voter| voter.is_ready()).count());
    let is_late = |member: &Member| {
        member.release().is_some_and(|release| match (release.0.major, release.0.minor) {
            (3, 5) => release.0.patch >= 30,
            (3, 6) => release.0.patch >= 11,
            (3, minor) => minor >= 7 && release.0.patch >= 1,
            _ => false,
        })
    };
    voters == ready || (ready > voters.div_ceil(2) && case.view.voters().filter(|v| v.is_ready()).all(is_late))
}

/// A newcomer on its way.
pub(super) fn next(standing: &Standing, at: usize, place: &Place, join: &Join) -> Option<Next> {
    let Standing { case, membership, .. } = *standing;
    if join.host != case.me.host {
        return Some(refuse(MembersRefusal::SeatOfAnother {
            seat: join.seat.clone(),
            host_name: join.host_name.clone(),
        }));
    }
    let note = |join: Join| Some(Next::Members(Move::Note(membership.with_join(join))));
    let give_up = |why: Arc<str>| note(of_join(join, Stage::GivenUp { why }, join.member));
    if let (Some(why), false) = (case.join_failure, matches!(join.stage, Stage::GivenUp { .. })) {
        return match case.rules.given_up_is_said_first {
            true => give_up(why.clone()),
            false => take_back(standing, at, place, join, join.member),
        };
    }
    match (&join.stage, join.member) {
        (Stage::GivenUp { .. }, member) => take_back(standing, at, place, join, member),
        (Stage::Reserved, _) | (_, None) => add(standing, at, place, join),
        (Stage::Added | Stage::Starting, Some(id)) => match case.view.member(id).filter(|_| standing.is_listed(id)) {
            None => give_up("it was removed from the cluster by somebody else".into()),
            Some(member) if !is_learner(member) => Some(Next::Members(Move::Note(membership.with_voter(id)))),
            Some(member) => match (&join.stage, &place.data) {
                (_, Data::Of { member: other, .. }) if *other != id => Some(Next::Members(Move::Archive(at))),
                // It is about to write its first file.
                (Stage::Starting, Data::None | Data::NoLog | Data::Unknown(_)) if place.runs => {
                    Some(catches_up(standing, member))
                }
                (_, Data::NoLog) => give_up(format!("its data cannot be understood: {NO_LOG}").into()),
                (_, Data::Unknown(why)) => give_up(format!("its data cannot be understood: {why}").into()),
                (_, Data::Unnamed) => give_up("the playbook does not say any more where its data is".into()),
                (Stage::Starting, Data::Of { .. }) => match hold::marked(standing, join.host) {
                    Some(_) => give_up("its host was marked to go before it voted".into()),
                    None => up(standing, at, place, join, member),
                },
                (Stage::Starting, Data::None) if case.may_begin == Some(join.attempt) => {
                    Some(Next::Members(Move::Start(at, id)))
                }
                (Stage::Starting, Data::None) if !case.rules.lost_data_burns_the_id => {
                    Some(Next::Members(Move::Start(at, id)))
                }
                // What it has promised and acknowledged is gone, and the cluster would count on it.
                (Stage::Starting, Data::None) => {
                    give_up("it has no data, and its id is of no use without what it may have had".into())
                }
                _ => note(of_join(join, Stage::Starting, Some(id))),
            },
        },
    }
}

fn add(standing: &Standing, at: usize, place: &Place, join: &Join) -> Option<Next> {
    let Standing { case, membership, survey } = *standing;
    if let Some(objection) = data_objection(standing, join.seat.clone(), place) {
        return Some(refuse(objection));
    }
    if let Some(id) = standing.listed_at(&join.peer_urls) {
        let is_here = matches!(place.data, Data::Of { member, .. } if member == id);
        // With nothing to be put aside before, its start is next.
        let stage = if is_here || place.data == Data::None { Stage::Starting } else { Stage::Added };
        return Some(match is_left_over(standing, id, place) {
            true => Next::Members(Move::Note(membership.with_join(of_join(join, stage, Some(id))))),
            // Its host lost its disk: the old member goes first.
            false if membership.leaving.contains(&id) => match case.view.member(id) {
                Some(leaver) => hold::until_it_goes(standing, leaver),
                None => Next::Wait(Wait::Ready { member: id }),
            },
            false => refuse(MembersRefusal::UrlTaken { url: join.peer_urls.join(", "), member: id }),
        });
    }
    match &place.data {
        Data::Of { member, .. } if !survey.listed.contains_key(member) => {
            return Some(Next::Members(Move::Archive(at)));
        }
        Data::NoLog => return Some(Next::Members(Move::Archive(at))),
        _ => {}
    }
    if let Some(record) = hold::before_it_is_added(standing, join) {
        return Some(record);
    }
    let sick = case.view.voters().find(|voter| !voter.is_ready() && !membership.leaving.contains(&voter.id));
    Some(sick.map_or(Next::Members(Move::Add(at)), |member| waits_for(case, member.id)))
}

/// It has its data: it runs, takes in what there is, and is promoted.
fn up(standing: &Standing, at: usize, place: &Place, join: &Join, member: &Member) -> Option<Next> {
    match (place.runs, member.is_ready()) {
        (false, _) => Some(Next::Members(Move::Start(at, member.id))),
        (true, false) if standing.case.rules.learner_is_ready => Some(catches_up(standing, member)),
        (true, _) => Some(hold::before_it_votes(standing, join).unwrap_or_else(|| promote::promote(standing, member))),
    }
}

/// Its process runs.
fn catches_up(standing: &Standing, member: &Member) -> Next {
    let silence: Option<Arc<str>> = match &member.answer {
        Answer::Reported(_) => None,
        Answer::Silent { reason } => Some(reason.as_str().into()),
        Answer::NeverStarted => Some("no member has heard of it yet".into()),
    };
    let lag = standing.case.view.lag(member).unwrap_or(0);
    let digit = lag.checked_ilog10().map_or(1, |digits| 10_u64.pow(digits));
    Next::Wait(Wait::CatchUp { member: member.id, silence, behind: lag - lag % digit })
}

/// Removed, stopped, put aside, forgotten: in this order, so that whoever goes on finds where it is.
fn take_back(standing: &Standing, at: usize, place: &Place, join: &Join, member: Option<MemberId>) -> Option<Next> {
    let Standing { case, membership, .. } = *standing;
    let id = member.filter(|id| standing.is_listed(*id)).or_else(|| {
        let unstarted = |id: &MemberId| case.view.member(*id).is_some_and(Member::has_never_started);
        standing.listed_at(&join.peer_urls).filter(unstarted)
    });
    match id.and_then(|id| case.view.member(id)) {
        // Somebody promoted it all the same, who will have known why: a voter is not taken back.
        Some(voter) if !is_learner(voter) => Some(Next::Members(Move::Note(membership.with_voter(voter.id)))),
        Some(learner) => Some(Next::Members(Move::TakeBack(learner.id))),
        // It was begun by its own host, with nothing: whatever lies there is this try's.
        None if place.runs || !matches!(place.data, Data::None | Data::Unnamed) => {
            Some(Next::Members(Move::Retire(at)))
        }
        None => Some(Next::Members(Move::Note(membership.without_join(&join.seat)))),
    }
}
