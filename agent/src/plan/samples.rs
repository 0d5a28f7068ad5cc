//! Short notations for the tables of tests: `view("1+ 2- 3l")`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proto::{ClusterId, LogIndex, MemberId, Release, Revision, Term};

use super::{Case, Me, OnFailure, Verb};
use crate::{
    keys::{
        At, AttemptId, Baton, Finalize, Going, Intent, Keys, Participant, ProcessId, Run, RunId, RunState, StepLock,
        TakeId,
        change::{Change, Upgrade},
        hops::Hops,
        host_id::HostId,
        rules::Rules,
        seat::Seats,
    },
    observe::{
        evidence::Evidence,
        view::{Alarm, Answer, ClusterView, GateReport, Gates, Health, JoinTerms, Known, Leader, Member, Report, Role},
    },
    unknown::Unknown,
};

/// A view in short: `+` a ready voter, `-` one that is not, `~` one that catches up, `.` a silent one, `?` a learner that
/// never started, `!` one that reports an alarm of member 1, `l` a ready learner, `*` the leader (else the last ready voter leads).
pub(crate) fn view(text: &str) -> ClusterView {
    let members: Vec<Member> = text.split_whitespace().map(member).collect();
    let marked = text.split_whitespace().find(|word| word.ends_with('*')).map(|word| member(word).id);
    let last = members.iter().rev().find(|m| m.role == Role::Voter && m.is_ready()).map(|m| m.id);
    let leader = marked.or(last).map_or(Leader::Unknown, |member| Leader::Agreed { member, term: Term(2) });
    ClusterView { cluster: ClusterId(0xc), leader, members, warnings: Vec::new() }
}

fn member(word: &str) -> Member {
    let (id, sign) = word.split_at(word.len() - 1);
    let health = match sign {
        "-" => Health::Sick { reason: "sick".into() },
        "~" => Health::CatchingUp { reason: "behind".into() },
        "!" => Health::Alarmed {
            alarms: vec![Alarm { kind: "NOSPACE".into(), of: MemberId(1), name: None }],
            besides: None,
        },
        _ => Health::Ready,
    };
    let answer = match sign {
        "." => Answer::Silent { reason: "connection refused".into() },
        "?" => Answer::NeverStarted,
        _ => Answer::Reported(Box::new(report(health))),
    };
    let role = if matches!(sign, "l" | "?") { Role::Learner } else { Role::Voter };
    let url = format!("http://{id}");
    let reached = matches!(answer, Answer::Reported(_)).then(|| url.clone());
    Member {
        id: MemberId(id.parse().unwrap()),
        name: Arc::from(id),
        role,
        client_urls: vec![url],
        reached,
        is_disputed: false,
        activities: Default::default(),
        answer,
    }
}

fn report(health: Health) -> Report {
    Report {
        release: Release::new(3, 4, 23),
        cluster_version: "3.4".parse().ok(),
        storage_version: None,
        downgrade: None,
        leader: None,
        term: Term(2),
        log_index: LogIndex(10),
        applied: LogIndex(10),
        revision: Revision(5),
        db_bytes: 0,
        quota_bytes: None,
        health,
        gates: None,
        join: None,
    }
}

/// The same view, in which every alarm that is reported is of this kind.
pub(crate) fn with_alarm(kind: &str, mut view: ClusterView) -> ClusterView {
    for member in &mut view.members {
        if let Answer::Reported(report) = &mut member.answer
            && let Health::Alarmed { alarms, .. } = &mut report.health
        {
            alarms.iter_mut().for_each(|alarm| alarm.kind = kind.into());
        }
    }
    view
}

/// The same view, with this leader whatever it says of its health.
pub(crate) fn led_by(member: u64, view: ClusterView) -> ClusterView {
    ClusterView { leader: Leader::Agreed { member: MemberId(member), term: Term(2) }, ..view }
}

fn edit(view: &mut ClusterView, at: usize, change: impl FnOnce(&mut Report)) {
    if let Answer::Reported(report) = &mut view.members[at].answer {
        change(report);
    }
}

