//! What compactions have hidden is forgotten in steps beside everything else, so that no entry waits for it.

use std::time::Duration;

use consensus::aside;
use proto::Revision;
use tokio::{sync::watch, time::sleep};

use super::Machine;

/// So many changes while the state is locked: about a millisecond.
const STEP_CHANGES: usize = 500;
/// Between two steps others have the state.
const PAUSE: Duration = Duration::from_millis(1);

impl Machine {
    /// Up to which compaction everything is forgotten here, as it moves.
    pub fn forgotten(&self) -> watch::Receiver<Revision> {
        self.shared.forgotten.subscribe()
    }

    /// Forgets, for as long as it is polled.
    pub async fn forget(self) {
        loop {
            self.hash_last().await;
            let machine = self.clone();
            // Where it has panicked, what is left is given back at the next start.
            match aside(move || machine.forget_some()).await {
                Ok(None) => sleep(PAUSE).await,
                Ok(Some(compacted)) => {
                    self.shared.forgotten.send_replace(compacted);
                    self.shared.compacted.notified().await;
                }
                Err(_) => return,
            }
        }
    }

    /// Before anything that it hides is gone.
    async fn hash_last(&self) {
        if !self.read(|state| state.keys.is_to_be_hashed()) {
            return;
        }
        let _turn = self.turn_to_hash().await;
        let machine = self.clone();
        // Where it has panicked, that compaction has no hash.
        let _ = aside(move || machine.hash_compaction()).await;
    }

    /// One step, of what is hashed; the compaction that is done with, once there is nothing more.
    fn forget_some(&self) -> Option<Revision> {
        let mut state = self.write();
        if state.keys.is_to_be_hashed() {
            return None;
        }
        (!state.keys.forget(STEP_CHANGES)).then(|| state.keys.compacted())
    }
}
