//! What goes wrong with members: they are killed, stand still, are restarted by hand, or their hosts lose power.

use std::time::Duration;

use lab::{
    Error, fault,
    wait::{self, GENEROUS},
};
use rustix::process::Signal;

use super::{record::Record, stage::Stage};
use crate::matrix::plan::{Fault, Host, Step, Trouble, tree};

/// The time between two looks at whether a member runs again.
const PERIOD: Duration = Duration::from_millis(20);

/// Leaves the cluster alone for a while, but for what goes wrong.
pub(super) async fn rest(stage: &Stage, step: &Step, lasts: Duration, record: &Record) -> Result<(), Error> {
    let (troubled, ()) = tokio::join!(trouble(stage, step, &[], record), tokio::time::sleep(lasts));
    troubled
}

/// What goes wrong with members as this step begins, until each is there again. `at_work` are the hosts whose agents
/// start members that they find down.
pub(super) async fn trouble(stage: &Stage, step: &Step, at_work: &[Host], record: &Record) -> Result<(), Error> {
    for fault in &step.faults {
        match &fault.trouble {
            Trouble::MemberKilled { member, back_after } => {
                killed(stage, *member, *back_after, at_work, &|note| record.injected(step, fault, note)).await?;
            }
            Trouble::MemberPaused { member, lasts } => paused(stage, step, fault, *member, *lasts, record).await?,
            Trouble::MemberRestarted { member } => {
                let process = stage.member(*member).process().ok_or("no process to restart")?;
                record.injected(step, fault, format!("process {} was told to end", process.pid));
                stage.member(*member).end(Signal::TERM)?;
                stage.member(*member).start()?;
            }
            Trouble::PowerCut { member } => power_cut(stage, step, fault, *member, record)?,
            Trouble::AgentKilled { .. } | Trouble::AgentLate { .. } | Trouble::LeaderMoved { .. } => {}
        }
    }
    Ok(())
}

async fn killed(
    stage: &Stage,
    host: Host,
    back_after: Duration,
    at_work: &[Host],
    injected: &(dyn Fn(String) + Sync),
) -> Result<(), Error> {
    let member = stage.member(host);
    let process = member.process().ok_or("no process to kill")?;
    let pid = process.pid;
    tokio::task::spawn_blocking(move || {
        process.signal(Signal::KILL)?;
        Ok::<_, Error>(process.ended(GENEROUS)?)
    })
    .await??;
    injected(format!("process {pid} was killed"));
    tokio::time::sleep(back_after).await;
    if !at_work.contains(&host) {
        return if member.is_running() { Ok(()) } else { member.start().map(drop) };
    }
    // Its agent starts it, and two processes of one member are one too many.
    let what = format!("the agent of {} to start it", tree::member(host));
    let is_back = || std::future::ready(member.is_running().then_some(()).ok_or_else(|| "it is down".to_owned()));
    wait::until(&what, GENEROUS, is_back).await?;
    tokio::time::sleep(PERIOD).await;
    Ok(())
}

async fn paused(
    stage: &Stage,
    step: &Step,
    fault: &Fault,
    host: Host,
    lasts: Duration,
    record: &Record,
) -> Result<(), Error> {
    let process = stage.member(host).process().ok_or("no process to stop")?;
    fault::freeze(&process)?;
    record.injected(step, fault, format!("process {} stands still", process.pid));
    tokio::time::sleep(lasts).await;
    fault::thaw(&process)
}

fn power_cut(stage: &Stage, step: &Step, fault: &Fault, host: Host, record: &Record) -> Result<(), Error> {
    // Where there is none the record says why.
    let Some(disk) = stage.disks.get(&host) else { return Ok(()) };
    disk.lose_power()?;
    record.injected(step, fault, "its file system was shut down as it was");
    stage.member(host).end(Signal::KILL)?;
    disk.power_on()?;
    stage.member(host).start().map(drop)
}
