//! A rollout as it is told: lines, events, the result and the display, from one list of happenings.

use std::{
    fs,
    time::{Duration, Instant, SystemTime},
};

use proto::{ClusterVersion, MemberId, Release};

use super::{
    board::Board,
    display::{Size, frame},
    text,
};
use crate::{
    event::Happening,
    keys::{
        RunId,
        change::{Change, Upgrade},
        host_id::HostId,
    },
    observe::view::ClusterView,
    plan::{refusal::Wait, samples, settled::Missing},
    report::{
        file::{events::Events, json},
        stop::{Reason, Stop},
    },
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
    view
}

/// One of each, in an order that a rollout may have.
fn happenings<'a>(view: &'a ClusterView, change: &'a Change) -> Vec<Happening<'a>> {
    const UNSETTLED: &Missing = &Missing::Undecided { awaited: Vec::new() };
    let (member, other) = (MemberId(1), MemberId(2));
    vec![
        Happening::Begun { change: Some(change) },
        Happening::Looked(view),
        Happening::Joined { run: RunId(0xabc << 96) },
        Happening::Waiting(Wait::Record { member: other, host: HOST }),
        Happening::BatonTaken,
        Happening::HandedOver { from: member, to: MemberId(3) },
        Happening::HookRan { member, hook: "/bin/silence" },
        Happening::RecordPut { member, back: false },
        Happening::Stopping { member },
        Happening::Stopped { member },
        Happening::Switched { member },
        Happening::Started { member },
        Happening::Ready { member },
        Happening::RecordDeleted { member },
        Happening::HookFailed { member, hook: "/bin/unsilence", why: "exit 1" },
        Happening::BatonGivenBack,
        Happening::RecordPut { member: other, back: false },
        Happening::Stopping { member: other },
        Happening::Started { member: other },
        Happening::Failed { member: other, why: "it exits\u{1b} at once" },
        Happening::PuttingBack { member: other },
        Happening::Ready { member: other },
        Happening::RecordDeleted { member: other },
        Happening::LettingPollsEnd { member: MemberId(3), seconds: 20 },
        Happening::KeptNew { member: MemberId(3) },
        Happening::Mended { member: MemberId(3) },
        Happening::NodeStarted { node: "orders-3" },
        Happening::Settling,
        Happening::Unsettled(UNSETTLED),
        Happening::GatesSettled,
        Happening::Settled { hashes: true },
        Happening::Settled { hashes: false },
        Happening::Lowering { to: Some(ClusterVersion { major: 3, minor: 5 }) },
        Happening::Lowering { to: None },
        Happening::Preparing { what: "download: 12.0 of 30.5 MiB" },
        Happening::Warning("no hash was compared"),
        Happening::Ended { exit: 0, reason: "done" },
    ]
}

fn board_after(count: usize) -> Board {
    let (view, change) = (view(), change());
    let (mut board, start) = (Board::default(), Instant::now());
    board.own(&samples::seats(HOST, &[1, 2]));
    for (at, happening) in happenings(&view, &change).iter().take(count).enumerate() {
        board.take(happening, start + Duration::from_millis(at as u64 * 100));
    }
    board
}

#[test]
fn each_happening_has_its_line() {
    let (view, change) = (view(), change());
    let mut board = Board::default();
    let mut told = Vec::new();
    for happening in &happenings(&view, &change) {
        board.take(happening, Instant::now());
        told.extend(text::line(happening, &board));
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn the_events_file_has_one_object_a_line() {
    let (view, change) = (view(), change());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let mut events = Events::open(&path, "h1".into()).unwrap();
    let mut board = Board::default();
    let mut seconds = 0;
    for happening in &happenings(&view, &change) {
        board.take(happening, Instant::now());
        seconds += 1;
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(events.write(happening, &board, now), None);
    }
    let written = fs::read_to_string(&path).unwrap();
    for (at, line) in written.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((line["format"].as_u64(), line["seq"].as_u64()), (Some(1), Some(at as u64)), "{line}");
    }
    insta::assert_snapshot!(written);
}

#[test]
fn a_full_disk_is_told_once_and_changes_nothing() {
    let mut events = Events::open("/dev/full".as_ref(), "h1".into()).unwrap();
    let mut write = || events.write(&Happening::Settled { hashes: true }, &Board::default(), SystemTime::now());
    let first = write().unwrap();
    assert!(first.starts_with("events are lost: /dev/full: "), "{first}");
    assert_eq!(write(), None);
}

#[test]
fn the_result_has_every_field_of_the_contract() {
    let board = board_after(usize::MAX);
    let stop = Stop {
        exit: 0,
        reason: Reason::Done,
        message: "all 3 members at 3.5.30".into(),
        left: String::new(),
        next: None,
        cluster: Some(crate::report::stop::Progress::Done),
    };
    let object: serde_json::Value = serde_json::from_str(&json::object(&stop, &board.facts())).unwrap();
    for field in ["format", "exit", "reason", "message", "next", "changed", "cluster", "run", "from", "to", "members"] {
        assert!(object.get(field).is_some(), "{field}");
    }
    for field in ["waiting_for", "steps", "warnings"] {
        assert!(object.get(field).is_some(), "{field}");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&object).unwrap());
}

#[test]
fn a_step_that_ended_before_its_stop_is_none() {
    let mut board = Board::default();
    let member = MemberId(1);
    board.take(&Happening::RecordPut { member, back: false }, Instant::now());
    board.take(&Happening::RecordDeleted { member }, Instant::now());
    assert_eq!(board.facts().steps, []);
    assert!(!board.facts().changed);
}

