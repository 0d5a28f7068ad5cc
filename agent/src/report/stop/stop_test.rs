//! Every end of the machine and every trouble, told: one table, its text kept as a snapshot.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use proto::{ClusterId, ClusterVersion, MemberId, Release};

use crate::{
    event::trouble::{LockLeft, Trouble},
    keys::{
        AttemptId, Pause, ProcessId, RunResult, StepLock,
        change::{Change, Upgrade},
        host_id::HostId,
    },
    machine::act::{Ending, Left},
    observe::view::ClusterView,
    plan::{
        Finish, Verb,
        hazard::Hazard,
        membership::refusal::MembersRefusal,
        refusal::{Difference, Refusal, Wait},
        samples,
    },
    report::{
        names::Names,
        stop::{self, Context, Progress, Reason, Stop},
    },
    unknown::Unknown,
};

const HOST: HostId = HostId { machine: Some(1), instance: 2 };

fn change() -> Change {
    Change::Upgrade(Upgrade { from: ">=3.4, <3.5".parse().unwrap(), to: Release::new(3, 5, 30) })
}

fn view() -> ClusterView {
    let mut view = samples::view("1+ 2. 3*");
    for (member, name) in view.members.iter_mut().zip(["orders-1", "orders-2", "orders-3"]) {
        member.name = name.into();
    }
    samples::with_release(&mut view, 0, "3.5.30");
    view
}

fn names(view: &ClusterView) -> Names {
    let mut names = Names::of(view);
    names.learn_host(HOST, "h2", [MemberId(2)]);
    names
}

fn record() -> StepLock {
    let process = ProcessId { boot_id: 1, pid_namespace: 1, pid: 4711, start_time: 3 };
    let (member, attempt) = (MemberId(2), AttemptId(5));
    StepLock {
        member,
        host: HOST,
        host_name: "h2".into(),
        attempt,
        process,
        back: false,
        guarded: None,
        role: None,
        unknown: Unknown::default(),
    }
}

fn told(ending: &Ending, change_context: impl FnOnce(&mut Context)) -> Stop {
    told_of(&view(), ending, change_context)
}

fn told_of(view: &ClusterView, ending: &Ending, change_context: impl FnOnce(&mut Context)) -> Stop {
    let change = change();
    let names = names(view);
    let mut context = Context {
        names: &names,
        view: Some(view),
        playbook: "upgrade.yaml",
        verb: Verb::Run,
        change: Some(&change),
        stale: None,
        down: &[],
        touched: false,
        require_complete: false,
    };
    change_context(&mut context);
    stop::of(ending, &context)
}

fn refusals() -> Vec<Refusal> {
    let (member, release) = (MemberId(3), Release::new(3, 3, 1));
    vec![
        Refusal::OtherRun {
            differs: vec![Difference { part: "to", standing: "3.5.1".into(), wanted: "3.5.30".into() }],
            begun_by: Some("h3".into()),
            takes_turns: false,
        },
        Refusal::GoingBack,
        Refusal::NothingToRollBack,
        Refusal::NothingToResume,
        Refusal::NoWayBack,
        Refusal::NotHeld,
        Refusal::OwnsNothing,
        Refusal::NoLeader,
        Refusal::LeaderVersion { member, release: release.clone() },
        Refusal::MemberVersion { member, release: release.clone() },
        Refusal::SkipsMinor { member, release: release.clone() },
        Refusal::StrictJoin { member },
        Refusal::Mixed { member, release },
        Refusal::Learner { member },
        Refusal::GoingDown { target: ClusterVersion { major: 3, minor: 5 } },
        Refusal::BelowQuorum { down: member, standing: 1, needed: 2 },
        Refusal::NotReady { member: MemberId(2) },
        Refusal::NoClusterVersion { member: MemberId(2) },
        Refusal::GatesUnsupported { member: MemberId(2) },
        Refusal::Hazard(Hazard::Quota { member, percent: 96 }),
        Refusal::Alarm { kind: "NOSPACE".into(), of: MemberId(2), alone: None },
        Refusal::Alarm { kind: "CORRUPT".into(), of: MemberId(2), alone: Some(member) },
        Refusal::Failed { member: MemberId(2), why: "it exits at once".into() },
        Refusal::Abandoned { record: record() },
        Refusal::TwinHost { host_name: "h9\u{1b}".into(), process: record().process },
        Refusal::StepOfAnother { record: record(), alive: true },
        Refusal::StepOfAnother { record: record(), alive: false },
    ]
    .into_iter()
    .chain(members_refusals().into_iter().map(Refusal::Members))
    .collect()
}

