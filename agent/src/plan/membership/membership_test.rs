use std::collections::{BTreeMap, BTreeSet};

use proto::{ClusterId, LogIndex};

use super::{
    survey::{Data, Place},
    *,
};
use crate::{
    keys::{
        AttemptId, Intent, Keys, ProcessId, Run, RunId, RunResult, RunState, StepLock,
        change::{Replace, Scale},
        host_id::HostId,
        membership::{Expected, RoleChange, Stage},
        rules::Rules,
        seat::{Seat, Seats},
    },
    observe::view::{Answer, ClusterView, Health},
    plan::{
        Me,
        forecast::{Action, End},
        membership::forecast::MemberAction,
        next, samples,
    },
};

/// One decision: a view in short, members named by their ids, this host's seat, and what the run has.
struct Asked {
    view: ClusterView,
    me: Me,
    membership: Membership,
    survey: Survey,
    run: Option<RunState>,
    step: Option<StepLock>,
    joined: Option<RunId>,
    is_window_over: bool,
}

fn scale(members: &[&str]) -> Change {
    Change::Scale(Scale { members: members.iter().map(|name| Arc::from(*name)).collect() })
}

fn replace(member: &str, by: &str) -> Change {
    Change::Replace(Replace { member: member.into(), by: by.into() })
}

fn url(id: u64) -> String {
    format!("http://h{id}")
}

impl Asked {
    /// This host has this seat and no data; the run has begun with the members that are in the view, its newcomer apart.
    fn new(change: Change, view: &str, seat: u64) -> Self {
        let view = samples::view(view);
        let me = samples::me(&[seat]);
        let host = Some(me.host);
        let is_voter = |id: u64| view.voters().any(|voter| voter.id == MemberId(id));
        let member = is_voter(seat).then_some(MemberId(seat));
        let seats = Seats(vec![Seat { name: seat.to_string().into(), host, member }]);
        let intent = Arc::new(Intent { change, ..(*me.intent).clone() });
        let listed = view.members.iter().map(|one| (one.id, BTreeSet::from([url(one.id.0)]))).collect();
        let survey =
            Survey { listed, places: vec![Place { peer_urls: vec![url(seat)], data: Data::None, runs: false }] };
        let asked = Self {
            me: Me { seats, intent, ..me },
            membership: Membership::default(),
            survey,
            view,
            run: Some(RunState::Rolling),
            step: None,
            joined: None,
            is_window_over: true,
        };
        let began = initial(&asked.me.intent, &asked.view, &asked.survey);
        let expected =
            began.expected.into_iter().filter(|one| !one.is_learner || one.member != MemberId(seat)).collect();
        Self { membership: Membership { expected, ..began }, ..asked }
    }

    fn data(mut self, data: Data, runs: bool) -> Self {
        self.survey.places[0] = Place { data, runs, ..self.survey.places[0].clone() };
        self
    }

    fn of_member(self, cluster: u64, member: u64, runs: bool) -> Self {
        self.data(Data::Of { cluster: ClusterId(cluster), member: MemberId(member) }, runs)
    }

    /// The seat's newcomer is so far, with this id.
    fn joining(mut self, stage: Stage, id: Option<u64>) -> Self {
        let seat = &self.me.seats.0[0];
        let join = Join {
            seat: seat.name.clone(),
            host: self.me.host,
            host_name: "here".into(),
            attempt: AttemptId(1),
            peer_urls: self.survey.places[0].peer_urls.clone(),
            member: id.map(MemberId),
            stage,
        };
        self.membership = self.membership.with_join(join);
        self
    }

    fn before_a_run(mut self) -> Self {
        self.run = None;
        self
    }

    /// Its run has come to this.
    fn after(mut self, result: RunResult) -> Self {
        self.run = Some(RunState::Done { result });
        self
    }

    fn next(&self) -> Next {
        let (rules, keys) = (Rules::default(), self.keys());
        let Self { is_window_over, joined, .. } = *self;
        let case = samples::case(&self.me, &rules, &keys, &self.view);
        next(&Case { survey: Some(&self.survey), is_window_over, joined, ..case })
    }

    fn keys(&self) -> Keys {
        let run = |state: &RunState| Run { intent: self.me.intent.clone(), ..samples::run(state.clone()) };
        let run = self.run.as_ref().map(run).map(|run| samples::at(run.with_membership(self.membership.clone())));
        Keys { run, step: self.step.clone().map(samples::at), ..Keys::default() }
    }