#[test]
fn a_node_that_was_started_before_anybody_answered_is_a_change() {
    let mut board = Board::default();
    board.take(&Happening::NodeStarted { node: "orders-1" }, Instant::now());
    assert!(board.facts().changed);
}

#[test]
fn a_step_that_an_earlier_process_began_is_this_ones_to_tell() {
    let mut board = Board::default();
    let member = MemberId(1);
    for happening in [Happening::Switched { member }, Happening::Started { member }, Happening::Ready { member }] {
        board.take(&happening, Instant::now());
    }
    let facts = board.facts();
    assert_eq!(facts.steps.iter().map(|step| step.state).collect::<Vec<_>>(), ["done"]);
    assert!(facts.changed);
}

#[test]
fn the_display_has_a_line_a_member_and_what_is_waited_for() {
    let at = Duration::from_secs(83);
    let mut text = String::new();
    for (count, size) in [
        (4, Size { columns: 80, rows: 24 }),
        (9, Size { columns: 80, rows: 24 }),
        (12, Size { columns: 30, rows: 24 }),
        (4, Size { columns: 80, rows: 3 }),
        (0, Size { columns: 1, rows: 1 }),
    ] {
        let lines = frame(&board_after(count), at, size);
        assert!(lines.iter().all(|line| line.chars().count() < size.columns.max(1)), "{lines:?}");
        text += &format!("{size:?}\n{}\n", lines.join("\n"));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_display_says_how_far_a_download_is() {
    let at =
        happenings(&view(), &change()).iter().position(|happening| matches!(happening, Happening::Preparing { .. }));
    let lines = frame(&board_after(at.unwrap() + 1), Duration::from_secs(83), Size { columns: 80, rows: 24 });
    assert_eq!(lines.last().unwrap(), "  1:23  download: 12.0 of 30.5 MiB");
}

/// Three members that are at their target, and say this of the gates.
fn settling(said: [&str; 3], missing: Option<Missing>) -> Board {
    let mut view = samples::view("1+ 2+ 3*");
    for (at, (said, name)) in said.into_iter().zip(["orders-1", "orders-2", "orders-3"]).enumerate() {
        view.members[at].name = name.into();
        samples::with_gates(&mut view, at, said);
    }
    let mut board = Board::default();
    board.take(&Happening::Settling, Instant::now());
    board.take(&Happening::Looked(&view), Instant::now());
    if let Some(missing) = missing {
        board.take(&Happening::Unsettled(&missing), Instant::now());
    }
    board.take(&Happening::Looked(&view), Instant::now());
    board
}

#[test]
fn gates_are_shown_as_they_settle() {
    let (on, off) = ("decided +A | +A", "decided -A | -A");
    let awaited = vec![MemberId(2), MemberId(3)];
    let boards = [
        settling(["none"; 3], None),
        settling(["none", "open |", "none"], None),
        settling(["open -A | +A", "open -A |", "open -A |"], Some(Missing::Undecided { awaited })),
        settling(["open -A | +A"; 3], Some(Missing::Undecided { awaited: Vec::new() })),
        settling([on, off, on], Some(Missing::Differing { gate: "A".into() })),
        settling(["decided -A +B | +A +B", "decided -A +B | -A +B", "decided -A +B | +A +B"], None),
    ];
    let mut text = String::new();
    for board in &boards {
        let lines = frame(board, Duration::from_secs(3), Size { columns: 80, rows: 24 });
        let gates = serde_json::to_string(&board.facts().gates).unwrap();
        text += &format!("{}\n{gates}\n", lines[3..].join("\n"));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn what_is_missing_is_told_and_how_it_is_mended() {
    let (member, version) = (MemberId(2), |text: &str| text.parse().ok());
    let (gate, why) = ("A".to_owned(), "timed\u{1b} out".to_owned());
    let board = settling(["none"; 3], None);
    let told: String = [
        Missing::Answer { why: why.clone() },
        Missing::Silent { member, why: why.clone() },
        Missing::ClusterVersion { member, found: version("3.5"), wanted: version("3.6") },
        Missing::ClusterVersion { member, found: None, wanted: version("3.6") },
        Missing::StorageVersion { member, found: version("3.5"), wanted: version("3.6") },
        Missing::GoingDown { target: ClusterVersion { major: 3, minor: 5 } },
        Missing::NoGates { member },
        Missing::GatesUnknown { member, reason: why },
        Missing::Undecided { awaited: vec![] },
        Missing::Undecided { awaited: vec![MemberId(1), member] },
        Missing::Differing { gate: gate.clone() },
        Missing::NoSuchGate { gate: gate.clone(), there_are: vec!["B".into(), "C".into()] },
        Missing::NoSuchGate { gate: gate.clone(), there_are: vec![] },
        Missing::KeptOff { gate: gate.clone(), by: vec![member] },
        Missing::KeptOff { gate: gate.clone(), by: vec![] },
        Missing::KeptOn { gate: gate.clone(), is_wanted: true },
        Missing::KeptOn { gate, is_wanted: false },
    ]
    .iter()
    .map(|missing| crate::report::settling::words(missing, board.names()) + "\n")
    .collect();
    insta::assert_snapshot!(told);
}

#[test]
fn the_same_thing_missing_is_told_once() {
    let (missing, other) = (Missing::Undecided { awaited: vec![] }, Missing::Differing { gate: "A".into() });
    let board = settling(["none"; 3], Some(missing.clone()));
    assert!(board.is_unsettled(&missing), "a look in between changes nothing");
    assert!(!board.is_unsettled(&other));
}
