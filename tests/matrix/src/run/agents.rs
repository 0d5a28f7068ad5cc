//! The agents of a step: started, killed, started again with the same command, until each host's part is done.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use lab::{
    Error,
    agent::Agent,
    ended::Ended,
    events,
    fault::{Call, Cut, Moment},
    wait,
};
use rustix::process::Signal;
use tokio::process::Command;

use super::{leaders, members, record::Record, stage::Stage};
use crate::plan::{Fault, Host, Pace, Step, Trouble, tree};

/// How long one agent may take; the longest wait within one is for a lease of 30 s.
const LIMIT: Duration = Duration::from_secs(240);
/// For how long the same command is run again while something was wrong in its step.
const RERUN_FOR: Duration = Duration::from_secs(180);
/// Before the same command is run again.
const PAUSE: Duration = Duration::from_millis(200);
/// How often the agents' events are counted.
const PERIOD: Duration = Duration::from_millis(10);
/// For an answer to a hand-over that nobody waits for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes the members of these hosts to the new release.
pub(super) async fn forward(
    stage: &mut Stage,
    step: &Step,
    hosts: &[Host],
    pace: Pace,
    record: &Record,
) -> Result<(), Error> {
    let ended = through(stage, step, "run", hosts, pace, record).await?;
    stage.is_forward.extend(hosts);
    if stage.is_forward.len() == stage.size() && !ended.iter().any(|ended| ended.said("cluster") == "done") {
        // Agents that were killed and came back alone may all have left before the cluster had settled.
        let all = stage.hosts();
        let calm = Step { faults: Vec::new(), ..step.clone() };
        let ended = through(stage, &calm, "run", &all, Pace::Together, record).await?;
        must_all_say_done(&ended)?;
    }
    Ok(())
}

/// Takes back whatever is at the new release.
pub(super) async fn back(stage: &mut Stage, step: &Step, record: &Record) -> Result<(), Error> {
    let all = stage.hosts();
    through(stage, step, "rollback", &all, Pace::Together, record).await?;
    stage.is_forward.clear();
    Ok(())
}

/// Takes the last member to the new release, by an agent that dies before the run is over. Every agent must refuse to go
/// back, and touch nothing; all together finish the run.
pub(super) async fn too_late(stage: &mut Stage, step: &Step, last: Host, record: &Record) -> Result<(), Error> {
    dies_with_its_member_ready(stage, step, last, record).await?;
    stage.is_forward.insert(last);
    stage.cluster.settled(stage.cluster_version()).await?;
    all_refuse_to_go_back(stage, last).await?;
    let all = stage.hosts();
    must_all_say_done(&through(stage, step, "run", &all, Pace::Together, record).await?)
}

async fn dies_with_its_member_ready(stage: &Stage, step: &Step, host: Host, record: &Record) -> Result<(), Error> {
    let agent = start(stage, "run", host, &["--expect-agents", "1"], |argv| argv)?;
    wait::until("the last member to be ready", LIMIT, || {
        // Its last line may be half written.
        let is_ready = agent.events().is_ok_and(|told| told.iter().any(|event| event.event == "member_ready"));
        std::future::ready(if is_ready || !agent.is_at_work() { Ok(()) } else { Err(agent.log()) })
    })
    .await?;
    // Nothing happens to one that was quicker.
    agent.process().and_then(|process| Ok(process.signal(Signal::KILL)?)).ok();
    let ended = agent.ended(LIMIT).await?;
    match ended.exit {
        None => record.agent_died(step, Ok(format!("it was killed, having said {}", last_event(&ended)))),
        Some(0) => record.agent_died(step, Err("it was quicker: the run was over")),
        Some(_) => return Err(format!("the agent of {} ended badly: {ended}", tree::member(host)).into()),
    }
    Ok(())
}

/// The host whose agent died is the first: what that one has left open is closed by its own next agent.
async fn all_refuse_to_go_back(stage: &Stage, first: Host) -> Result<(), Error> {
    let processes = || stage.layout().members.iter().map(|member| member.process().map(|found| found.pid));
    let before: Vec<_> = processes().collect();
    let others = stage.hosts().into_iter().filter(|host| *host != first);
    for host in [first].into_iter().chain(others) {
        let ended = start(stage, "rollback", host, &[], |argv| argv)?.ended(LIMIT).await?;
        if ended.exit != Some(3) {
            return Err(format!("going back was to be refused on {}: {ended}", tree::member(host)).into());
        }
    }
    match before == processes().collect::<Vec<_>>() {
        true => Ok(()),
        false => Err("a refused rollback restarted a member".into()),
    }
}

fn must_all_say_done(agents: &[Ended]) -> Result<(), Error> {
    match agents.iter().find(|ended| ended.said("cluster") != "done") {
        Some(ended) => Err(format!("every member is at the target, and not every agent says so: {ended}").into()),
        None => Ok(()),
    }
}