    /// This host's removal of this member is in hand.
    fn removing(mut self, member: u64) -> Self {
        let (host, role) = (self.me.host, Some(RoleChange::Leave));
        let process = ProcessId::default();
        self.step = Some(StepLock { member: MemberId(member), host, role, process, ..samples::record() });
        self
    }

    /// Whether its newcomer is foreseen to be taken back, where this host's agent is at the first start of `begins`.
    fn is_taken_back(&self, begins: Option<AttemptId>) -> bool {
        let foreseen = forecast::forecast(&self.me, &self.keys(), (&self.view, &self.survey), begins, &[]);
        assert_eq!(foreseen.end, End::Done(RunResult::Reached));
        foreseen.steps.iter().any(|step| step.action == Action::Member(MemberAction::TakeBack))
    }

    /// In a word.
    fn word(&self) -> String {
        match self.next() {
            Next::Members(Move::Note(after)) => match after.join(&self.me.seats.0[0].name).map(|join| &join.stage) {
                Some(stage) => format!("note {stage:?}").split(" {").next().unwrap_or_default().to_lowercase(),
                None => "forget".into(),
            },
            Next::Members(Move::Lock(step)) => format!("{:?} {}", step.change, step.member.0).to_lowercase(),
            Next::Members(other) => format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_lowercase(),
            Next::Refuse(Refusal::Members(refusal)) => {
                format!("refuse {refusal:?}").split(" {").next().unwrap_or_default().to_owned()
            }
            Next::Refuse(refusal) => format!("refuse {refusal:?}").split(" {").next().unwrap_or_default().to_owned(),
            Next::Wait(wait) => format!("wait {wait:?}").split(" {").next().unwrap_or_default().to_owned(),
            other => format!("{other:?}").split([' ', '(']).next().unwrap_or_default().to_lowercase(),
        }
    }
}

const FIVE: [&str; 5] = ["1", "2", "3", "4", "5"];

#[test]
fn a_newcomer_takes_a_place_only_beside_voters_that_are_ready() {
    for (view, expected) in [
        ("1+ 2+ 3*", "note reserved"),
        ("1+ 2- 3*", "refuse NotReady"),
        ("1+ 2~ 3*", "wait Ready"),
        ("1+ 2+ 3* 9l", "refuse LearnerInTheWay"),
        ("1+ 2+ 3* 9?", "refuse LearnerInTheWay"),
        ("1+ 2+ 3* 4+", "finish"), // it votes already, and the fifth has no agent
    ] {
        assert_eq!(Asked::new(scale(&FIVE), view, 4).word(), expected, "{view}");
    }
}

#[test]
fn whoever_votes_by_the_run_is_in_nobodys_way_though_a_look_before_has_it_as_a_learner() {
    let mut asked = Asked::new(scale(&FIVE), "1+ 2+ 3* 4l", 5);
    asked.membership.expected.retain(|one| one.member != MemberId(4));
    assert_eq!(asked.word(), "refuse ForeignChange");
    asked.membership.expected.push(expected_of(MemberId(4)));
    assert_eq!(asked.word(), "note reserved");
}

#[test]
fn a_newcomers_place_is_held_against_the_list_and_the_disk() {
    let four = || Asked::new(scale(&FIVE), "1+ 2+ 3*", 4);
    let at = |id| {
        let mut asked = four();
        asked.survey.places[0].peer_urls = vec![url(id)];
        asked
    };
    for (what, asked, expected) in [
        ("another's URL", at(1), "refuse UrlTaken"),
        ("no directory", four().data(Data::Unnamed, false), "refuse NoPlace"),
        ("another cluster's data", four().of_member(9, 7, false), "refuse ForeignData"),
        ("a member's data", four().of_member(0xc, 1, false), "refuse ListedData"),
        ("data of nobody knows whom", four().data(Data::Unknown("x".into()), false), "refuse UnknownData"),
        ("a database without a log", four().data(Data::NoLog, false), "refuse UnknownData"),
        ("a process that is no member", four().data(Data::None, true), "refuse RunsAlready"),
        ("a former member's data", four().of_member(0xc, 7, false), "note reserved"),
        ("the same, with its place", four().of_member(0xc, 7, false).joining(Stage::Reserved, None), "archive"),
        (
            "a member's data, with its place",
            four().of_member(0xc, 1, false).joining(Stage::Reserved, None),
            "refuse ListedData",
        ),
    ] {
        assert_eq!(asked.word(), expected, "{what}");
    }
}

