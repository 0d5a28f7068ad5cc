//! The status for people: a table of members in the order in which they go, then the run and who does what.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, SystemTime},
};

use proto::MemberId;

use super::{
    agents::{self, NO_LEASE_ENDS},
    cluster::cluster_version,
    downgrade::DowngradeLine,
    gates::GatesLine,
    hosts, step_column,
};

use crate::{
    journal::{
        guarded,
        progress::InHand,
        restart::{Direction, Stage},
    },
    keys::{
        Backup, Going, Keys, PREFIX, Run, RunResult, RunState, StepLock,
        membership::{Join, Membership, RoleChange, Stage as JoinStage},
    },
    observe::view::ClusterView,
    report::{
        change,
        file::json::MemberLine,
        names::{Names, printable},
        stop::HOLD,
        wait,
    },
};

/// The cluster, one line a member, its gates, and a downgrade under way; this host's own members have a star.
pub fn cluster(
    view: &ClusterView,
    members: &[MemberLine],
    gates: Option<&GatesLine>,
    downgrade: Option<&DowngradeLine>,
    keys: Option<&Keys>,
) -> String {
    let version = cluster_version(view).map_or_else(|| "undecided".to_owned(), |version| version.to_string());
    let ready = members.iter().filter(|member| member.state == "ready").count();
    let mut text =
        format!("cluster {}, version {version}, {ready} of {} members ready\n\n", view.cluster, members.len());
    let head = ["", "MEMBER", "ID", "RELEASE", "CLUSTER", "STORAGE", "ROLE", "STATE", "STEP", "BEHIND", "HOST"];
    let order: Vec<_> = keys.map_or_else(|| view.members.iter().collect(), |keys| step_column::in_order(view, keys));
    let step = |member| dash(&keys.and_then(|keys| step_column::step(member, view, keys)));
    let mut rows = vec![head.map(str::to_owned)];
    let lines = order.iter().filter_map(|seen| Some((*seen, members.iter().find(|line| line.id == seen.id)?)));
    rows.extend(lines.map(|(seen, member)| {
        [
            if member.mine { "*" } else { "" }.to_owned(),
            member.name.clone(),
            member.id.to_string(),
            dash(&member.version),
            dash(&member.cluster_version),
            dash(&member.storage_version),
            member.role.to_owned(),
            member.state.to_owned(),
            step(seen),
            member.lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string()),
            dash(&member.host),
        ]
    }));
    text.push_str(&table(&rows));
    text.push_str(&joins(members));
    for member in members {
        if let Some(trouble) = &member.trouble {
            let _ = writeln!(text, "{}: {trouble}", member.name);
        }
    }
    if let Some(gates) = gates {
        let _ = writeln!(text, "gates: {}", gates.words());
    }
    if let Some(downgrade) = downgrade {
        let _ = writeln!(text, "downgrade: {}", downgrade.words());
    }
    text
}

/// Beside whom each member takes part: a line for those that say the same, nothing of those that do not tell.
fn joins(members: &[MemberLine]) -> String {
    let mut by_terms: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for member in members {
        if let (Some(protocols), Some(policy)) = (member.protocols, member.join_policy) {
            by_terms.entry((protocols, policy)).or_default().push(&member.name);
        }
    }
    let line = |(((lowest, highest), policy), names): (((u32, u32), &str), Vec<&str>)| {
        let range = if lowest == highest { lowest.to_string() } else { format!("{lowest} to {highest}") };
        format!("join: {}: policy {policy}, protocol {range}\n", names.join(", "))
    };
    by_terms.into_iter().map(line).collect()
}

fn dash(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| "-".to_owned())
}

