//! The status for people: a table of members, then the run and who does what.

use std::{fmt::Write as _, time::Duration};

use super::{cluster::cluster_version, downgrade::DowngradeLine, gates::GatesLine};
use proto::MemberId;

use crate::{
    keys::{Going, Keys, PREFIX, Run, RunResult, RunState, StepLock},
    observe::view::ClusterView,
    report::{
        change::words,
        file::json::MemberLine,
        names::{Names, printable},
        stop::HOLD,
    },
};

/// The cluster, one line a member, its gates, and a downgrade under way; this host's own members have a star.
pub fn cluster(
    view: &ClusterView,
    members: &[MemberLine],
    gates: Option<&GatesLine>,
    downgrade: Option<&DowngradeLine>,
    in_step: Option<MemberId>,
) -> String {
    let version = cluster_version(view).map_or_else(|| "undecided".to_owned(), |version| version.to_string());
    let ready = members.iter().filter(|member| member.state == "ready").count();
    let mut text =
        format!("cluster {}, version {version}, {ready} of {} members ready\n\n", view.cluster, members.len());
    let head = ["", "MEMBER", "ID", "RELEASE", "CLUSTER", "STORAGE", "ROLE", "STATE", "BEHIND", "HOST"];
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(members.iter().map(|member| {
        [
            if member.mine { "*" } else { "" }.to_owned(),
            member.name.clone(),
            member.id.to_string(),
            dash(&member.version),
            dash(&member.cluster_version),
            dash(&member.storage_version),
            member.role.to_owned(),
            match in_step == Some(member.id) {
                // Ready or not, it is about to be stopped, or watched.
                true => format!("{}, in its step", member.state),
                false => member.state.to_owned(),
            },
            member.lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string()),
            dash(&member.host),
        ]
    }));
    text.push_str(&table(&rows));
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

/// Cells padded to their column, two spaces apart.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
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
pub fn keys(keys: &Keys, names: &Names, members: usize, lapses: Option<Duration>) -> String {
    let mut text = match &keys.run {
        None => "run: none\n".to_owned(),
        Some(run) => run_line(&run.value, names, members),
    };
    if let Some(baton) = &keys.baton {
        let host = printable(&baton.value.host_name);
        let until = lapses.map_or_else(String::new, |left| {
            format!(
                "; if that agent is gone it lapses in {} s, later where the leader changes, never without quorum",
                left.as_secs()
            )
        });
        let _ = writeln!(text, "baton: {host} (pid {}){until}", baton.value.process.pid);
    }
    if let Some(down) = &keys.step {
        let _ = writeln!(text, "taken down: {}", step_lock(&down.value, names));
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
    for agent in keys.agents.values() {
        let (host, owns) =
            (printable(&agent.value.host_name), names.list(&agent.value.seats.members().collect::<Vec<_>>()));
        let waits = agent.value.waits_for.as_deref().map(printable);
        let doing = waits.map_or_else(|| "at work".to_owned(), |waits| format!("waits for {waits}"));
        let _ = writeln!(text, "agent: {host} ({owns}): {doing}");
    }
    for stale in &keys.stale {
        let _ = writeln!(
            text,
            "stale: {PREFIX}{} has no lease, so it is nobody's; the next agent run deletes it",
            stale.key
        );
    }
    text
}

pub(crate) fn step_lock(record: &StepLock, names: &Names) -> String {
    let way = if record.back { " (going back)" } else { "" };
    let (host, pid) = (printable(&record.host_name), record.process.pid);
    format!("{}{way} by {host} (pid {pid})", names.member(record.member))
}

fn run_line(run: &Run, names: &Names, members: usize) -> String {
    let what = words(Some(&run.intent.change)).run;
    let done = match run.done.len() {
        0 => format!("0 of {members}"),
        done => format!("{done} of {members}, {}", names.list(&run.done)),
    };
    let begun = run.begun_by.as_ref().map_or_else(String::new, |host| format!("; begun on {}", printable(host)));
    format!("run: {what}, {}; done: {done}{begun}\n", state(&run.state, names))
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
        RunState::Held { member } => format!("held before {}; {HOLD}", names.short(*member)),
        RunState::Approved => "approved: the last member may go".to_owned(),
        RunState::RollingBack => "going back".to_owned(),
        RunState::Paused => "paused by a newer agent".to_owned(),
        RunState::Done { result: RunResult::Reached } => "done".to_owned(),
        RunState::Done { result: RunResult::RolledBack } => "done, rolled back".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples;

    #[test]
    fn the_run_says_how_far_it_is() {
        let mut run = samples::run(RunState::Rolling);
        run.done.clear();
        let names = Names::default();
        assert!(run_line(&run, &names, 5).contains("done: 0 of 5"), "{}", run_line(&run, &names, 5));
        run.done.push(MemberId(7));
        assert!(run_line(&run, &names, 5).contains("done: 1 of 5, 7"), "{}", run_line(&run, &names, 5));
    }

    #[test]
    fn a_member_in_its_step_is_not_simply_ready() {
        let view = samples::view("1+ 2+ 3+");
        let members = crate::report::file::json::members(&view, &Names::default(), &Default::default());
        let text = cluster(&view, &members, None, None, Some(MemberId(2)));
        assert_eq!(text.matches("ready, in its step").count(), 1, "{text}");
    }
}