#[test]
fn an_id_is_of_no_use_without_its_data() {
    let four = |stage, view| Asked::new(scale(&FIVE), view, 4).joining(stage, Some(4));
    let given_up = || Stage::GivenUp { why: "x".into() };
    for (what, asked, expected) in [
        ("it was just added", four(Stage::Added, "1+ 2+ 3* 4?"), "note starting"),
        ("it begins", four(Stage::Starting, "1+ 2+ 3* 4?").of_member(0xc, 4, false), "start"),
        ("its data is gone", four(Stage::Starting, "1+ 2+ 3* 4?"), "note givenup"),
        ("it catches up", four(Stage::Starting, "1+ 2+ 3* 4?").of_member(0xc, 4, true), "wait CatchUp"),
        ("it is ready", four(Stage::Starting, "1+ 2+ 3* 4l").of_member(0xc, 4, true), "promote 4"),
        ("a voter is not", four(Stage::Starting, "1+ 2- 3* 4l").of_member(0xc, 4, true), "refuse NotReady"),
        ("it is listed no more", four(Stage::Starting, "1+ 2+ 3*").of_member(0xc, 4, true), "note givenup"),
        ("it is taken back", four(given_up(), "1+ 2+ 3* 4l").of_member(0xc, 4, true), "takeback"),
        ("it is no member any more", four(given_up(), "1+ 2+ 3*").of_member(0xc, 4, true), "retire"),
        ("nothing is left of it", four(given_up(), "1+ 2+ 3*"), "forget"),
    ] {
        assert_eq!(asked.word(), expected, "{what}");
    }
}

#[test]
fn a_newcomer_that_catches_up_is_told_with_what_it_lacks() {
    for (leader, newcomer, expected) in [(45_678, 100, 40_000), (109, 100, 9), (100, 100, 0), (90, 100, 0)] {
        let mut asked =
            Asked::new(scale(&FIVE), "1+ 2+ 3* 4l", 4).joining(Stage::Starting, Some(4)).of_member(0xc, 4, true);
        for (member, applied) in [(2, leader), (3, newcomer)] {
            let Answer::Reported(report) = &mut asked.view.members[member].answer else { unreachable!("it answers") };
            report.applied = LogIndex(applied);
        }
        let Answer::Reported(report) = &mut asked.view.members[3].answer else { unreachable!("it answers") };
        report.health = Health::CatchingUp { reason: "behind".into() };
        let next = asked.next();
        let Next::Wait(Wait::CatchUp { silence: None, behind, .. }) = next else { unreachable!("{next:?}") };
        assert_eq!(behind, expected, "{newcomer} of {leader}");
    }
}

#[test]
fn a_newcomer_that_its_host_begins_is_not_foreseen_to_be_taken_back() {
    let (change, view) = (|| replace("1", "4"), "1+ 2+ 3* 4?");
    let own = Asked::new(change(), view, 4).joining(Stage::Starting, Some(4));
    assert!(!own.is_taken_back(Some(AttemptId(1))));
    assert!(own.is_taken_back(None), "nobody begins it, and its data is gone");
    let of_another = Asked { membership: own.membership, ..Asked::new(change(), view, 1) };
    assert!(!of_another.is_taken_back(None), "its host is taken to be at it");
}

#[test]
fn a_member_that_is_ready_goes_only_once_its_replacement_votes() {
    for (view, seat, expected) in [
        ("1+ 2+ 3*", 1, "finish"),
        ("1+ 2+ 3* 4l", 1, "finish"),
        ("1+ 2+ 3* 4+", 1, "leave 1"),
        ("1* 2+ 3+ 4+", 1, "handover"),
        ("1+ 2- 3* 4+", 1, "refuse NotReady"),
    ] {
        let mut asked = Asked::new(replace("1", "4"), view, seat);
        asked.membership.expected = asked.view.members.iter().map(|one| expected_of(one.id)).collect();
        assert_eq!(asked.word(), expected, "{view}");
    }
}

fn expected_of(member: MemberId) -> Expected {
    Expected { member, is_learner: false }
}