/// Has every host's member restarted by a guarded command, all at once; each must end well.
pub(super) async fn guarded(stage: &Stage) -> Result<(), Error> {
    let one = async |host: Host| {
        let pid = stage.member(host).process().ok_or("no process to restart")?.pid.to_string();
        let ended = start(stage, "guard", host, &["--", "/bin/kill", "-TERM", &pid], |argv| argv)?.ended(LIMIT).await?;
        match ended.exit {
            Some(0) => Ok(()),
            _ => Err(Error::from(format!("the guard of {} ended badly: {ended}", tree::member(host)))),
        }
    };
    join_all(stage.hosts().into_iter().map(one)).await.into_iter().collect()
}

/// Runs the agents of these hosts to good ends, with all that goes wrong in the step.
pub(super) async fn through(
    stage: &Stage,
    step: &Step,
    verb: &str,
    hosts: &[Host],
    pace: Pace,
    record: &Record,
) -> Result<Vec<Ended>, Error> {
    // Before any agent has begun: that somebody is away is theirs to see.
    let away = members::take_away(stage, step, record).await?;
    let agents = async {
        let mut ended = Vec::new();
        match pace {
            Pace::Together => {
                let one = |host: &Host| host_to_its_end(stage, step, verb, *host, hosts.len(), record);
                for done in join_all(hosts.iter().map(one)).await {
                    ended.push(done?);
                }
            }
            Pace::InTurn => {
                for host in hosts {
                    ended.push(host_to_its_end(stage, step, verb, *host, 1, record).await?);
                }
            }
        }
        Ok::<_, Error>(ended)
    };
    let at_work = match pace {
        Pace::Together => hosts,
        // The others come when this one has ended, and it does not end before every member is ready.
        Pace::InTurn => &hosts[..1],
    };
    let ended = tokio::select! {
        // Agents that ended badly leave nothing to be moved or waited for.
        ended = async { tokio::try_join!(agents, members::come_back(stage, away, at_work)) } => ended?.0,
        never = moved(stage, step, record) => never?,
    };
    let is_move = |fault: &&Fault| matches!(fault.trouble, Trouble::LeaderMoved { .. });
    if let Some(fault) = step.faults.iter().find(is_move).filter(|fault| !record.is_told(step, fault)) {
        record.missed(step, fault, "the step was over before");
    }
    Ok(ended)
}

/// One host's command, again and again until it ends well.
async fn host_to_its_end(
    stage: &Stage,
    step: &Step,
    verb: &str,
    host: Host,
    expected: usize,
    record: &Record,
) -> Result<Ended, Error> {
    for fault in &step.faults {
        match fault.trouble {
            Trouble::AgentLate { host: late, by } if late == host => {
                tokio::time::sleep(by).await;
                record.injected(step, fault, "the others began without it");
            }
            Trouble::AgentKilled { host: killed, sync, moment } if killed == host => {
                if let Some(ended) = cut(stage, step, fault, verb, (host, sync, moment), record).await? {
                    return Ok(ended);
                }
            }
            Trouble::AgentCutShort { host: killed, after } if killed == host => {
                if let Some(ended) = cut_short(stage, step, fault, verb, (host, after), record).await? {
                    return Ok(ended);
                }
            }
            _ => {}
        }
    }
    let began = Instant::now();
    loop {
        let count = expected.to_string();
        let ended = start(stage, verb, host, &["--expect-agents", &count], |argv| argv)?.ended(LIMIT).await?;
        match ended.exit {
            Some(0) => return Ok(ended),
            // Where something was wrong the same command again is what a person is told to type, and all that it takes.
            Some(1 | 3 | 5 | 6 | 10) if !step.faults.is_empty() && began.elapsed() < RERUN_FOR => {
                let (exit, reason) = (ended.exit.unwrap_or_default(), ended.said("reason"));
                record.again(step, &format!("agent {verb} of {}: exit {exit}, {reason}", tree::member(host)));
                tokio::time::sleep(PAUSE).await;
            }
            _ => return Err(format!("the agent of {} ended badly: {ended}", tree::member(host)).into()),
        }
    }
}

/// Starts this very program as the agent of a host.
fn start(
    stage: &Stage,
    verb: &str,
    host: Host,
    more: &[&str],
    wrap: impl FnOnce(Vec<OsString>) -> Vec<OsString>,
) -> Result<Agent, Error> {
    Agent::start_of(&stage.agent, verb, &stage.playbooks[&host], more, wrap)
}

