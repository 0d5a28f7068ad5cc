//! A rollout as it is told: lines, events, the result and the display, from one list of events.

use std::{
    fs,
    time::{Duration, Instant, SystemTime},
};

use proto::{ClusterVersion, MemberId, Release};

use super::{
    display::{Size, frame},
    progress::Progress,
    text,
};
use crate::{
    event::RunEvent,
    keys::{
        RunId,
        change::{Change, Upgrade},
        host_id::HostId,
    },
    observe::{canary::Availability, view::ClusterView},
    plan::{refusal::Wait, samples, settled::Missing, warning::Warning},
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
fn events<'a>(view: &'a ClusterView, change: &'a Change) -> Vec<RunEvent<'a>> {
    const UNSETTLED: &Missing = &Missing::Undecided { awaited: Vec::new() };
    const ACCEPTED: &Warning = &Warning::Accepted { id: "lease-expiry-36" };
    static AVAILABLE: Availability = Availability { reads: 812, failed: 2, longest_gap_ms: 640, gap_since: None };
    let (member, other) = (MemberId(1), MemberId(2));
    vec![
        RunEvent::Begun { change: Some(change), cluster: "orders" },
        RunEvent::Looked(view),
        RunEvent::Joined { run: RunId(0xabc << 96) },
        RunEvent::Waiting(Wait::Record { member: other, host: HOST }),
        RunEvent::BatonTaken,
        RunEvent::BackingUp { percent: 40 },
        RunEvent::BackedUp { member, path: "/var/backups/orders-a1-20261129T081500.123Z.db" },
        RunEvent::HandedOver { from: member, to: MemberId(3) },
        RunEvent::HookRan { member, hook: "/bin/silence" },
        RunEvent::StepLocked { member, back: false },
        RunEvent::Stopping { member },
        RunEvent::Stopped { member },
        RunEvent::Switched { member },
        RunEvent::Started { member },
        RunEvent::Ready { member },
        RunEvent::StepUnlocked { member },
        RunEvent::ProbeFailed { member, why: "`strategy.probe` fails: hook /bin/probe ended with exit 1" },
        RunEvent::HookFailed { member, hook: "/bin/unsilence", why: "exit 1" },
        RunEvent::BatonGivenBack,
        RunEvent::StepLocked { member: other, back: false },
        RunEvent::Stopping { member: other },
        RunEvent::Started { member: other },
        RunEvent::Failed { member: other, why: "it exits\u{1b} at once" },
        RunEvent::PuttingBack { member: other },
        RunEvent::Ready { member: other },
        RunEvent::StepUnlocked { member: other },
        RunEvent::LettingPollsEnd { member: MemberId(3), seconds: 20 },
        RunEvent::KeptNew { member: MemberId(3) },
        RunEvent::Mended { member: MemberId(3) },
        RunEvent::NodeStarted { node: "orders-3" },
        RunEvent::StepTakenOver { member: MemberId(3), back: true },
        RunEvent::Settling,
        RunEvent::Unsettled(UNSETTLED),
        RunEvent::GatesSettled,
        RunEvent::Settled { hashes: true },
        RunEvent::Settled { hashes: false },
        RunEvent::Lowering { to: Some(ClusterVersion { major: 3, minor: 5 }) },
        RunEvent::Lowering { to: None },
        RunEvent::Preparing { what: "download: 12.0 of 30.5 MiB" },
        RunEvent::Warning("no hash was compared"),
        RunEvent::Warned { warning: ACCEPTED, why: "it is accepted" },
        RunEvent::Canary(&AVAILABLE),
        RunEvent::Ended { exit: 0, reason: "done", message: "all 3 members at 3.5.30", left: "", next: None },
    ]
}

fn progress_after(count: usize) -> Progress {
    let (view, change) = (view(), change());
    let (mut progress, start) = (Progress::default(), Instant::now());
    progress.own(&samples::seats(HOST, &[1, 2]));
    for (at, event) in events(&view, &change).iter().take(count).enumerate() {
        progress.take(event, start + Duration::from_millis(at as u64 * 100));
    }
    progress
}

#[test]
fn each_event_has_its_line() {
    let (view, change) = (view(), change());
    let mut progress = Progress::default();
    let mut told = Vec::new();
    for event in &events(&view, &change) {
        progress.take(event, Instant::now());
        told.extend(text::line(event, &progress));
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn the_events_file_has_one_object_a_line() {
    let (view, change) = (view(), change());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let mut file = Events::open(&path, "h1".into()).unwrap();
    let mut progress = Progress::default();
    let mut seconds = 0;
    for event in &events(&view, &change) {
        progress.take(event, Instant::now());
        seconds += 1;
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(file.write(event, &progress, now), None);
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
    let mut write = || events.write(&RunEvent::Settled { hashes: true }, &Progress::default(), SystemTime::now());
    let first = write().unwrap();
    assert!(first.starts_with("events are lost: /dev/full: "), "{first}");
    assert_eq!(write(), None);
}

#[test]
fn the_result_has_every_field_of_the_contract() {
    let progress = progress_after(usize::MAX);
    let stop = Stop {
        exit: 0,
        reason: Reason::Done,
        message: "all 3 members at 3.5.30".into(),
        left: String::new(),
        next: None,
        cluster: Some(crate::report::stop::Progress::Done),
    };
    let object: serde_json::Value = serde_json::from_str(&json::object(&stop, &progress.facts())).unwrap();
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
    let mut progress = Progress::default();
    let member = MemberId(1);
    progress.take(&RunEvent::StepLocked { member, back: false }, Instant::now());
    progress.take(&RunEvent::StepUnlocked { member }, Instant::now());
    assert_eq!(progress.facts().steps, []);
    assert!(!progress.facts().changed);
}

#[test]
fn a_node_that_was_started_before_anybody_answered_is_a_change() {
    let mut progress = Progress::default();
    progress.take(&RunEvent::NodeStarted { node: "orders-1" }, Instant::now());
    assert!(progress.facts().changed);
}

#[test]
fn a_step_that_an_earlier_process_began_is_this_ones_to_tell() {
    let mut progress = Progress::default();
    let member = MemberId(1);
    // Its member may run all along: then it is neither switched nor started.
    for event in [RunEvent::StepTakenOver { member, back: false }, RunEvent::Ready { member }] {
        progress.take(&event, Instant::now());
    }
    let facts = progress.facts();
    assert_eq!(facts.steps.iter().map(|step| step.state).collect::<Vec<_>>(), ["done"]);
    assert!(facts.changed);
}

#[test]
fn the_display_has_a_line_a_member_and_what_is_waited_for() {
    let at = Duration::from_secs(83);
    let mut text = String::new();
    for (count, size) in [
        (4, Size { columns: 80, rows: 24 }),
        (11, Size { columns: 80, rows: 24 }),
        (14, Size { columns: 30, rows: 24 }),
        (4, Size { columns: 80, rows: 3 }),
        (0, Size { columns: 1, rows: 1 }),
    ] {
        let lines = frame(&progress_after(count), at, size);
        assert!(lines.iter().all(|line| line.chars().count() < size.columns.max(1)), "{lines:?}");
        text += &format!("{size:?}\n{}\n", lines.join("\n"));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_display_says_how_far_a_download_is() {
    let at = events(&view(), &change()).iter().position(|event| matches!(event, RunEvent::Preparing { .. }));
    let lines = frame(&progress_after(at.unwrap() + 1), Duration::from_secs(83), Size { columns: 80, rows: 24 });
    assert_eq!(lines.last().unwrap(), "  1:23  download: 12.0 of 30.5 MiB");
}

/// Three members that are at their target, and say this of the gates.
fn settling(said: [&str; 3], missing: Option<Missing>) -> Progress {
    let mut view = samples::view("1+ 2+ 3*");
    for (at, (said, name)) in said.into_iter().zip(["orders-1", "orders-2", "orders-3"]).enumerate() {
        view.members[at].name = name.into();
        samples::with_gates(&mut view, at, said);
    }
    let mut progress = Progress::default();
    progress.take(&RunEvent::Settling, Instant::now());
    progress.take(&RunEvent::Looked(&view), Instant::now());
    if let Some(missing) = missing {
        progress.take(&RunEvent::Unsettled(&missing), Instant::now());
    }
    progress.take(&RunEvent::Looked(&view), Instant::now());
    progress
}

#[test]
fn gates_are_shown_as_they_settle() {
    let (on, off) = ("decided +A | +A", "decided -A | -A");
    let awaited = vec![MemberId(2), MemberId(3)];
    let all = [
        settling(["none"; 3], None),
        settling(["none", "open |", "none"], None),
        settling(["open -A | +A", "open -A |", "open -A |"], Some(Missing::Undecided { awaited })),
        settling(["open -A | +A"; 3], Some(Missing::Undecided { awaited: Vec::new() })),
        settling([on, off, on], Some(Missing::Differing { gate: "A".into() })),
        settling(["decided -A +B | +A +B", "decided -A +B | -A +B", "decided -A +B | +A +B"], None),
    ];
    let mut text = String::new();
    for progress in &all {
        let lines = frame(progress, Duration::from_secs(3), Size { columns: 80, rows: 24 });
        let gates = serde_json::to_string(&progress.facts().gates).unwrap();
        text += &format!("{}\n{gates}\n", lines[3..].join("\n"));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn what_is_missing_is_told_and_how_it_is_mended() {
    let (member, version) = (MemberId(2), |text: &str| text.parse().ok());
    let (gate, why) = ("A".to_owned(), "timed\u{1b} out".to_owned());
    let progress = settling(["none"; 3], None);
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
    .map(|missing| crate::report::settling::words(missing, progress.names()) + "\n")
    .collect();
    insta::assert_snapshot!(told);
}

#[test]
fn the_same_thing_missing_is_told_once() {
    let (missing, other) = (Missing::Undecided { awaited: vec![] }, Missing::Differing { gate: "A".into() });
    let progress = settling(["none"; 3], Some(missing.clone()));
    assert!(progress.is_unsettled(&missing), "a look in between changes nothing");
    assert!(!progress.is_unsettled(&other));
}