pub(crate) fn with_release(view: &mut ClusterView, at: usize, release: &str) {
    edit(view, at, |report| report.release = release.parse().unwrap());
}

pub(crate) fn with_join_policy(view: &mut ClusterView, at: usize, is_strict: bool) {
    edit(view, at, |report| report.join = Some(JoinTerms { lowest_protocol: 1, highest_protocol: 1, is_strict }));
}

pub(crate) fn with_cluster_version(view: &mut ClusterView, at: usize, version: &str) {
    edit(view, at, |report| report.cluster_version = version.parse().ok());
}

/// How large its database is, and of which quota, in bytes.
pub(crate) fn with_database(view: &mut ClusterView, at: usize, (db_bytes, quota_bytes): (i64, Option<u64>)) {
    edit(view, at, |report| (report.db_bytes, report.quota_bytes) = (db_bytes, quota_bytes));
}

/// What a member says of the gates, in short: `none`, `?` where it could not be asked, else `decided` or `open`, what is
/// on or off, a bar, and what it wants: `decided -A +B | +A +B`.
pub(crate) fn with_gates(view: &mut ClusterView, at: usize, said: &str) {
    edit(view, at, |report| {
        report.gates = match said {
            "none" => None,
            "?" => Some(Gates::Unknown { reason: "timed out".into() }),
            _ => Some(Gates::Said(gate_report(said))),
        }
    });
}

fn gate_report(said: &str) -> GateReport {
    let (enabled, proposed) = said.split_once('|').unwrap();
    GateReport {
        is_decided: enabled.starts_with("decided"),
        enabled: features(enabled),
        proposed: features(proposed),
        ..GateReport::default()
    }
}

fn features(text: &str) -> BTreeMap<String, bool> {
    let words = text.split_whitespace().filter(|word| word.starts_with(['+', '-']));
    words.map(|word| (word[1..].to_owned(), word.starts_with('+'))).collect()
}

fn edit_gates(view: &mut ClusterView, at: usize, change: impl FnOnce(&mut GateReport)) {
    edit(view, at, |report| {
        if let Some(Gates::Said(gates)) = &mut report.gates {
            change(gates);
        }
    });
}

/// What this member has stored of everybody's proposals, each as `+A -B`.
pub(crate) fn with_stored(view: &mut ClusterView, at: usize, stored: &[(u64, &str)]) {
    let stored = stored.iter().map(|(of, wants)| (MemberId(*of), features(wants))).collect();
    edit_gates(view, at, |gates| gates.stored = stored);
}

/// What this member's release knows: `A:3.6 B:3.7=on`, locked behind the `=`.
pub(crate) fn with_known(view: &mut ClusterView, at: usize, known: &str) {
    let one = |word: &str| {
        let (name, rest) = word.split_once(':').unwrap();
        let (since, locked) = rest.split_once('=').map_or((rest, None), |(since, to)| (since, Some(to == "on")));
        (name.to_owned(), Known { since: since.parse().unwrap(), locked })
    };
    edit_gates(view, at, |gates| gates.known = known.split_whitespace().map(one).collect());
}

pub(crate) fn intent(from: &str, to: &str) -> Intent {
    Intent {
        cluster: ClusterId(0xc),
        change: Change::Upgrade(Upgrade { from: from.parse().unwrap(), to: to.parse().unwrap() }),
        gates: Default::default(),
        finalize: Finalize::Auto,
        accepted_hazards: Default::default(),
        backup: false,
        hops: None,
    }
}

/// A way of two hops, at each of them.
pub(crate) fn way() -> [Arc<Intent>; 2] {
    let changes = [intent(">=3.4, <3.5", "3.5.33"), intent("=3.5.33", "3.6.14")].map(|intent| intent.change);
    let hops = Some(Arc::new(Hops { changes: changes.to_vec(), gates: Default::default() }));
    let whole = Intent { hops, ..intent(">=3.4, <3.5", "3.5.33") };
    changes.map(|change| Arc::new(whole.at(&change)))
}

