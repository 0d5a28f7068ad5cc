//! Streams that asked for a leader, while there is none.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::context::ServiceContext;

/// For how many election time-outs a stream outlasts the lack of a leader: to open all of them anew is dearer than to wait
/// for an election (etcd, `maxNoLeaderCnt`).
const PATIENCE: u32 = 3;

impl ServiceContext {
    /// Returns once no leader was known for a while; never for a stream that does not ask for one.
    pub(super) async fn leader_lost(&self, wanted: bool) {
        if !wanted {
            return std::future::pending().await;
        }
        let mut looks = interval(self.options.election_timeout.max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut without = 0;
        while without < PATIENCE {
            looks.tick().await;
            without = if self.member.raft_status().leader.is_none() { without + 1 } else { 0 };
        }
    }
}