/// Cells padded to their column, two spaces apart.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// The run, who holds the baton and until when, who waits for what, what stands in the way.
pub fn keys(keys: &Keys, names: &Names, view: &ClusterView, lapses: Option<Duration>, now: SystemTime) -> String {
    let mut text = match &keys.run {
        None => "run: none\n".to_owned(),
        Some(run) => run_line(&run.value, names, view.started().count(), step_column::next(view, keys)),
    };
    if let Some(baton) = &keys.baton {
        let host = printable(&baton.value.host_name);
        let until = match lapses {
            _ if view.keeps_every_lease() => format!("; it does not lapse, as {NO_LEASE_ENDS}"),
            Some(left) => format!(
                "; if that agent is gone it lapses in {} s, later where the leader changes, never without quorum",
                left.as_secs()
            ),
            None => String::new(),
        };
        let _ = writeln!(text, "baton: {host} (pid {}){until}", baton.value.process.pid);
    }
    if let Some(step) = &keys.step {
        let _ = writeln!(text, "in its step: {}", step_lock(&step.value, names));
        if !keys.agents.contains_key(&step.value.host) {
            let host = printable(&step.value.host_name);
            let verb = if step.value.guarded.is_some() { "guard --finish" } else { "run" };
            let _ = writeln!(
                text,
                "  its agent takes no part any more: agent {verb} on {host} goes on; agent abandon gives the step up where that \
                 host does not come back"
            );
        }
    }
    for lost in keys.abandoned.values() {
        let record = &lost.value;
        let _ = writeln!(
            text,
            "abandoned: {}; nobody takes a member down until its host is back, it is replaced, or \
             `agent abandon --host-is-fenced`",
            step_lock(record, names)
        );
    }
    text.push_str(&agents::text(keys, names, view, now));
    for stale in &keys.stale {
        let _ = writeln!(
            text,
            "stale: {PREFIX}{} has no lease, so it is nobody's; the next agent run deletes it",
            stale.key
        );
    }
    text + &hosts::text(keys, names, view)
}

/// This host's members where the cluster does not answer: from its journal and its processes.
pub fn host(host: &str, step: Option<&(String, InHand)>, down: &[String]) -> String {
    let mut text = String::new();
    if let Some((name, in_hand)) = step {
        let _ = writeln!(text, "{host}: in its step by the journal: {name}, {}", stage(in_hand));
    }
    if !down.is_empty() {
        let _ = writeln!(text, "{host}: not running: {}", down.join(", "));
    }
    if text.is_empty() {
        let _ = writeln!(text, "{host}: no step is in hand, and the members of this host run");
    }
    text
}

/// How far a step is, as the journal has it.
pub fn stage(in_hand: &InHand) -> &'static str {
    let restart = match in_hand {
        InHand::Restart(restart) => restart,
        InHand::Guarded(guarded) => {
            return match guarded.stage {
                guarded::Stage::Planned => "its command has not begun",
                guarded::Stage::Runs(_) => "its command was begun",
            };
        }
    };
    match restart.stage {
        Stage::Planned => "not stopped yet",
        Stage::Stopping(_) => "being stopped",
        Stage::Switched(_) => "stopped, its binary switched",
        Stage::Starting(Direction::Forward) => "started on its new binary",
        Stage::Starting(Direction::Back) => "started on its old binary",
        Stage::Done(_) => "ready, its lock not deleted yet",
    }
}

pub(crate) fn step_lock(record: &StepLock, names: &Names) -> String {
    let way = if record.back { " (going back)" } else { "" };
    let (host, pid) = (printable(&record.host_name), record.process.pid);
    let way = match record.role {
        Some(RoleChange::Promote) => ", which is to vote,",
        Some(RoleChange::Leave) => ", which is to be removed,",
        None => way,
    };
    match &record.guarded {
        None => format!("{}{way} by {host} (pid {pid})", names.member(record.member)),
        Some(guarded) => {
            let members: Vec<_> = record.members().collect();
            format!("{} while {host} runs {} (pid {pid})", names.list(&members), printable(&guarded.command))
        }
    }
}

