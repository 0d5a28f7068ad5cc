//! `agent run`, `rollback`, `finalize` and `resume`: one way through all rooms, with different verbs.

use std::path::{Path, PathBuf};

use proto::MemberId;

use super::{ask::ask, pause, trusted_playbook, turn};
use crate::{
    cli::Rollout,
    event::{Decision, RunEvent, trouble::Trouble},
    execute::{
        Abort, Ended, LAST_STATUS,
        error::ActError,
        identity::host_name,
        inspect::processes,
        setup::{self, Options, SetupError},
    },
    journal::restart::Direction,
    machine::act::Ending,
    plan::{Verb, refusal::Refusal},
    playbook::Playbook,
    report::{
        Output, Reporter,
        file::{metrics_file::MetricsFile, report_file::ReportFile},
        names::Names,
        shown::grants,
        stop::{self, Context, Reason, Stop},
    },
    words::with_causes,
};

/// Carries a playbook out, tells what happens, and gives the exit code.
///
/// # Errors
/// What kept it from being told at all.
pub async fn run(verb: Verb, typed: &Rollout, replace: bool, output: Output) -> Result<u8, Trouble> {
    let mut playbook = trusted_playbook::load(&typed.playbook)?;
    playbook.strategy.accept_hazards.extend(typed.accepting.ids());
    let metrics = typed.metrics_file.as_deref().map(|path| metrics_file(path, &playbook)).transpose()?;
    let report = typed.report.as_deref().map(report_file).transpose()?;
    let lifted = if verb == Verb::Resume { pause::lift(&playbook).await? } else { None };
    // Whoever resumes a run goes its way.
    let verb = if lifted == Some(Direction::Back) { Verb::Rollback } else { verb };
    ask(&playbook, verb, typed, replace, output).await?;
    let reporter = Reporter::open(output, typed.events.as_deref(), host_name())?;
    let mut reporter = reporter.with_metrics(metrics).with_report(report);
    if lifted.is_some() {
        reporter.tell(RunEvent::Decided(Decision::Unpaused));
    }
    let stop = match carry_out(&playbook, verb, typed, replace, &mut reporter).await {
        Ok(stop) => stop,
        // This host's own agent waited for it.
        Err(Trouble::StateDirLocked(_)) if lifted.is_some() => {
            let message = "the pause is lifted, and the agent that is at work on this host goes on".to_owned();
            Stop::well(Reason::Resumed, message, "status", &typed.playbook)
        }
        // Another host's command has lifted it, or nothing was to be lifted.
        Err(Trouble::StateDirLocked(_)) if is_resumed(verb, &playbook).await => {
            let message = "the run is not paused, and the agent that is at work on this host goes on".to_owned();
            Stop::well(Reason::Resumed, message, "status", &typed.playbook)
        }
        Err(trouble) => {
            let stop = trouble.stop(stop::typed(verb), Some(&typed.playbook.to_string_lossy()), false);
            let stop = if reporter.progress().has_changed() { stop.after_a_start() } else { stop };
            // A status command may hang, and this is only for the report.
            let found = tokio::time::timeout(LAST_STATUS, processes(&playbook)).await.unwrap_or_default();
            stop.with_down(&found.down, &found.unclear)
        }
    };
    Ok(reporter.end(&stop.passing(&typed.accepting.words(), &typed.playbook)))
}

async fn is_resumed(verb: Verb, playbook: &Playbook) -> bool {
    verb == Verb::Resume && pause::is_going_on(playbook).await.unwrap_or(false)
}

fn metrics_file(path: &Path, playbook: &Playbook) -> Result<MetricsFile, Trouble> {
    MetricsFile::open(path, &playbook.cluster.name, host_name())
        .map_err(|error| Trouble::Usage(format!("--metrics-file {}: {}", path.display(), error.source)))
}

pub(super) fn report_file(path: &Path) -> Result<ReportFile, Trouble> {
    ReportFile::open(path, host_name()).map_err(|error| Trouble::Usage(format!("--report {}: {error}", path.display())))
}

async fn carry_out(
    playbook: &Playbook,
    verb: Verb,
    typed: &Rollout,
    replace: bool,
    reporter: &mut Reporter,
) -> Result<Stop, Trouble> {
    loop {
        let options = Options { verb, expect_agents: typed.expect_agents, order: None, host_stays: false };
        let mut execution = setup::set_up(playbook.clone(), options, reporter).await.map_err(trouble_of_setup)?;
        let refusal = if replace { execution.replace().await? } else { None };
        let host = execution.me.host;
        let ended = match refusal {
            Some(refusal) => execution.refused(refusal).await,
            None => execution.run().await,
        };
        let is_its_turn = match &ended.ending {
            Ok(Ending::Refused(Refusal::OtherRun { begun_by, takes_turns: true, .. })) => {
                turn::comes(playbook, host, begun_by.as_ref(), reporter).await?
            }
            _ => false,
        };
        if !is_its_turn {
            let (me, progress) = (ended.me.clone(), reporter.progress());
            let stop = stop_of(ended, &typed.playbook, typed.require_complete, progress.names());
            let path = typed.playbook.to_string_lossy();
            return Ok(stop.with_other_ways(Some(&me.intent.change), progress.last_backup(), &path));
        }
    }
}

