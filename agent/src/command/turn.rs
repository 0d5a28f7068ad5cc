//! A run waits for another that it does not contradict: a change of members for a restart and the other way round, one replacement
//! for another (L-16).
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
    plan::{
        refusal::Wait,
        turn::{Turn, Waiting},
    },
    playbook::Playbook,
    report::Reporter,
};

/// How often it is looked whether the other run is over.
const PROBE_GAP: Duration = Duration::from_secs(1);

/// Waits until no other run stands in the way. `false` where nobody ends the one that does.
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
    let mut waiting = Waiting::since(Instant::now());
    loop {
        let keys = keys(&prober).await;
        match waiting.look(keys.as_ref(), host, Instant::now(), playbook.strategy.stall_timeout) {
            Turn::Waits => {}
            turn @ (Turn::Comes | Turn::Never) => return Ok(turn == Turn::Comes),
        }
        reporter.tell(RunEvent::Waiting(Wait::OtherRun { begun_by: begun_by.cloned() }));
        tokio::select! {
            () = tokio::time::sleep(PROBE_GAP) => {}
            () = interrupt.asked(1) => return Err(Trouble::Interrupted),
        }
    }
}

/// What cannot be read now may be later.
async fn keys(prober: &Prober) -> Option<Keys> {
    prober.observer().meet().await.ok()?;
    look::read(&prober.store.read().await).ok()
}