/// Of these members of a host.
pub(crate) fn seats(host: HostId, members: &[u64]) -> Seats {
    Seats::on(host, members.iter().map(|id| (Arc::from(format!("m{id}")), MemberId(*id))))
}

pub(crate) fn me(owns: &[u64]) -> Me {
    let host = HostId { machine: None, instance: u128::from(owns[0]) };
    Me {
        host,
        host_name: Arc::from("here"),
        seats: seats(host, owns),
        intent: Arc::new(intent(">=3.4, <3.5", "3.5.30")),
        verb: Verb::Run,
        allow_degraded: false,
        allow_downtime: false,
        max_learners: 1,
        on_failure: OnFailure::PutBack,
        command: Arc::from(""),
        expect_agents: None,
    }
}

static NO_EVIDENCE: Evidence = Evidence {
    quotas: BTreeMap::new(),
    etcd: BTreeSet::new(),
    others: BTreeSet::new(),
    clocks: BTreeMap::new(),
    differences: Vec::new(),
};

/// What is asked by an agent that has waited for others, and has nothing in hand.
pub(crate) fn case<'a>(me: &'a Me, rules: &'a Rules, keys: &'a Keys, view: &'a ClusterView) -> Case<'a> {
    let process = ProcessId::default();
    let evidence = Some(&NO_EVIDENCE);
    Case {
        me,
        rules,
        keys,
        view,
        evidence,
        is_window_over: true,
        closed_until: None,
        joined: None,
        in_hand: None,
        gone: &[],
        process,
        survey: None,
        join_failure: None,
        may_begin: None,
        may_resume: true,
        fresh: 11,
    }
}

/// A value as the store has it.
pub(crate) fn at<T>(value: T) -> At<T> {
    At { created: Revision(3), modified: Revision(3), value }
}

/// The host that has this member.
pub(crate) fn host(member: u64) -> HostId {
    HostId { machine: None, instance: u128::from(member) }
}

/// Member 2's record, put by an agent of host 2.
pub(crate) fn record() -> StepLock {
    let process = ProcessId { boot_id: 1, pid_namespace: 1, pid: 2, start_time: 3 };
    let (member, attempt) = (MemberId(2), AttemptId(9));
    StepLock {
        member,
        host: host(2),
        host_name: Arc::from("h2"),
        attempt,
        process,
        back: false,
        guarded: None,
        role: None,
        unknown: Unknown::default(),
    }
}

/// Taken by this member's host.
pub(crate) fn baton(member: u64) -> At<Baton> {
    let (host_name, unknown) = (format!("h{member}").into(), Unknown::default());
    at(Baton { host: host(member), process: record().process, host_name, take: TakeId(7), unknown })
}

/// A run in this state, in which nobody is done.
pub(crate) fn run(state: RunState) -> Run {
    Run {
        id: RunId(1),
        intent: me(&[1]).intent,
        state,
        changes_minor: true,
        done: Vec::new(),
        begun_by: None,
        membership: None,
        backup: None,
        pause: None,
        unknown: Unknown::default(),
    }
}

/// A run that stands, with [`record`]; `failed`: it is marked for this member.
pub(crate) fn keys(failed: Option<u64>, is_owner_there: bool) -> Keys {
    let state = match failed {
        Some(member) => RunState::Failed { member: MemberId(member), why: Arc::from("it"), was: Going::Rolling },
        None => RunState::Rolling,
    };
    let mut keys = Keys { run: Some(at(run(state))), step: Some(at(record())), ..Keys::default() };
    if is_owner_there {
        keys.agents.insert(host(2), at(participant(2)));
    }
    keys
}

/// The agent of the host that has this member.
pub(crate) fn participant(member: u64) -> Participant {
    Participant {
        host_name: format!("h{member}").into(),
        process: ProcessId::default(),
        seats: seats(host(member), &[member]),
        done: Vec::new(),
        waits_for: None,
        waits_since: None,
        waits_until: None,
        does: None,
        backed_up: None,
        is_closed: false,
        unknown: Unknown::default(),
    }
}