fn members_refusals() -> Vec<MembersRefusal> {
    let (member, name, host_name) = (MemberId(3), || "orders-4\u{1b}".into(), || "h9\u{1b}".into());
    let (release, other) = (Release::new(3, 5, 30), Release::new(3, 6, 14));
    vec![
        MembersRefusal::ForeignChange { member, is_listed: true },
        MembersRefusal::ForeignChange { member, is_listed: false },
        MembersRefusal::SameName { name: name() },
        MembersRefusal::NameTaken { name: name(), member },
        MembersRefusal::UrlTaken { url: "http://10.0.0.4:2380".into(), member },
        MembersRefusal::NotAMember { name: name() },
        MembersRefusal::StillThere { member, is_emptied: false },
        MembersRefusal::StillThere { member, is_emptied: true },
        MembersRefusal::SameHost { member, by: name() },
        MembersRefusal::AddsAndDrops { adds: vec![name()], drops: vec!["orders-1".into(), "orders-2".into()] },
        MembersRefusal::DownToOne,
        MembersRefusal::SeveralReleases { member, release, other },
        MembersRefusal::NoPlace { seat: name() },
        MembersRefusal::RunsAlready { seat: name() },
        MembersRefusal::ForeignData { seat: name(), cluster: ClusterId(0xd) },
        MembersRefusal::ListedData { seat: name(), member },
        MembersRefusal::UnknownData { seat: name(), why: "its log has no beginning".into() },
        MembersRefusal::SeatOfAnother { seat: name(), host_name: host_name() },
        MembersRefusal::JoinLeft { seat: name(), host_name: host_name() },
        MembersRefusal::HostMarked { host_name: host_name(), by: "ops".into() },
        MembersRefusal::LearnerInTheWay { member },
    ]
}

fn waits() -> Vec<Wait> {
    let member = MemberId(2);
    vec![
        Wait::Answer,
        Wait::Record { member, host: HOST },
        Wait::Baton { host: HOST },
        Wait::OthersToJoin,
        Wait::Others { members: vec![MemberId(1), member] },
        Wait::Lowering { member, target: ClusterVersion { major: 3, minor: 5 } },
        Wait::Storage { member, target: ClusterVersion { major: 3, minor: 5 } },
        Wait::Ready { member },
        Wait::CatchUp { member, silence: None, behind: 40_000 },
        Wait::CatchUp { member, silence: Some("http://10.0.0.4:2379: no answer within 1 s".into()), behind: 0 },
        Wait::Seats { seats: vec!["orders-4".into()] },
        Wait::HeldHost { member, host_name: "h2".into(), hold: "backup".into(), owner: "ops".into() },
        Wait::OtherRun { begun_by: Some("h3".into()) },
        Wait::Rewritten { host_name: "h2".into() },
        Wait::Allowed { member: MemberId::default(), why: "etcdserver: too many learner members in cluster".into() },
        Wait::Allowed { member, why: "etcdserver: unhealthy cluster".into() },
        Wait::Paused {
            pause: Arc::new(Pause { by: "h2".into(), at: "2026-11-29T08:15:00Z".into(), why: Some("lunch".into()) }),
        },
        Wait::Window {
            opens: "Sat 2026-12-05 01:00 CET (`strategy.window: \"Sat 01:00-05:00 Europe/Berlin\"`)".into(),
        },
        Wait::FailedOwner { member },
        Wait::AbandonedStep { member },
        Wait::UnderAlarm {
            kind: "NOSPACE".into(),
            of: MemberId(3),
            alone: None,
            wait: Box::new(Wait::Record { member, host: HOST }),
        },
        Wait::UnderAlarm {
            kind: "NOSPACE".into(),
            of: MemberId(3),
            alone: Some(MemberId(1)),
            wait: Box::new(Wait::Ready { member }),
        },
    ]
}

