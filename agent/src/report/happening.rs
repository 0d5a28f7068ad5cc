//! What happens in a run.
#![allow(missing_docs)]
use crate::{observe::view::ClusterView, plan::refusal::Wait, rollout::keys::RunId};
use proto::MemberId;
use std::sync::Arc;
#[derive(Clone, Debug)]
pub enum Happening {
    Looked(ClusterView),
    Joined { run: RunId },
    Waiting(Wait),
    BatonTaken,
    BatonGivenBack,
    HandedOver { from: MemberId, to: MemberId },
    RecordPut { member: MemberId },
    Stopping { member: MemberId },
    Stopped { member: MemberId },
    Switched { member: MemberId },
    Started { member: MemberId },
    Ready { member: MemberId },
    RecordDeleted { member: MemberId },
    Failed { member: MemberId, why: Arc<str> },
    PuttingBack { member: MemberId },
    KeptNew { member: MemberId },
    Mended { member: MemberId },
    HookRan { member: MemberId },
    Settling,
    Settled,
    Warning(String),
}
#[derive(Debug)]
pub struct Reporter;
impl Reporter {
    pub fn tell(&mut self, happening: Happening) {
        tracing::info!(?happening);
    }
}
