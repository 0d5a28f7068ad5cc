//! What goes wrong with members: they are killed, stand still, are slow or cut off, are restarted by hand, or their hosts lose
//! power.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use lab::{
    Error, fault,
    network::Network,
    process::Process,
    syncs::Syncs,
    wait::{self, GENEROUS},
};
use rustix::process::Signal;
use tokio::task::block_in_place;

use super::{agents, record::Record, stage::Stage};
use crate::plan::{Fault, Host, Step, Trouble, tree};

/// How long is waited for a member to sync so often.
const SYNCS_LIMIT: Duration = Duration::from_secs(15);

/// A member that is away, and how it comes back.
pub(super) enum Away {
    Killed {
        host: Host,
        /// After how long it is started again.
        back_after: Duration,
    },
    Paused {
        process: Process,
        lasts: Duration,
    },
    DiskSlow {
        syncs: Syncs,
        lasts: Duration,
    },
    /// It is there, and says that its space is used up.
    Alarmed {
        host: Host,
        lasts: Duration,
    },
    /// The way between it and the others is not as it should be.
    Far {
        lasts: Duration,
    },
}

/// Leaves the cluster alone for a while, but for what goes wrong.
pub(super) async fn rest(stage: &Stage, step: &Step, lasts: Duration, record: &Record) -> Result<(), Error> {
    let away = take_away(stage, step, record).await?;
    let (back, ()) = tokio::join!(come_back(stage, away, &[]), tokio::time::sleep(lasts));
    back
}

/// What goes wrong with members as this step begins; when this returns, whoever is to be away is.
pub(super) async fn take_away(stage: &Stage, step: &Step, record: &Record) -> Result<Vec<Away>, Error> {
    let mut away = Vec::new();
    for fault in &step.faults {
        match &fault.trouble {
            Trouble::MemberKilled { member, back_after } => {
                let pid = kill(stage, *member).await?;
                record.injected(step, fault, format!("process {pid} was killed"));
                away.push(Away::Killed { host: *member, back_after: *back_after });
            }
            Trouble::MemberPaused { member, lasts } => {
                let process = stage.member(*member).process().ok_or("no process to stop")?;
                fault::freeze(&process)?;
                record.injected(step, fault, format!("process {} stands still", process.pid));
                away.push(Away::Paused { process, lasts: *lasts });
            }
            Trouble::MemberRestarted { member } => {
                let process = stage.member(*member).process().ok_or("no process to restart")?;
                record.injected(step, fault, format!("process {} was told to end", process.pid));
                // Both wait, and others' looks must go on.
                block_in_place(|| stage.member(*member).end(Signal::TERM))?;
                block_in_place(|| stage.member(*member).start())?;
            }
            Trouble::MemberKilledAtSync { member, sync, back_after } => {
                let process = stage.member(*member).process().ok_or("no process to kill")?;
                match block_in_place(|| kill_at_sync(&process, *sync, &trace(stage, *member, step, fault))) {
                    Ok(true) => {
                        record.injected(step, fault, format!("process {} was killed", process.pid));
                        away.push(Away::Killed { host: *member, back_after: *back_after });
                    }
                    Ok(false) => record.missed(step, fault, "no thread of it synced so often in time"),
                    Err(why) => record.missed(step, fault, why.to_string()),
                }
            }
            Trouble::DiskSlow { member, by, lasts } => {
                let process = stage.member(*member).process().ok_or("no process to slow down")?;
                match block_in_place(|| Syncs::slow(&process, *by, &trace(stage, *member, step, fault))) {
                    Ok(syncs) => {
                        record.injected(step, fault, format!("the syncs of process {} are held", process.pid));
                        away.push(Away::DiskSlow { syncs, lasts: *lasts });
                    }
                    Err(why) => record.missed(step, fault, why.to_string()),
                }
            }
            Trouble::MemberCutOff { member, lasts } => {
                let Some(network) = &stage.network else { continue };
                network.cut(*member);
                record.injected(step, fault, "nothing passes between it and the others");
                away.push(Away::Far { lasts: *lasts });
            }
            Trouble::LinkSlow { member, by, lasts } => {
                let Some(network) = &stage.network else { continue };
                network.delay(*member, *by);
                record.injected(step, fault, "all that passes between it and the others is late");
                away.push(Away::Far { lasts: *lasts });
            }
            Trouble::AlarmRaised { of, lasts } => {
                stage.layout().client(stage.member(*of))?.alarm_no_space(true).await?;
                record.injected(step, fault, "writes are refused");
                away.push(Away::Alarmed { host: *of, lasts: *lasts });
            }
            Trouble::HostsGuarded => {
                agents::guarded(stage).await?;
                record.injected(step, fault, "each host's guard ended with exit 0");
            }
            Trouble::PowerCut { member } => block_in_place(|| power_cut(stage, step, fault, *member, record))?,
            Trouble::AgentKilled { .. }
            | Trouble::AgentCutShort { .. }
            | Trouble::AgentLate { .. }
            | Trouble::Maintained { .. }
            | Trouble::LeaderMoved { .. } => {}
        }
    }
    Ok(away)
}

fn kill_at_sync(process: &Process, sync: usize, trace: &Path) -> Result<bool, Error> {
    Syncs::killed_at(process, sync, trace)?.has_killed(process, SYNCS_LIMIT)
}

/// Where strace writes what it sees of a member.
fn trace(stage: &Stage, host: Host, step: &Step, fault: &Fault) -> PathBuf {
    stage.member(host).dir.join(format!("trace-{}", fault.name(step)))
}

async fn kill(stage: &Stage, host: Host) -> Result<i32, Error> {
    let process = stage.member(host).process().ok_or("no process to kill")?;
    let pid = process.pid;
    tokio::task::spawn_blocking(move || {
        process.signal(Signal::KILL)?;
        Ok::<_, Error>(process.ended(GENEROUS)?)
    })
    .await??;
    Ok(pid)
}

/// Waits until each is there again. `at_work` are the hosts whose agents start members that they find down.
pub(super) async fn come_back(stage: &Stage, away: Vec<Away>, at_work: &[Host]) -> Result<(), Error> {
    for member in away {
        match member {
            Away::Killed { host, back_after } => {
                tokio::time::sleep(back_after).await;
                started(stage, host, at_work).await?;
            }
            Away::Paused { process, lasts } => {
                tokio::time::sleep(lasts).await;
                fault::thaw(&process)?;
            }
            Away::DiskSlow { syncs, lasts } => {
                tokio::time::sleep(lasts).await;
                block_in_place(|| syncs.end())?;
            }
            Away::Alarmed { host, lasts } => {
                tokio::time::sleep(lasts).await;
                let client = stage.layout().client(stage.member(host))?;
                let taken_back = || async { client.alarm_no_space(false).await.map_err(|status| status.to_string()) };
                wait::until("the alarm to be taken back", GENEROUS, taken_back).await?;
            }
            Away::Far { lasts } => {
                tokio::time::sleep(lasts).await;
                stage.network.iter().for_each(Network::repair);
            }
        }
    }
    Ok(())
}

async fn started(stage: &Stage, host: Host, at_work: &[Host]) -> Result<(), Error> {
    let member = stage.member(host);
    if !at_work.contains(&host) {
        return if member.is_running() { Ok(()) } else { member.start().map(drop) };
    }
    // Its agent starts it, and two processes of one member are one too many.
    let what = format!("the agent of {} to start it", tree::member(host));
    let is_back = || std::future::ready(member.is_running().then_some(()).ok_or_else(|| "it is down".to_owned()));
    Ok(wait::until(&what, GENEROUS, is_back).await?)
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