#[test]
fn a_dead_member_is_removed_by_whoever_takes_part_if_a_majority_of_the_others_is_ready() {
    for (view, expected) in [
        ("1. 2+ 3*", "leave 1"),
        ("1- 2+ 3*", "leave 1"),
        ("1. 2. 3*", "refuse BelowQuorum"),
        ("1. 2+ 3* 4+ 5+", "leave 1"),
        ("1. 2. 3* 4+ 5+", "leave 1"),
    ] {
        assert_eq!(Asked::new(replace("1", "9"), view, 9).word(), expected, "{view}");
    }
}

#[test]
fn members_that_others_change_stop_the_run() {
    let asked = |view: &str| Asked::new(scale(&FIVE), "1+ 2+ 3*", 4).seen(view);
    for (view, expected) in [
        ("1+ 2+ 3*", "note reserved"),
        ("1+ 2+ 3* 7+", "refuse ForeignChange"),
        ("1+ 3*", "refuse ForeignChange"),
        // Whoever never started costs nothing, and is named where it has the place.
        ("1+ 2+ 3* 7?", "refuse LearnerInTheWay"),
    ] {
        assert_eq!(asked(view).word(), expected, "{view}");
    }
    // A voter counts before it has started. None is added so by a run.
    let mut added = asked("1+ 2+ 3* 7?");
    added.view.members[3].role = Role::Voter;
    assert_eq!(added.word(), "refuse ForeignChange");
    let resumed = Asked { me: Me { verb: Verb::Resume, ..added.me.clone() }, ..added };
    let Next::Members(Move::Note(accepted)) = resumed.next() else { unreachable!("{:?}", resumed.next()) };
    let accepted = Asked { membership: accepted, me: Me { verb: Verb::Run, ..resumed.me.clone() }, ..resumed };
    assert_eq!(accepted.word(), "refuse NotReady");
}

impl Asked {
    /// The same run, and other members than it began with.
    fn seen(self, view: &str) -> Self {
        let later = Self::new(self.me.intent.change.clone(), view, 4);
        Self { membership: self.membership, ..later }
    }
}

#[test]
fn what_cannot_be_had_is_refused_before_a_run_begins() {
    for (change, view, seat, expected) in [
        (scale(&FIVE), "1+ 2+ 3*", 4, "begin"),
        (scale(&["1", "2", "3"]), "1+ 2+ 3*", 1, "finish"),
        (scale(&["1", "2", "4"]), "1+ 2+ 3*", 4, "refuse AddsAndDrops"),
        (scale(&["1"]), "1+ 2+ 3*", 2, "refuse DownToOne"),
        (scale(&["1", "2", "3"]), "1+ 2+ 3* 4+ 5-", 4, "begin"), // who is not ready goes
        (scale(&FIVE), "1+ 2- 3*", 4, "refuse NotReady"),
        (replace("9", "4"), "1+ 2+ 3*", 4, "refuse NotAMember"),
        (replace("1", "2"), "1+ 2+ 3*", 4, "refuse NameTaken"),
        (replace("1", "1"), "1+ 2+ 3*", 1, "refuse StillThere"),
        (replace("1", "1"), "1. 2+ 3*", 1, "begin"),
        (replace("1", "4"), "2+ 3* 4+", 4, "finish"),
    ] {
        let named = format!("{change:?} {view}");
        assert_eq!(Asked::new(change, view, seat).before_a_run().word(), expected, "{named}");
    }
    let mut both = Asked::new(replace("1", "4"), "1+ 2+ 3*", 1).before_a_run();
    both.me.seats.0.push(Seat { name: "4".into(), host: Some(HostId { machine: None, instance: 1 }), member: None });
    both.survey.places.push(both.survey.places[0].clone());
    assert_eq!(both.word(), "refuse SameHost");
}

