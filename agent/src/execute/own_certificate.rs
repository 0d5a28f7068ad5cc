//! The agent's own certificate: whether it lasts for a step, so that a member is not down with an agent that nobody lets in.
//!
//! A connection outlives the certificate it was made with, a new one is refused; a member that was restarted is the first to
//! need a new one. New files are taken over as they come (`observe/tls.rs`).

use std::time::{Duration, SystemTime};

use proto::MemberId;

use super::{Execution, error::ActError};
use crate::{observe::access::Access, playbook::Playbook};

/// One that ends sooner is spoken of: a run may outlive it. Many live for a few days only, and are renewed by a machine.
const SOON: Duration = Duration::from_secs(24 * 3600);

/// What is to be said of a certificate.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Lasts,
    /// It ends soon, and not within a step.
    EndsSoon,
    /// It had ended when the run began, and the cluster answers all the same: it does not ask for one.
    NotAskedFor,
    /// It has ended, or does within a step.
    TooShort,
}

/// `began`: when the run did. `step`: how long a step may take.
fn judge(end: SystemTime, began: SystemTime, now: SystemTime, step: Duration) -> Verdict {
    match end.duration_since(now) {
        _ if end <= began => Verdict::NotAskedFor,
        Ok(left) if left > SOON.max(step) => Verdict::Lasts,
        Ok(left) if left > step => Verdict::EndsSoon,
        _ => Verdict::TooShort,
    }
}

/// Refuses a certificate that does not last for a step; a warning of one that ends soon. `began`: when the run did.
///
/// # Errors
/// When it ends, and what to do.
pub(super) fn check(access: &Access, began: SystemTime, playbook: &Playbook) -> Result<Option<String>, ActError> {
    let Some(validity) = access.own_validity() else { return Ok(None) };
    let (now, step) = (SystemTime::now(), longest_step(playbook));
    let its = validity.in_words(now);
    match judge(validity.end, began, now, step) {
        Verdict::Lasts => Ok(None),
        Verdict::EndsSoon => Ok(Some(format!("{its}; renew it, a run takes the new one over"))),
        Verdict::NotAskedFor => Ok(Some(format!("{its}; the cluster answers all the same"))),
        Verdict::TooShort => Err(format!(
            "{its}, and the step of a member may take {step:?}, after which nobody would let the agent in; renew it, then \
             repeat the command"
        )
        .into()),
    }
}

/// As long as a member's stop, its way to readiness and its soak may take.
fn longest_step(playbook: &Playbook) -> Duration {
    let stop = playbook.nodes.iter().map(|node| node.stop.timeout).max().unwrap_or_default();
    stop + playbook.strategy.health + playbook.strategy.soak
}

impl Execution<'_> {
    /// As [`check`], of the run under way.
    pub(super) fn check_own_certificate(&self) -> Result<Option<String>, ActError> {
        let began = SystemTime::now().checked_sub(self.began.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        check(self.cluster.observer.access(), began, &self.playbook)
    }

    /// Why a member may seem not to answer, where the fault is the agent's.
    pub(super) fn own_certificate_fault(&self, member: MemberId) -> Option<String> {
        let fault = self.cluster.observer.access().own_validity()?.fault(SystemTime::now())?;
        let name = self.name_of(member);
        Some(format!("{fault}: {name} may serve, and refuse the agent alone; renew it, then repeat the command"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_must_last_for_a_step() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        const DAY: u64 = 24 * 3600;
        // In seconds: its end, the run's beginning, now.
        for (end, began, now, verdict) in [
            (100 * DAY, DAY, DAY, Verdict::Lasts),
            (2 * DAY + 1, DAY, DAY, Verdict::Lasts),
            (2 * DAY, DAY, DAY, Verdict::EndsSoon),
            (DAY + 61, DAY, DAY, Verdict::EndsSoon),
            (DAY + 60, DAY, DAY, Verdict::TooShort),
            (DAY + 1, DAY, DAY, Verdict::TooShort),
            (DAY + 1, DAY, DAY + 1, Verdict::TooShort), // it ended while the run went on
            (DAY + 1, DAY, DAY + 500, Verdict::TooShort),
            (DAY, DAY, DAY, Verdict::NotAskedFor),
            (DAY - 1, DAY, DAY + 500, Verdict::NotAskedFor),
        ] {
            let found = judge(at(end), at(began), at(now), Duration::from_secs(60));
            assert_eq!(found, verdict, "{end} {began} {now}");
        }
    }
}
