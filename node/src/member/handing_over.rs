//! Handing leadership to another member (raft dissertation, section 3.10).

use proto::MemberId;
use tokio::time::{Instant, sleep, timeout_at};

use super::Member;
use crate::{api_error::ApiError, state::Refusal};

impl Member {
    /// Hands leadership to another voter and returns once that leads.
    ///
    /// # Errors
    /// This one does not lead, the other is no voter, or it did not take over in time.
    pub async fn move_leader(&self, to: MemberId) -> Result<(), Refusal> {
        let raft_status = self.raft_status();
        if raft_status.leader != Some(self.identity().member) {
            return Err(Refusal::Request(ApiError::NotLeader));
        }
        if to == self.identity().member {
            return Ok(());
        }
        let is_voter = self.read(|state| state.cluster.members.get(&to).is_some_and(|member| !member.is_learner));
        if !is_voter {
            return Err(Refusal::Request(ApiError::BadLeaderTransferee));
        }
        self.hand_over(Some(to), Instant::now() + self.shared.limits.request).await
    }

    /// Hands leadership on before this member ends, if it has it and anybody can take it.
    ///
    /// # Errors
    /// Nobody took over in time.
    pub async fn step_down(&self) -> Result<(), Refusal> {
        let leads = self.raft_status().leader == Some(self.identity().member);
        let others = self.read(|state| state.cluster.voters().count());
        if !leads || others < 2 {
            return Ok(());
        }
        self.hand_over(None, Instant::now() + self.shared.limits.election).await
    }

    /// There is no taking it back: so first somebody must be there who has the log and answers.
    async fn hand_over(&self, wanted: Option<MemberId>, deadline: Instant) -> Result<(), Refusal> {
        let shared = &self.shared;
        let late = Refusal::Request(ApiError::Timeout);
        let own = shared.identity.member.0;
        let to = loop {
            let fit = shared.group.successors(shared.limits.recent);
            match fit.into_iter().find(|id| wanted.is_none_or(|wanted| wanted.0 == *id)) {
                Some(to) => break to,
                None if Instant::now() < deadline => sleep(super::RETRY_INTERVAL).await,
                None => return Err(late),
            }
        };
        let mut raft_status = shared.group.raft_status();
        tracing::info!(to = format!("{to:x}"), "hands leadership over");
        shared.group.transfer(to).await.map_err(|_| Refusal::Request(ApiError::Stopped))?;
        let moved = raft_status.wait_for(|now| now.leader.is_some_and(|leader| leader != own));
        match timeout_at(deadline, moved).await {
            Ok(Ok(now)) if wanted.is_none_or(|wanted| now.leader == Some(wanted.0)) => Ok(()),
            _ => Err(late),
        }
    }
}