fn run_line(run: &Run, names: &Names, members: usize, next: Option<MemberId>) -> String {
    let what = change::run(&run.intent);
    let done = match (&run.membership, run.done.len()) {
        (Some(membership), _) => on_the_way(membership, names),
        (None, 0) if run.is_going_back() => String::new(),
        (None, _) if run.is_going_back() => format!("; to go back: {}", names.list(&run.done)),
        (None, 0) => format!("; done: 0 of {members}"),
        (None, done) => format!("; done: {done} of {members}, {}", names.list(&run.done)),
    };
    let begun = run.begun_by.as_ref().map_or_else(String::new, |host| format!("; begun on {}", printable(host)));
    let next = next.map_or_else(String::new, |next| format!("; next: {}", names.short(next)));
    let backup = run.backup.as_ref().map(|backup| backup_line(backup, names)).unwrap_or_default();
    let pause = run.pause.as_ref().map_or_else(String::new, |pause| format!("; {}", wait::paused(pause)));
    format!("run: {what}, {}{pause}{done}{next}{begun}\n{backup}", state(&run.state, names))
}

fn backup_line(backup: &Backup, names: &Names) -> String {
    let at = backup.revision.map_or_else(String::new, |revision| format!(" at revision {revision}"));
    let (host, path) = (printable(&backup.host_name), printable(&backup.path));
    format!("backup: the database of {}{at}, on {host} as {path}\n", names.short(backup.member))
}

/// Who comes, with how far it is, and who is still to go.
fn on_the_way(membership: &Membership, names: &Names) -> String {
    let stage = |join: &Join| match &join.stage {
        JoinStage::Reserved => "has its place".to_owned(),
        JoinStage::Added => "added".to_owned(),
        JoinStage::Starting => "catches up".to_owned(),
        JoinStage::GivenUp { why } => format!("given up: {}", printable(why)),
    };
    let comes = membership.joins.iter().map(|join| format!("; comes: {} ({})", printable(&join.seat), stage(join)));
    let goes: Vec<_> = membership.leaving.iter().copied().filter(|member| membership.is_expected(*member)).collect();
    let goes = (!goes.is_empty()).then(|| format!("; to go: {}", names.list(&goes)));
    comes.chain(goes).collect()
}