fn endings() -> Vec<Ending> {
    let (member, why) = (MemberId(1), || "connection refused".into());
    let mut all = vec![
        Ending::Finished(Finish::Done(RunResult::Reached)),
        Ending::Finished(Finish::Done(RunResult::RolledBack)),
        Ending::Finished(Finish::NothingToDo),
        Ending::Finished(Finish::Partial { left: vec![MemberId(2), MemberId(3)] }),
        Ending::Finished(Finish::Closed { members: vec![MemberId(2)] }),
        Ending::Finished(Finish::Held { member: MemberId(3) }),
        Ending::Finished(Finish::Approved { left: vec![MemberId(2)] }),
        Ending::Unprepared("the artifact is no executable".into()),
        Ending::Hook { member, why: why() },
        Ending::HandOver { member, why: why() },
        Ending::NotBackedUp("/var/backups has 5 bytes free, and a backup may take 17000000".into()),
        Ending::NotLowered("etcdserver: invalid downgrade target version".into()),
        Ending::Step { member, why: why(), left: Left::PutBack },
        Ending::Step { member, why: why(), left: Left::AsItWas },
        Ending::Step { member, why: why(), left: Left::AsItIs },
        Ending::Step { member, why: why(), left: Left::NewBinaryKept },
        Ending::Sick { member, why: why() },
        Ending::NoQuorum { member },
        Ending::Finished(Finish::Unseated { seats: vec!["orders-4".into(), "orders-5".into()] }),
        Ending::NotJoined { seat: "orders-4".into(), why: why() },
        Ending::Seat { seat: "orders-4".into(), why: why() },
        Ending::NotSettled("cluster version 3.4 on orders-3".into()),
        Ending::NoAnswer { record: Some(member) },
        Ending::NoAnswer { record: None },
        Ending::Interrupted,
        Ending::Guarded { failed: None },
        Ending::Guarded { failed: Some("it ended with exit 3".into()) },
        Ending::MayGo,
        Ending::NotYet(Wait::Ready { member }),
    ];
    all.extend(refusals().into_iter().map(Ending::Refused));
    all.extend(waits().into_iter().map(Ending::Expired));
    all
}

fn troubles() -> Vec<Trouble> {
    let text = || "what the system said".to_owned();
    vec![
        Trouble::Usage(text()),
        Trouble::Playbook(text()),
        Trouble::NoSuchMember { typed: "orders-9\u{1b}".into(), members: "orders-1, orders-2".into() },
        Trouble::StateDirLocked(text()),
        Trouble::StateDir(text()),
        Trouble::JournalDamaged { text: text(), journal: "/s/journal".into() },
        Trouble::JournalNewer(text()),
        Trouble::OtherCluster(text()),
        Trouble::Unreachable(text()),
        Trouble::Credentials(text()),
        Trouble::AuthRefused(text()),
        Trouble::NotRoot { user: "bob".into() },
        Trouble::KeysForbidden { user: "bob".into() },
        Trouble::Denied(text()),
        Trouble::NewerAgent { key: "run".into(), host: Some("h9".into()) },
        Trouble::KeysDamaged(text()),
        Trouble::KeysTooLarge(text()),
        Trouble::NothingToAbandon { member: "orders-1".into() },
        Trouble::AgentAtWork { member: "orders-2 (2)".into(), host: "h2\u{1b}".into() },
        Trouble::NotConfirmed,
        Trouble::StepLockChanged { member: "orders-1".into() },
        Trouble::NoAnswer(text()),
        Trouble::Declined { down: vec!["m1".into()] },
        Trouble::Unprepared(text()),
        Trouble::System(text()),
        Trouble::NoGates,
        Trouble::KnownHazard { name: "orders-1".into(), id: "floor-36", shown: String::new() },
        Trouble::KnownHazard { name: "orders-1".into(), id: "zombie-members", shown: ", which shows it by a4".into() },
        Trouble::KnownHazard {
            name: "orders-1".into(),
            id: "setting-lost",
            shown: ", which is given `ETCD_ENABLE_V2`".into(),
        },
        Trouble::DataGone { name: "orders-1".into(), lock: None },
        Trouble::DataGone { name: "orders-1\u{1b}".into(), lock: Some(LockLeft::Gone) },
        Trouble::DataGone { name: "orders-1".into(), lock: Some(LockLeft::Perhaps) },
        Trouble::Alone { name: "orders-3 (a3)".into(), others: vec!["orders-1 (a1)".into(), "orders-2 (a2)".into()] },
        Trouble::Restoring { from: "/b/my saved.db".into(), words: " --from '/b/my saved.db'".into() },
        Trouble::Serves(text()),
        Trouble::BadBackup(text()),
        Trouble::NotRestored(text()),
        Trouble::LeftBeside,
        Trouble::AfterRestore {
            why: Box::new(Trouble::StateDir(text())),
            left: "the old data of m1 is /d\u{1b}.archived-1".into(),
        },
        Trouble::InterruptedAtOnce { member: None },
        Trouble::InterruptedAtOnce { member: Some((MemberId(1), "orders-1".into())) },
    ]
}

