//! How a group is timed.

use std::{sync::Arc, time::Duration};

use openraft::{Config, ConfigError, SnapshotPolicy};

/// Longer than any snapshot takes: a day.
const SNAPSHOT_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;

/// How a leader knows that it leads when somebody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// A majority says so after it was asked (raft dissertation, section 6.4).
    Quorum,
    /// A majority has said so lately, and votes for nobody else meanwhile: as long as clocks run alike (section 6.4.1).
    Lease,
}

/// The settings of a member, as etcd has them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Between two heartbeats of a leader.
    pub heartbeat: Duration,
    /// How long a member goes without a leader before it stands for election.
    pub election: Duration,
    /// A snapshot is taken after so many entries, even if the log is small; 0 for no such number.
    pub snapshot_count: u64,
    /// Entries that stay in the log behind a snapshot, for members that are a little behind (etcd, `SnapshotCatchUpEntries`).
    pub catchup_entries: u64,
    /// As a leader.
    pub reads: ReadMode,
}

impl Settings {
    /// For so long who hears a leader votes for nobody else.
    pub(crate) fn lease(self) -> Duration {
        let (_, most) = self.timeouts();
        Duration::from_millis(most)
    }

    /// How old a majority's answer may be where reads rest upon it: a leader's clock may lose a quarter on the others'.
    pub(crate) fn newest_answer(self) -> Duration {
        match self.reads {
            ReadMode::Quorum => Duration::ZERO,
            ReadMode::Lease => self.lease() * 3 / 4,
        }
    }

    /// Members that have last heard a leader at the same time stand for election within this time of each other.
    pub(crate) fn elections_apart(self) -> Duration {
        let (least, most) = self.timeouts();
        Duration::from_millis(most - least)
    }

    /// openraft's EMIN and EMAX, in milliseconds.
    fn timeouts(self) -> (u64, u64) {
        let millis = |duration: Duration| duration.as_millis() as u64;
        let (least, most) = (millis(self.election * 4 / 10), millis(self.election * 6 / 10));
        (least, most.max(least + 1))
    }

    /// As openraft wants it. There an election begins after EMAX, the lease of the leader, and a random time from EMIN to EMAX: between
    /// 1.0 and 1.2 of what etcd's flag says.
    pub(crate) fn config(self) -> Result<Arc<Config>, ConfigError> {
        let (least, most) = self.timeouts();
        let config = Config {
            heartbeat_interval: self.heartbeat.as_millis() as u64,
            election_timeout_min: least,
            election_timeout_max: most,
            // Whoever carries it gives up where it comes to a standstill (`peer/links.rs`).
            install_snapshot_timeout: SNAPSHOT_TIMEOUT_MS,
            // Taken when it is due (`schedule`).
            snapshot_policy: SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: self.catchup_entries,
            // Entries are sent for as long as they are there.
            replication_lag_threshold: u64::MAX,
            // Not before it is told so (`Group::may_stand`).
            enable_elect: false,
            // Asking first keeps a member that was cut off from disturbing a leader that all others hear.
            enable_pre_vote: Some(true),
            // A leader that comes back has been away: it stands for election like everybody else.
            enable_leader_restore: Some(false),
            quorum_loss_probe_interval: Some(4 * most),
            ..Config::default()
        };
        Ok(Arc::new(config.validate()?))
    }

    /// How long a leader waits for one answer of a member.
    pub(crate) fn patience(self) -> Duration {
        self.election
    }
}
