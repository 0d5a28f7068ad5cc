//! A backup that is needed: saved from a member, and restored on every host by the release's own tool.

use std::{fs, process::Stdio};

use tokio::process::Command;

use super::{Broken, Symptom, stage::Stage, users::once};
use crate::{past::ancestry::restorer, plan::Host};

pub(super) async fn restore(stage: &mut Stage) -> Result<(), Broken> {
    stage.restored += 1;
    let file = stage.layout().dir.join(format!("saved-{}", stage.restored));
    let saved = file.to_string_lossy().into_owned();
    let from = stage.member(stage.hosts()[0])?.client_url.clone();
    if let Err(text) = once(stage, &from, &["snapshot", "save", &saved]).await? {
        return Err(Broken::new(Symptom::NotCarriedOut, format!("etcdctl snapshot save: {text}")));
    }
    let hosts = stage.hosts();
    hosts.iter().try_for_each(|host| stage.stop(*host))?;
    for host in &hosts {
        fs::remove_dir_all(stage.member(*host)?.data())?;
        restored(stage, *host, &saved).await?;
    }
    fs::remove_file(&file)?;
    for host in &hosts {
        stage.member(*host)?.start()?;
    }
    for host in &hosts {
        stage.serves(*host).await?;
        stage.watch(*host, 0)?;
    }
    Ok(())
}

/// The cluster gets a token of its own, as the guide says.
async fn restored(stage: &Stage, host: Host, saved: &str) -> Result<(), Broken> {
    let member = stage.member(host)?;
    let tool = stage.build()?.bin.join(restorer(&stage.release));
    let all = stage.layout().members.iter().map(|one| format!("{}={}", one.name, one.peer_url()));
    let done = Command::new(tool)
        .env("ETCDCTL_API", "3")
        .args(["snapshot", "restore", saved])
        .arg(format!("--name={}", member.name))
        .arg(format!("--data-dir={}", member.data().display()))
        .arg(format!("--initial-cluster={}", all.collect::<Vec<_>>().join(",")))
        .arg(format!("--initial-cluster-token=restored-{}", stage.restored))
        .arg(format!("--initial-advertise-peer-urls={}", member.peer_url()))
        .stdin(Stdio::null())
        .output()
        .await?;
    match done.status.success() {
        true => Ok(()),
        false => {
            Err(Broken::new(Symptom::NotCarriedOut, format!("no restore: {}", String::from_utf8_lossy(&done.stderr))))
        }
    }
}