fn text(stop: &Stop) -> String {
    let next = stop.next.as_deref().unwrap_or("-");
    format!("{} {}: {}\n    left: {}\n    next: {next}\n", stop.exit, stop.reason.name(), stop.message, stop.left)
}

#[test]
fn every_end_is_told() {
    let told: String = endings().iter().map(|ending| text(&told(ending, |_| {}))).collect();
    insta::assert_snapshot!(told);
}

#[test]
fn every_trouble_is_told() {
    let told: String =
        troubles().iter().map(|trouble| text(&trouble.stop("run", Some("my plan.yaml"), false))).collect();
    insta::assert_snapshot!(told);
}

#[test]
fn every_reason_has_an_end_or_a_verb_that_it_stands_for() {
    let mut seen: BTreeSet<_> = endings().iter().map(|ending| told(ending, |_| {}).reason).collect();
    seen.extend(troubles().iter().map(|trouble| trouble.stop("run", None, false).reason));
    seen.insert(told(&Ending::Finished(Finish::Partial { left: vec![] }), |c| c.require_complete = true).reason);
    let verbs = [
        Reason::Planned,
        Reason::RunPaused,
        Reason::Resumed,
        Reason::NothingToPause,
        Reason::HandedOver,
        Reason::HostGoesDown,
        Reason::Looked,
        Reason::MembersAsExpected,
        Reason::MembersUnknown,
        Reason::MembersDiffer,
        Reason::Room,
        Reason::Clear,
        Reason::BackedUp,
        Reason::Restored,
        Reason::GivenUp,
        Reason::NoRoom,
        Reason::Valid,
        Reason::Abandoned,
        Reason::Fenced,
        Reason::Shown,
        Reason::Written,
        Reason::Cleared,
        Reason::FeatureOff,
        Reason::MatrixPassed,
        Reason::MatrixFailed,
        Reason::MatrixShowsNothing,
        Reason::Adopted,
        Reason::MayLeave,
        Reason::Unmarked,
        Reason::HoldAdded,
        Reason::HoldRemoved,
        Reason::NoSuchHost,
        Reason::HostHeld,
        Reason::MarkLifted,
        Reason::HoldOfAnother,
        Reason::HostOfAnother,
        Reason::RemovalBegun,
    ];
    seen.extend(verbs);
    assert_eq!(seen, Reason::ALL.iter().copied().collect());
}

#[test]
fn a_refusal_exits_3_before_and_1_after_a_member_was_stopped() {
    for refusal in refusals() {
        let ending = Ending::Refused(refusal.clone());
        let codes = [false, true].map(|touched| told(&ending, |context| context.touched = touched).exit);
        let expected = match refusal {
            Refusal::LeaderVersion { .. } => [4, 4],
            Refusal::OtherRun { .. } => [6, 6],
            Refusal::Failed { .. } => [1, 1],
            _ => [3, 1],
        };
        assert_eq!(codes, expected, "{refusal:?}");
    }
}

#[test]
fn what_is_not_seen_now_is_told_with_its_time_and_a_member_that_does_not_run_as_such() {
    let ending = Ending::Step { member: MemberId(2), why: "it ends".into(), left: Left::NewBinaryKept };
    let stop = told(&ending, |context| {
        context.stale = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(3_723));
        context.down = &[MemberId(2)];
    });
    let (_, left) = stop.left.split_once("; orders-2 is not running; last seen at 01:02:03 UTC: ").expect(&stop.left);
    assert!(left.contains("2 of 3 ready"), "{left}");
}

/// The cluster answers, and takes no writes. What was seen some time ago may stand no more.
#[test]
fn a_record_that_an_alarm_keeps_is_told_as_the_alarm() {
    let ending = Ending::NoAnswer { record: Some(MemberId(1)) };
    let under_alarm = samples::view("1! 2! 3!");
    let stop = told_of(&under_alarm, &ending, |context| context.touched = true);
    assert_eq!((stop.exit, stop.reason.name()), (1, "alarm"), "{stop:?}");
    for words in ["NOSPACE", "step lock"] {
        assert!(stop.message.contains(words), "{stop:?}");
    }
    assert!(stop.left.contains("etcdctl alarm disarm"), "{stop:?}");
    let past = told_of(&under_alarm, &ending, |context| context.stale = Some(SystemTime::UNIX_EPOCH));
    assert_eq!(past.reason.name(), "step_lock_left", "{past:?}");
}

