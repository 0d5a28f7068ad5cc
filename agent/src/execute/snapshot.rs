//! Before etcd 3.7: a member of 3.6 that has no snapshot of its own yet is brought to take one.
//!
//! 3.7 replays what its log has behind the last snapshot, and panics on what 3.5 has written there (`hop-too-fast-37`). A restart on 3.6
//! makes one in a log of less than 1 MB alone (etcd 3.6, `applierMembership.ClusterVersionSet` forces it while the log is replayed, in
//! batches of that size). What always makes one is `--snapshot-count` entries: 10,000, where nobody has said otherwise. Members that
//! have much to do write as many soon; where they do not, the agent has them written.

use std::time::Duration;

use futures_util::future::join_all;
use proto::LeaseId;
use tokio::time::Instant;

use super::{
    Execution,
    data_dir::{DataDirError, WRITES_SNAPSHOT},
    error::ActError,
    look::random,
};
use crate::{event::RunEvent, observe::view::Report, plan::Verb, words::with_causes};

/// How many are on their way at once: few enough for clients to be served beside them.
const AT_ONCE: usize = 16;
/// How many are written before it is looked again.
const BURST: usize = 512;
/// More are not written; whoever has told a member to wait for more knows why.
const MOST: u64 = 400_000;
/// How long it may take.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// How often it is told how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(15);
/// Between two looks at a cluster that is not whole.
const PROBE_GAP: Duration = Duration::from_secs(1);
/// etcd writes a snapshot beside its work.
const BREATH: Duration = Duration::from_millis(50);

impl Execution<'_> {
    /// Tries what the start of this host's member will meet, and has it take the snapshot that its new release needs.
    pub(super) async fn check_target(&mut self, at: usize) -> Result<Vec<String>, ActError> {
        let checked = self.host.nodes[at].check_target().await;
        let is_missing = matches!(&checked, Err(ActError::DataDir(DataDirError::OldLog { .. })));
        match is_missing && matches!(self.me.verb, Verb::Run | Verb::Resume) {
            true => self.have_a_snapshot_taken(at).await?,
            false => return checked,
        }
        self.host.nodes[at].check_target().await
    }

    async fn have_a_snapshot_taken(&mut self, at: usize) -> Result<(), ActError> {
        let name = self.host.nodes[at].node.name.clone();
        let what = "take a snapshot, which its new release needs: it takes one after as many entries as its `--snapshot-count` says";
        self.tell(RunEvent::Preparing { what: &format!("has {name} {what}") });
        let first = random() as u64;
        let (began, mut written, mut told) = (Instant::now(), 0, Instant::now());
        while !self.host.nodes[at].has_new_snapshot().await {
            if written >= MOST || began.elapsed() > LONGEST {
                return Err(format!(
                    "{name} took no snapshot on {WRITES_SNAPSHOT} in {written} entries and {} s; look at its `--snapshot-count` and its log",
                    began.elapsed().as_secs()
                )
                .into());
            }
            self.wait_until_all_are_there(at).await?;
            for _ in 0..BURST / AT_ONCE {
                // A lease that nobody has: an entry in every log, and nothing else.
                let nobodys = |at: u64| LeaseId(((first.wrapping_add(written + at) >> 1) as i64).max(1));
                join_all((0..AT_ONCE as u64).map(|at| self.cluster.store.revoke(nobodys(at)))).await;
                written += AT_ONCE as u64;
            }
            if told.elapsed() > TOLD_EVERY {
                told = Instant::now();
                self.tell(RunEvent::Preparing {
                    what: &format!("{name} has no snapshot yet, after {written} entries"),
                });
            }
            tokio::time::sleep(BREATH).await;
        }
        Ok(())
    }

    /// What is written while a member is older, down, or the version has not risen, makes no snapshot of 3.6. Whoever of this host is down
    /// is started meanwhile (I-10).
    async fn wait_until_all_are_there(&mut self, at: usize) -> Result<(), ActError> {
        let deadline = Instant::now() + self.playbook.strategy.health;
        loop {
            let node = &self.host.nodes[at];
            let (member, is_down) = (node.member, !node.status().await?.is_running());
            if is_down {
                self.start(member).await?;
            }
            let why = match self.cluster.observer.probe().await {
                Ok(view) => {
                    let is_old =
                        |report: &Report| report.cluster_version.is_none_or(|version| version < WRITES_SNAPSHOT);
                    let trouble = view.members.iter().find_map(|one| Some((one.name.clone(), one.trouble()?)));
                    match trouble {
                        Some((name, trouble)) => format!("{name} is not ready: {trouble}"),
                        None if view.reports().any(is_old) => format!("the cluster version is below {WRITES_SNAPSHOT}"),
                        None => return Ok(()),
                    }
                }
                Err(error) => with_causes(&error),
            };
            if Instant::now() > deadline {
                let name = &self.host.nodes[at].node.name;
                return Err(format!(
                    "{name} needs a snapshot of {WRITES_SNAPSHOT} before it goes on, and for that {why}"
                )
                .into());
            }
            tokio::time::sleep(PROBE_GAP).await;
        }
    }
}