#[test]
fn a_member_that_is_none_any_more_is_stopped_for_good() {
    let gone = |runs| Asked::new(scale(&["1", "2", "3"]), "1+ 2+ 3*", 4).of_member(0xc, 4, runs).before_a_run();
    assert_eq!(gone(true).word(), "retire");
    assert_eq!(gone(false).word(), "retire");
    let others: BTreeMap<_, _> = BTreeMap::from([(MemberId(4), BTreeSet::from([url(4)]))]);
    let mut listed = gone(true);
    listed.survey.listed.extend(others);
    assert_ne!(listed.word(), "retire", "a listed member's data stays where it is");
    // It does not know yet that it was removed, and says that all is as it was.
    let mut unaware = Asked::new(scale(&["1", "2", "3"]), "1+ 2+ 3* 4+", 4).of_member(0xc, 4, true).before_a_run();
    unaware.survey.listed.remove(&MemberId(4));
    assert_eq!(unaware.word(), "retire");
    // The step of its removal ends first: others may see to the end of the run meanwhile.
    let removed = |view| Asked::new(scale(&["1", "2", "3"]), view, 4).of_member(0xc, 4, true).removing(4);
    assert_eq!(removed("1+ 2+ 3*").word(), "end");
    let mut unaware = removed("1+ 2+ 3* 4+");
    unaware.survey.listed.remove(&MemberId(4));
    assert_eq!(unaware.word(), "retire", "nobody waits for one that says that it is a member");
    // An old folder in the playbook of a member that serves: its process is not touched.
    let serves = Asked::new(scale(&["1", "2", "3"]), "1+ 2+ 3*", 1).of_member(0xc, 7, true);
    assert_eq!(serves.word(), "settle");
}

#[test]
fn a_member_that_lost_its_data_after_it_was_promoted_is_told() {
    let asked = || Asked::new(scale(&["1", "2", "3"]), "1. 2+ 3*", 1);
    assert_eq!(asked().before_a_run().word(), "refuse DataGone");
    assert_eq!(asked().word(), "refuse DataGone");
    assert_eq!(asked().after(RunResult::Reached).word(), "refuse DataGone");
    // Also where another one is replaced; but not the one that is to go.
    let beside = |member: &str| Asked::new(replace(member, "4"), "1. 2+ 3*", 1).before_a_run().word();
    assert_eq!(beside("2"), "refuse DataGone");
    assert_ne!(beside("1"), "refuse DataGone");
}

#[test]
fn a_member_that_came_back_comes_back_again_once_its_data_is_lost_again() {
    let after = |view| Asked::new(replace("1", "1"), view, 1).after(RunResult::Reached);
    for (what, asked, expected) in [
        ("it serves", after("1+ 2+ 3*").of_member(0xc, 1, true), "finish"),
        ("it is down, with its data", after("1. 2+ 3*").of_member(0xc, 1, false), "wait Ready"),
        ("it is about to write its first file", after("1. 2+ 3*").data(Data::None, true), "wait Ready"),
        ("its data is gone", after("1. 2+ 3*"), "begin"),
        ("a start without its log has left a database", after("1. 2+ 3*").data(Data::NoLog, false), "begin"),
    ] {
        assert_eq!(asked.word(), expected, "{what}");
    }
}

#[test]
fn what_a_start_without_its_log_has_left_is_put_aside_once_the_old_member_is_gone() {
    let back = |view| Asked::new(replace("1", "1"), view, 1).data(Data::NoLog, false);
    assert_eq!(back("1. 2+ 3*").before_a_run().word(), "begin");
    assert_eq!(back("2+ 3*").joining(Stage::Reserved, None).word(), "archive");
}

#[test]
fn a_member_comes_back_by_itself_in_the_middle_of_an_upgrade() {
    for (by, expected) in [("1", "begin"), ("4", "refuse SeveralReleases")] {
        let mut asked = Asked::new(replace("1", by), "1. 2+ 3*", by.parse().unwrap()).before_a_run();
        samples::with_release(&mut asked.view, 1, "3.5.30");
        assert_eq!(asked.word(), expected, "by {by}");
    }
}

#[test]
fn whoever_resumed_a_run_ends_with_it() {
    let resumed = |joined| {
        let mut asked = Asked::new(scale(&["1", "2", "3"]), "1+ 2+ 3*", 1).after(RunResult::Reached);
        asked.me.verb = Verb::Resume;
        Asked { joined, ..asked }.word()
    };
    assert_eq!(resumed(None), "refuse NothingToResume");
    assert_eq!(resumed(Some(samples::run(RunState::Rolling).id)), "finish");
}

#[test]
fn a_leaver_waits_for_its_replacement_only_while_somebody_brings_it() {
    let mut asked = Asked::new(replace("1", "4"), "1+ 2+ 3*", 1);
    assert_eq!(asked.word(), "finish", "nobody is at work on it");
    asked.is_window_over = false;
    assert_eq!(asked.word(), "wait Seats");
}