/// A look that shows nothing names no other look: that would show as little.
#[test]
fn where_nobody_answers_or_leads_something_is_to_be_started_or_corrected() {
    let nobody = || Trouble::Unreachable("connection refused".into());
    for verb in ["status", "plan", "run"] {
        let next = nobody().stop(verb, Some("p.yaml"), false).next.unwrap();
        let expected = format!("start the members, or correct cluster.endpoints in p.yaml, then: agent {verb} p.yaml");
        assert_eq!(next, expected);
    }
    assert!(nobody().stop("status", None, false).next.unwrap().contains("--endpoints"));
    let no_leader = Ending::Refused(Refusal::NoLeader);
    let next = told(&no_leader, |_| {}).next.unwrap();
    assert_eq!(next, "start the members that are down, then: agent run upgrade.yaml");
    let next = told(&no_leader, |context| context.down = &[MemberId(2)]).next.unwrap();
    assert_eq!(next, "agent run upgrade.yaml", "which starts it first");
}

#[test]
fn who_is_refused_is_not_told_that_nobody_answers() {
    for (said, expected) in [
        ("the keys: etcdserver: permission denied", Reason::NotRoot),
        ("etcdserver: user name is empty", Reason::AuthRefused),
        ("no answer within 2 s", Reason::NoAnswer),
    ] {
        assert_eq!(Trouble::no_answer(said.into()).stop("keys", Some("p"), false).reason, expected, "{said}");
    }
    assert_eq!(Trouble::unanswered("no answer".into()).stop("keys", Some("p"), false).reason, Reason::Unreachable);
    assert_eq!(
        Trouble::refused("etcdserver: permission denied").stop("pause", Some("p"), false).reason,
        Reason::NotRoot
    );
}

/// One member's word is told as that, whoever it is about.
#[test]
fn an_alarm_that_one_member_alone_reports_is_told_as_its_word() {
    let ending = Ending::NoAnswer { record: Some(MemberId(1)) };
    let stop = told_of(&samples::view("1+ 2+ 3!"), &ending, |_| {});
    assert!(stop.message.starts_with("3 (3) alone reports the alarm NOSPACE of 1 (1), and the others"), "{stop:?}");
    let alone = Some(MemberId(3));
    let stop = told(&Ending::Refused(Refusal::Alarm { kind: "CORRUPT".into(), of: MemberId(2), alone }), |_| {});
    assert!(stop.message.starts_with("orders-3 (3) alone reports the alarm CORRUPT of orders-2 (2)"), "{stop:?}");
    assert!(stop.left.contains("look at that member"), "{stop:?}");
}

#[test]
fn nobody_begins_a_line_of_ours() {
    let text = "x\nnext:  rm".to_owned();
    for trouble in [Trouble::KeysDamaged(text.clone()), Trouble::AuthRefused(text)] {
        let stop = trouble.stop("run", None, false);
        assert_eq!(stop.message, r"x\nnext:  rm", "{trouble:?}");
    }
}

#[test]
fn require_complete_turns_partial_and_held_into_5() {
    let partial = Ending::Finished(Finish::Partial { left: vec![MemberId(2)] });
    let held = Ending::Finished(Finish::Held { member: MemberId(2) });
    let approved = Ending::Finished(Finish::Approved { left: vec![MemberId(2)] });
    for (ending, exit, cluster) in [
        (Ending::Finished(Finish::NothingToDo), 0, Progress::Done),
        (Ending::Finished(Finish::Done(RunResult::Reached)), 0, Progress::Done),
        (partial, 5, Progress::Partial),
        (held, 5, Progress::Held),
        (approved, 5, Progress::Partial),
    ] {
        let stop = told(&ending, |context| context.require_complete = true);
        assert_eq!((stop.exit, stop.cluster), (exit, Some(cluster)), "{ending:?}");
        assert_eq!(told(&ending, |_| {}).exit, 0);
    }
}

#[test]
fn nothing_a_server_says_reaches_a_terminal_raw() {
    let stop = told(&Ending::Sick { member: MemberId(1), why: "\u{1b}[2Jgone\n".into() }, |_| {});
    assert!(!stop.message.chars().any(char::is_control), "{:?}", stop.message);
}