pub fn state(state: &RunState, names: &Names) -> String {
    match state {
        RunState::Rolling => "rolling".to_owned(),
        RunState::Failed { member, why, was } => {
            let way = if *was == Going::RollingBack { " on the way back" } else { "" };
            format!(
                "failed{way} at {}: {}; nobody goes until its host tries again",
                names.short(*member),
                printable(why)
            )
        }
        RunState::Held { member } => {
            format!("held before {} until `agent finalize` is typed; {HOLD}", names.short(*member))
        }
        RunState::Approved => "approved: the last member may go".to_owned(),
        RunState::RollingBack => "going back".to_owned(),
        RunState::Done { result: RunResult::Reached } => "done".to_owned(),
        RunState::Done { result: RunResult::RolledBack } => "done, rolled back".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        keys::{AttemptId, membership::Expected},
        plan::samples,
    };

    #[test]
    fn the_run_says_how_far_it_is() {
        let mut run = samples::run(RunState::Rolling);
        run.done.clear();
        let names = Names::default();
        let line = |run: &Run| run_line(run, &names, 5, Some(MemberId(3)));
        assert!(line(&run).contains("done: 0 of 5; next: 3"), "{}", line(&run));
        run.done.push(MemberId(7));
        assert!(line(&run).contains("done: 1 of 5, 7; next: 3"), "{}", line(&run));
        run.state = RunState::RollingBack;
        assert!(line(&run).contains("going back; to go back: 7; next: 3"), "{}", line(&run));
    }

    #[test]
    fn a_change_of_members_says_who_comes_and_who_is_to_go() {
        let mut run = samples::run(RunState::Rolling);
        let join = Join {
            seat: "orders-4".into(),
            host: samples::host(4),
            host_name: "h4".into(),
            attempt: AttemptId(1),
            peer_urls: Vec::new(),
            member: None,
            stage: JoinStage::Reserved,
        };
        let expected = |member| Expected { member: MemberId(member), is_learner: false };
        let leaving = vec![MemberId(2), MemberId(7)]; // 7 is gone already
        run.membership = Some(Arc::new(Membership {
            expected: vec![expected(1), expected(2)],
            leaving,
            joins: vec![join],
            called: None,
        }));
        let line = run_line(&run, &Names::default(), 3, None);
        assert!(line.contains("; comes: orders-4 (has its place); to go: 2"), "{line}");
        assert!(!line.contains("done") && !line.contains('7'), "{line}");
    }

    /// An agent that is gone has a key as one that is there.
    #[test]
    fn where_no_lease_ends_nobody_is_said_to_be_at_work() {
        let mut stored = samples::keys(None, true);
        let told = |stored: &Keys, view: &ClusterView| {
            keys(stored, &Names::default(), view, Some(Duration::from_secs(9)), SystemTime::UNIX_EPOCH)
        };
        let corrupt = |members| samples::with_alarm("CORRUPT", samples::view(members));
        let unknown = "not known whether it lives, as etcd ends no lease under the alarm CORRUPT";
        for (view, expected) in [
            (samples::view("1+ 2+ 3+"), ": at work\n".to_owned()),
            (samples::view("1! 2! 3!"), ": at work\n".to_owned()), // leases lapse under NOSPACE
            (corrupt("1! 2+ 3+"), ": at work\n".to_owned()),       // one says so, and the others know of none
            (corrupt("1! 2! 3!"), format!(": {unknown}\n")),
        ] {
            let text = told(&stored, &view);
            assert!(text.contains(&expected), "{text}");
        }
        stored.agents.values_mut().for_each(|agent| agent.value.waits_for = Some("the baton".into()));
        stored.baton = Some(samples::baton(2));
        let text = told(&stored, &corrupt("1! 2! 3!"));
        assert!(text.contains(&format!("{unknown}; it said last: waits for the baton\n")), "{text}");
        assert!(text.contains("it does not lapse, as etcd ends no lease") && !text.contains("lapses in"), "{text}");
        assert!(told(&stored, &samples::view("1+ 2+ 3+")).contains("it lapses in 9 s"));
    }

    /// Every member's name and step, in the order of the rows.
    fn steps(view: &ClusterView, keys: &Keys) -> String {
        let step = |member| step_column::step(member, view, keys).unwrap_or_else(|| "-".into());
        let rows = step_column::in_order(view, keys).into_iter();
        rows.map(|member| format!("{} {}", member.id, step(member))).collect::<Vec<_>>().join(", ")
    }

    /// Members 1 to 3 go from 3.4.23 to 3.5.30; 2 is in its step, of an agent that is there.
    #[test]
    fn each_member_has_its_place_in_the_run() {
        let mut view = samples::view("1+ 2+ 3+");
        let mut keys = samples::keys(None, true);
        assert_eq!(steps(&view, &keys), "2 stopping, 1 next, 3 -", "3 leads");
        let silent = samples::view("1+ 2. 3+");
        assert_eq!(steps(&silent, &keys), "2 restarting, 1 next, 3 -");
        samples::with_release(&mut view, 1, "3.5.30");
        assert_eq!(steps(&view, &keys), "2 soaking, 1 next, 3 -");
        keys.agents.values_mut().for_each(|agent| agent.value.does = Some("soaking 3 of 8 s".into()));
        assert_eq!(steps(&view, &keys), "2 soaking 3 of 8 s, 1 next, 3 -");
        keys.agents.clear();
        assert_eq!(steps(&view, &keys), "2 left by its agent, 1 next, 3 -");
        keys.step = None;
        keys.run.as_mut().unwrap().value.done = vec![MemberId(2)];
        assert_eq!(steps(&view, &keys), "2 done, 1 next, 3 -");
        keys.run.as_mut().unwrap().value.done.clear();
        assert_eq!(steps(&view, &keys), "2 done, 1 next, 3 -", "brought there by hand before the run");
        keys.run.as_mut().unwrap().value.state = samples::keys(Some(1), false).run.unwrap().value.state;
        assert_eq!(steps(&view, &keys), "2 done, 1 failed, 3 -", "nobody is next under the mark");
        keys.run = None;
        assert_eq!(steps(&view, &keys), "1 -, 2 -, 3 -", "no run: as they are listed");
        let failed = samples::keys(Some(2), false);
        assert!(steps(&silent, &Keys { step: None, ..failed }).contains("2 failed"));
    }
}