/// How it ended, for a person; `playbook` as it was typed.
pub(super) fn stop_of(ended: Ended, playbook: &Path, require_complete: bool, names: &Names) -> Stop {
    let path = playbook.to_string_lossy();
    let Ended { ending, me, touched, view, stale, down, trouble, blind, in_hand } = ended;
    let context = Context {
        names,
        view: view.as_ref(),
        stale,
        down: &down,
        playbook: &path,
        verb: me.verb,
        change: Some(&me.intent.change),
        touched,
        require_complete,
    };
    let told = |trouble: &Trouble| {
        let verb = if in_hand.is_some() { context.onward() } else { stop::typed(me.verb) };
        let stop = trouble.stop(verb, Some(&path), touched);
        let left = match (stop.left.is_empty(), down.is_empty()) {
            (true, _) => context.cluster_now(),
            (false, true) => stop.left,
            (false, false) => format!("{}; {}", stop.left, context.cluster_now()),
        };
        Stop { left, ..stop }
    };
    let stop = match (ending, trouble, blind) {
        (Ok(Ending::Unprepared(_)), Some(trouble), _) => told(&trouble),
        (Ok(Ending::Refused(Refusal::NoLeader)), _, Some(blind)) => told(&blind),
        (Ok(ending), _, Some(blind)) if blind.is_denial() => {
            stop::denied(&ending, &blind, &context).unwrap_or_else(|| stop::of(&ending, &context))
        }
        (Ok(ending), ..) => stop::of(&ending, &context),
        (Err(Abort::HostGoesDown), ..) => stop::host_goes_down(&context),
        (Err(abort), ..) => told(&trouble_of_abort(abort, in_hand, names)),
    };
    match me.verb {
        Verb::Guard(_) => stop,
        _ => stop.on_the_way(&me.intent, playbook, require_complete),
    }
}

fn trouble_of_abort(abort: Abort, in_hand: Option<MemberId>, names: &Names) -> Trouble {
    match abort {
        Abort::Journal(error) => Trouble::System(format!("the journal cannot be written: {}", with_causes(&error))),
        Abort::Keys(error) => error.into(),
        Abort::Refused(reason) => {
            let role = match reason.contains("permission denied") {
                true => format!("; `{}` says which role an agent needs", grants::COMMAND),
                false => String::new(),
            };
            Trouble::AuthRefused(format!("the shared keys cannot be read or written: {reason}{role}"))
        }
        Abort::Removed { member, by, lock } => {
            Trouble::Removed { name: names.short(member), member: names.member(member), by: by.join(", "), lock }
        }
        Abort::DataGone { member, lock } => Trouble::DataGone { name: names.short(member), lock: Some(lock) },
        Abort::Alone { member, others } => {
            let others = others.into_iter().map(|other| names.member(other)).collect();
            Trouble::Alone { name: names.member(member), others }
        }
        Abort::AtOnce | Abort::HostGoesDown => {
            Trouble::InterruptedAtOnce { member: in_hand.map(|member| (member, names.short(member))) }
        }
    }
}

/// How it is told that a run could not begin.
pub(super) fn trouble_of_setup(error: SetupError) -> Trouble {
    use crate::{host::files::state_dir::StateDirError, journal::file::JournalError};
    let damaged = |text, journal: PathBuf| Trouble::JournalDamaged { text, journal };
    match error {
        SetupError::StateDir(error @ StateDirError::Locked { .. }) => Trouble::StateDirLocked(with_causes(&error)),
        SetupError::StateDir(error) => Trouble::StateDir(with_causes(&error)),
        SetupError::Journal(error @ JournalError::OtherCluster { .. }) => Trouble::OtherCluster(with_causes(&error)),
        SetupError::Journal(error @ (JournalError::File(_) | JournalError::Append { .. })) => {
            Trouble::StateDir(with_causes(&error))
        }
        SetupError::Journal(error) => {
            let text = with_causes(&error);
            match error {
                JournalError::Damaged { path, .. } | JournalError::Unreadable { path, .. } => damaged(text, path),
                JournalError::Newer { .. } => Trouble::JournalNewer(text),
                _ => Trouble::System(text),
            }
        }
        SetupError::Restoring(record) => Trouble::Restoring { words: record.words(), from: record.from },
        error @ SetupError::RestoreRecord(_) => Trouble::StateDir(with_causes(&error)),
        SetupError::Illegal { ref path, .. } => damaged(with_causes(&error), path.clone()),
        SetupError::Observe(error) => error.into(),
        SetupError::NoSuchMember { name, known } => Trouble::NoSuchMember { typed: name, members: known.join(", ") },
        error @ SetupError::SameName { .. } => Trouble::Unprepared(with_causes(&error)),
        error @ SetupError::NewNode { .. } => Trouble::Unprepared(with_causes(&error)),
        ref error @ SetupError::NoQuorum { ref ended, .. } => Trouble::NoQuorum(with_causes(error) + ended),
        SetupError::Unfit(why) => Trouble::Unprepared(why.to_string()),
        SetupError::Interrupted => Trouble::Interrupted,
        SetupError::Node { name, why } if matches!(*why, ActError::DataGone { .. }) => {
            Trouble::DataGone { name, lock: None }
        }
        SetupError::Node { name, why } => match *why {
            ActError::KnownHazard { id, shown, .. } => Trouble::KnownHazard { name, id, shown },
            why => {
                let (why, name) = (why.to_string(), format!("{name}: "));
                Trouble::Unprepared(if why.starts_with(&name) { why } else { name + &why })
            }
        },
        SetupError::Own(error) => Trouble::System(with_causes(&error)),
    }
}
