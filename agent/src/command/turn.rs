//! A run waits for one of the other kind: one of the two changes the members, the other restarts them.
//!
//! Who waits holds no state directory, as this host may have a part in that run. It holds no key, as that run's agents would wait for it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    ask::no_signals,
    look::{self, Prober},
};
use crate::{
    event::{RunEvent, trouble::Trouble},
    execute::interrupt::Interrupt,
    keys::{Keys, host_id::HostId},
    plan::refusal::Wait,
    playbook::Playbook,
    report::Reporter,
};

/// How often it is looked whether the other run is over.
const PROBE_GAP: Duration = Duration::from_secs(1);

/// Waits until no other run stands in the way. `false` where no agent of another host than this is at work on it, or nothing has
/// been written of it for as long as a run may stall.
///
/// # Errors
/// A signal asked for an end, and what is wrong with the playbook's files.
pub async fn comes(
    playbook: &Playbook,
    host: HostId,
    begun_by: Option<&Arc<str>>,
    reporter: &mut Reporter,
) -> Result<bool, Trouble> {
    let interrupt = Interrupt::install().map_err(no_signals)?;
    let prober = Prober::open(&playbook.cluster)?;
    let (mut first, mut is_told, mut is_over) = (None, false, false);
    let (mut written, mut since) = (None, Instant::now());
    loop {
        // What cannot be read now may be later.
        if let Some(keys) = keys(&prober).await {
            let stands = keys.run.as_ref().filter(|run| !run.value.is_over());
            let is_at_work = keys.agents.keys().any(|other| *other != host);
            is_over = stands.is_none();
            match stands {
                Some(run) if *first.get_or_insert(run.value.id) != run.value.id => return Ok(true),
                // An agent of that run may not have read yet that it is over, and would take the next one for another's.
                Some(_) | None if !is_at_work => return Ok(is_over),
                Some(run) if written.replace(run.modified) != Some(run.modified) => since = Instant::now(),
                Some(_) | None => {}
            }
        }
        if since.elapsed() >= playbook.strategy.stall_timeout {
            return Ok(is_over);
        }
        if !std::mem::replace(&mut is_told, true) {
            reporter.tell(RunEvent::Waiting(Wait::OtherRun { begun_by: begun_by.cloned() }));
        }
        tokio::select! {
            () = tokio::time::sleep(PROBE_GAP) => {}
            () = interrupt.asked(1) => return Err(Trouble::Interrupted),
        }
    }
}

async fn keys(prober: &Prober) -> Option<Keys> {
    prober.observer().meet().await.ok()?;
    look::read(&prober.store.read().await).ok()
}
