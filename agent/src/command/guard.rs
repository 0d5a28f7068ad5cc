//! `agent guard`: a command that takes this host's members down, such as a reboot, when the cluster can do without them.

use std::{path::Path, time::Duration};

use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Outcome,
    run::{report_file, stop_of, trouble_of_setup},
    trusted_playbook,
};
use crate::{
    cli,
    event::{RunEvent, trouble::Trouble},
    execute::{
        guard::Order,
        identity::host_name,
        setup::{self, Options},
    },
    host::program::gated::Argv,
    observe::{HandOver, Observer, view::ClusterView},
    plan::{Guard, Verb},
    playbook::Playbook,
    report::{
        Output, Reporter,
        file::json::Facts,
        names::Names,
        stop::{Reason, Stop},
    },
    words::with_causes,
};

/// Between two tries of one that waits.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A shutdown waits for this.
const HAND_OVER_LIMIT: Duration = Duration::from_secs(10);

/// Runs the command, or ends the step of one that ran.
///
/// # Errors
/// What kept it from being told at all.
pub async fn guard(typed: &cli::Guard, output: Output) -> Result<u8, Trouble> {
    let playbook = trusted_playbook::load(&typed.playbook)?;
    let order = order(typed, output)?;
    let asked = match () {
        () if typed.finish => Guard::Finish,
        () if typed.check => Guard::Check,
        () => Guard::Command,
    };
    let began = Instant::now();
    let patience = typed.wait.unwrap_or_default();
    let report = typed.report.as_deref().map(report_file).transpose()?;
    let mut reporter = Reporter::open(output, typed.events.as_deref(), host_name())?.with_report(report);
    let mut told = String::new();
    loop {
        let stop = once(&playbook, Verb::Guard(asked), typed, order.clone(), &mut reporter).await;
        let is_over = began.elapsed() + AGAIN_AFTER > patience;
        if is_over || asked == Guard::Check || !may_pass(stop.reason) {
            return Ok(reporter.end(&stop));
        }
        if stop.message != told {
            reporter.tell(RunEvent::Warning(&format!("it is tried again: {}", stop.message)));
            told = stop.message;
        }
        sleep(AGAIN_AFTER).await;
    }
}

fn order(typed: &cli::Guard, output: Output) -> Result<Option<Order>, Trouble> {
    let Some(argv) = Argv::new(&typed.command) else { return Ok(None) };
    argv.check().map_err(|error| Trouble::Usage(with_causes(&error)))?;
    Ok(Some(Order { argv, reboots: typed.reboot, is_beside: output == Output::Json }))
}

/// What ends by itself, or by somebody who sees to it.
fn may_pass(reason: Reason) -> bool {
    use Reason as R;
    matches!(
        reason,
        R::Stalled
            | R::Alarm
            | R::BelowQuorum
            | R::MemberNotReady
            | R::NoLeader
            | R::NoAnswer
            | R::Unreachable
            | R::RunFailed
            | R::AbandonedMember
            | R::StateDirLocked
            | R::HandOverFailed
    )
}

async fn once(
    playbook: &Playbook,
    verb: Verb,
    typed: &cli::Guard,
    order: Option<Order>,
    reporter: &mut Reporter,
) -> Stop {
    let options = Options { verb, expect_agents: None, order, host_stays: typed.host_stays };
    let told = |trouble: Trouble| trouble.stop("guard --check", Some(&typed.playbook.to_string_lossy()), false);
    let execution = match setup::set_up(playbook.clone(), options, reporter).await {
        Ok(execution) => execution,
        Err(error) => return told(trouble_of_setup(error)),
    };
    let ended = execution.run().await;
    stop_of(ended, &typed.playbook, false, reporter.progress().names())
}

/// Passes leadership from this host's members to another, where one of them leads: before a shutdown that nobody announced.
///
/// # Errors
/// The playbook is wrong, or nobody answers.
pub(super) async fn hand_over(typed: &cli::Guard) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let late = || Trouble::Unreachable(format!("no answer within {} s", HAND_OVER_LIMIT.as_secs()));
    let handed = timeout(HAND_OVER_LIMIT, handed_over(&playbook)).await.map_err(|_| late())?;
    handed.map(|(reason, message)| outcome(reason, message, &typed.playbook))
}

async fn handed_over(playbook: &Playbook) -> Result<(Reason, String), Trouble> {
    let observer = Observer::connect(&playbook.cluster)?;
    let view = observer.probe().await?;
    let names = Names::of(&view);
    let leader = view.leader().filter(|leader| playbook.node(&leader.name).is_some());
    let Some(leader) = leader.map(|leader| leader.id) else {
        return Ok((Reason::NothingToDo, "no member of this host leads".to_owned()));
    };
    let Some(to) = successor(&view, playbook) else {
        return Ok((Reason::HandOverFailed, "no voter of another host is ready to lead".to_owned()));
    };
    Ok(match observer.move_leader(leader, to).await {
        HandOver::Moved => {
            let message = format!("{} passed leadership to {}", names.member(leader), names.member(to));
            (Reason::HandedOver, message)
        }
        HandOver::Refused(why) | HandOver::Unknown(why) => {
            (Reason::HandOverFailed, format!("{} did not pass leadership on: {why}", names.member(leader)))
        }
    })
}

fn successor(view: &ClusterView, playbook: &Playbook) -> Option<proto::MemberId> {
    let others = view.voters().filter(|voter| voter.is_ready() && playbook.node(&voter.name).is_none());
    others.map(|voter| voter.id).min()
}

fn outcome(reason: Reason, message: String, playbook: &Path) -> Outcome {
    let stop = Stop { next: None, ..Stop::well(reason, message.clone(), "status", playbook) };
    let mut facts = Facts { changed: reason == Reason::HandedOver, ..Facts::default() };
    facts.more.insert("handed_over".into(), json!(reason == Reason::HandedOver));
    Outcome { stop, facts, text: message + "\n" }
}
