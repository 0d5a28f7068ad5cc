//! Members that come and go, by the agents of all hosts at once.

use std::fs;

use lab::{Error, ports::Ports};
use rustix::process::Signal;

use super::{agents, record::Record, stage::Stage};
use crate::plan::{Host, Pace, Step, tree};

/// Makes the members of these hosts the voters.
pub(super) async fn scale(stage: &mut Stage, step: &Step, to: &[Host], record: &Record) -> Result<(), Error> {
    let names: Vec<_> = to.iter().map(|host| tree::member(*host)).collect();
    let come: Vec<_> = to.iter().filter(|host| !stage.hosts().contains(host)).copied().collect();
    for host in come {
        lay_out(stage, host)?;
    }
    changed(stage, step, ("Scale", format!("members: [{}]", names.join(", "))), record).await
}

/// Puts one member in another's place.
pub(super) async fn replace(
    stage: &mut Stage,
    step: &Step,
    member: Host,
    by: Host,
    record: &Record,
) -> Result<(), Error> {
    if member == by {
        lose_its_disk(stage, member).await?;
    } else {
        lay_out(stage, by)?;
    }
    let line = format!("replace: {{ member: {}, by: {} }}", tree::member(member), tree::member(by));
    changed(stage, step, ("Replace", line), record).await
}

fn lay_out(stage: &mut Stage, host: Host) -> Result<(), Error> {
    let ports = Ports::lease(2)?;
    // Members come and go while all are of one release.
    let build = if stage.is_forward.is_empty() { &stage.from } else { &stage.to };
    let newcomer = stage.layout().newcomer(build, host, (ports.numbers[0], ports.numbers[1]))?;
    stage.newcomers.insert(host, newcomer);
    stage.ports.push(ports);
    Ok(())
}

async fn lose_its_disk(stage: &mut Stage, host: Host) -> Result<(), Error> {
    let member = stage.member(host).clone();
    let newcomer = member.as_newcomer();
    tokio::task::spawn_blocking(move || {
        member.end(Signal::KILL)?;
        Ok::<_, Error>(fs::remove_dir_all(member.data())?)
    })
    .await??;
    stage.newcomers.insert(host, newcomer);
    Ok(())
}

async fn changed(stage: &mut Stage, step: &Step, change: (&'static str, String), record: &Record) -> Result<(), Error> {
    stage.write_playbooks(Some(change))?;
    let all: Vec<Host> = stage.playbooks.keys().copied().collect();
    agents::through(stage, step, "run", &all, Pace::Together, record).await?;
    let after = step.action.after(&stage.hosts());
    let is_forward = !stage.is_forward.is_empty();
    let mut members = Vec::new();
    for host in &after {
        members.push(match stage.newcomers.remove(host) {
            Some(newcomer) => newcomer.joined()?,
            None => stage.member(*host).clone(),
        });
    }
    stage.cluster.layout.members = members;
    if is_forward {
        stage.is_forward = after.into_iter().collect();
    }
    stage.write_playbooks(None)
}
