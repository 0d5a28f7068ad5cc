//! A member is away while the others go on, and comes back to what it has missed.

use lab::{fault, wait};
use rustix::process::Signal;
use tokio::task::block_in_place;

use super::{Broken, Symptom, perform, stage::Stage};
use crate::{
    past::{Absence, Action},
    plan::Host,
};

pub(super) async fn away(stage: &mut Stage, host: Host, how: Absence, meanwhile: &[Action]) -> Result<(), Broken> {
    let process = stage.member(host)?.process();
    let id = stage.client(host)?.status().await?.header.unwrap_or_default().member_id;
    match how {
        Absence::Stopped => stage.stop(host)?,
        Absence::Killed => block_in_place(|| stage.member(host)?.end(Signal::KILL).map_err(Broken::from))?,
        Absence::Paused => process.iter().try_for_each(fault::freeze)?,
    }
    stage.away.insert(host);
    another_leads(stage, id).await?;
    for action in meanwhile {
        Box::pin(perform(stage, action)).await?;
    }
    stage.away.remove(&host);
    match how {
        Absence::Stopped | Absence::Killed => stage.begin(host).await,
        Absence::Paused => {
            process.iter().try_for_each(fault::thaw)?;
            stage.serves(host).await
        }
    }
}

/// What followers sent a leader that stands still would have its effect when it goes on.
async fn another_leads(stage: &Stage, away: u64) -> Result<(), Broken> {
    for client in stage.clients()? {
        let led = wait::until("another member to lead", wait::GENEROUS, || async {
            match client.status().await {
                Ok(status) if ![0, away].contains(&status.leader) => Ok(()),
                Ok(status) => Err(format!("{:x} leads", status.leader)),
                Err(status) => Err(status.message().to_owned()),
            }
        });
        led.await.map_err(|late| Broken::new(Symptom::DoesNotServe, late.to_string()))?;
    }
    Ok(())
}