/// Kills an agent at a sync of its journal; its end where it came to a good one before.
async fn cut(
    stage: &Stage,
    step: &Step,
    fault: &Fault,
    verb: &str,
    (host, sync, moment): (Host, usize, Moment),
    record: &Record,
) -> Result<Option<Ended>, Error> {
    let member = stage.member(host);
    let (file, trace) = (member.state_dir().join("journal"), member.dir.join(format!("trace-{}", fault.name(step))));
    let cut = Cut { file, call: Call::Fdatasync, nth: sync, moment, trace };
    if let Err(why) = tracing_is_possible().await {
        record.missed(step, fault, why);
        return Ok(None);
    }
    let agent = start(stage, verb, host, &[], |argv| cut.wrap(&argv))?;
    let process = agent.process()?;
    let was_cut = tokio::task::spawn_blocking(move || cut.carry_out(&process, LIMIT)).await??;
    let ended = agent.ended(LIMIT).await?;
    if was_cut {
        record.injected(step, fault, format!("the agent was killed, having said {}", last_event(&ended)));
        return Ok(None);
    }
    record.missed(step, fault, format!("the agent ended before, exit {:?}", ended.exit));
    Ok((ended.exit == Some(0)).then_some(ended))
}

/// Kills an agent once it has told of so much; its end where it came to a good one before.
async fn cut_short(
    stage: &Stage,
    step: &Step,
    fault: &Fault,
    verb: &str,
    (host, after): (Host, usize),
    record: &Record,
) -> Result<Option<Ended>, Error> {
    let agent = start(stage, verb, host, &[], |argv| argv)?;
    wait::until("an agent to tell of enough", LIMIT, || {
        let has_told = agent.events().is_ok_and(|told| told.len() > after);
        std::future::ready(if has_told || !agent.is_at_work() { Ok(()) } else { Err(agent.log()) })
    })
    .await?;
    // Nothing happens to one that was quicker.
    agent.process().and_then(|process| Ok(process.signal(Signal::KILL)?)).ok();
    let ended = agent.ended(LIMIT).await?;
    match ended.exit {
        None => record.injected(step, fault, format!("the agent was killed, having said {}", last_event(&ended))),
        Some(code) => record.missed(step, fault, format!("the agent ended before, exit {code}")),
    }
    Ok((ended.exit == Some(0)).then_some(ended))
}

/// Whether there is a strace, and it may trace: in a container it often may not.
async fn tracing_is_possible() -> Result<(), String> {
    let tried =
        Command::new("strace").args(["-f", "-q", "-o", "/dev/null", "true"]).stdin(Stdio::null()).output().await;
    let tried = tried.map_err(|error| format!("strace cannot be run: {error}"))?;
    match tried.status.success() {
        true => Ok(()),
        false => Err(format!("strace may not trace: {}", String::from_utf8_lossy(&tried.stderr).trim())),
    }
}

fn last_event(ended: &Ended) -> String {
    ended.events.last().map_or_else(|| "nothing".into(), |event| event.event.clone())
}

/// Moves leadership once agents have told of enough; never returns but with an error.
async fn moved(stage: &Stage, step: &Step, record: &Record) -> Result<Vec<Ended>, Error> {
    let wanted = step.faults.iter().find_map(|fault| match fault.trouble {
        Trouble::LeaderMoved { to, after } => Some((fault, to, after)),
        _ => None,
    });
    let Some((fault, to, after)) = wanted else { return std::future::pending().await };
    let before = told(&leaders::files(stage).into_iter().collect::<Vec<_>>())?;
    while told(&leaders::files(stage).into_iter().collect::<Vec<_>>())? < before + after {
        tokio::time::sleep(PERIOD).await;
    }
    match hand_over(stage, to).await {
        Ok(Moved::From(leader)) => record.injected(step, fault, format!("{leader} was told to hand over")),
        Ok(Moved::Perhaps(leader, answer)) => {
            record.perhaps(step, fault, format!("{leader} was told to hand over, and gave {answer}"));
        }
        Err(error) => record.missed(step, fault, error.to_string()),
    }
    std::future::pending().await
}

/// What is known of a hand-over.
enum Moved {
    /// This one led, and has handed over.
    From(String),
    /// This one led, was told to and gave this answer, and what came of it nobody knows.
    Perhaps(String, String),
}

async fn hand_over(stage: &Stage, to: Host) -> Result<Moved, Error> {
    let leader = stage.layout().leader().await?;
    let (from, wanted) = (leader.name.clone(), stage.member(to).name.clone());
    if from == wanted {
        return Err("it led already".into());
    }
    let id = stage.layout().client(stage.member(to))?.status().await?.header.unwrap_or_default().member_id;
    match tokio::time::timeout(PATIENCE, stage.layout().client(leader)?.move_leader(id)).await {
        Ok(Ok(())) => Ok(Moved::From(from)),
        Ok(Err(refused)) => Ok(Moved::Perhaps(from, refused.to_string())),
        Err(_) if stage.layout().leader().await?.name == wanted => Ok(Moved::From(from)),
        Err(_) => Ok(Moved::Perhaps(from, "no answer".into())),
    }
}

/// How many events these files hold.
fn told(files: &[PathBuf]) -> Result<usize, Error> {
    files.iter().try_fold(0, |sum, file| Ok(sum + events::read(file)?.len()))
}
