//! Before etcd 3.6 and 3.7: a member whose log has what its new release panics on is brought to take a snapshot, behind which that is not read
//! any more.
//!
//! 3.6 panics on requests of the v2 API (`v2-content-wal`): 3.4 writes one for each `GET /health`. 3.7 panics on what 3.5 has written there
//! (`hop-too-fast-37`), so its snapshot must be one of 3.6. A restart on 3.6 makes one in a log of less than 1 MB alone (etcd 3.6,
//! `applierMembership.ClusterVersionSet` forces it while the log is replayed, in batches of that size). What always makes one is
//! `--snapshot-count` entries: 100,000 of 3.5 and 10,000 of 3.6, where nobody has said otherwise. Members that have much to do write as many
//! soon; where they do not, the agent has them written.

use std::time::Duration;

use futures_util::future::join_all;
use proto::LeaseId;
use tokio::time::Instant;

use super::{
    Execution,
    data_dir::{DataDirError, WRITES_SNAPSHOT},
    error::ActError,
    look::random,
    node::OwnNode,
    v2_api::IN_LOG,
};
use crate::{
    event::RunEvent,
    host::{
        blocking::blocking,
        process::{member_setting::member_setting, process_id::family},
    },
    observe::view::Report,
    plan::Verb,
    words::with_causes,
};

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

/// Which snapshot a member must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// One that 3.6 wrote.
    Of36,
    /// One behind which the log has nothing of the v2 API.
    WithoutV2,
}

impl Wanted {
    /// A log is long; of the one behind a snapshot little is left.
    fn looked_for_every(self) -> Duration {
        match self {
            Self::Of36 => Duration::from_millis(200),
            Self::WithoutV2 => Duration::from_secs(2),
        }
    }
}

impl Execution<'_> {
    /// Tries what the start of this host's member will meet, and has it take the snapshot that its new release needs.
    pub(super) async fn check_target(&mut self, at: usize) -> Result<Vec<String>, ActError> {
        let checked = self.host.nodes[at].check_target().await;
        let is_missing = matches!(&checked, Err(ActError::DataDir(DataDirError::OldLog { .. })));
        match is_missing && matches!(self.me.verb, Verb::Run | Verb::Resume) {
            true => self.have_a_snapshot_taken(at, Wanted::Of36).await?,
            false => return checked,
        }
        self.host.nodes[at].check_target().await
    }

    /// Looks for what this host's member has of the v2 API, and has it take a snapshot where its log alone has any.
    pub(super) async fn check_v2(&mut self, at: usize) -> Result<Option<String>, ActError> {
        let checked = self.look_for_v2(at).await;
        let is_in_log = matches!(&checked, Err(ActError::KnownHazard { id: IN_LOG, .. }));
        match is_in_log && matches!(self.me.verb, Verb::Run | Verb::Resume) {
            true => self.have_a_snapshot_taken(at, Wanted::WithoutV2).await?,
            false => return checked,
        }
        self.look_for_v2(at).await
    }

    async fn look_for_v2(&self, at: usize) -> Result<Option<String>, ActError> {
        let (own, accepted) = (&self.host.nodes[at], &self.playbook.strategy.accept_hazards);
        let Some(sides) = &own.sides else { return Ok(None) };
        let current = own.current().await?;
        own.check_v2((&current, &sides.new.release), Some(&sides.new), accepted).await
    }

    async fn is_had(&self, at: usize, wanted: Wanted) -> Result<bool, ActError> {
        match wanted {
            Wanted::Of36 => Ok(self.host.nodes[at].has_new_snapshot().await),
            // Of one that is down nothing is known.
            Wanted::WithoutV2 if !self.host.nodes[at].status().await?.is_running() => Ok(false),
            Wanted::WithoutV2 => match self.look_for_v2(at).await {
                Err(ActError::KnownHazard { id: IN_LOG, .. }) => Ok(false),
                looked => looked.map(|_| true),
            },
        }
    }

    async fn have_a_snapshot_taken(&mut self, at: usize, wanted: Wanted) -> Result<(), ActError> {
        let name = self.host.nodes[at].node.name.clone();
        let count = self.host.nodes[at].snapshot_count().await?;
        if let Some(count) = count.filter(|count| *count > MOST) {
            return Err(format!(
                "{name} must take a snapshot before its new release, and takes one after {count} entries, as its `--snapshot-count` says; the \
                 agent has no more than {MOST} written: start it with a lower one"
            )
            .into());
        }
        let after = count
            .map_or_else(|| "as many entries as its release has it".to_owned(), |count| format!("{count} entries"));
        let what = format!("has {name} take a snapshot, which its new release needs: it takes one after {after}");
        self.tell(RunEvent::Preparing { what: &what });
        let first = random() as u64;
        let (began, mut written, mut told) = (Instant::now(), 0, Instant::now());
        let mut next_look = Instant::now();
        loop {
            if Instant::now() >= next_look {
                if self.is_had(at, wanted).await? {
                    return Ok(());
                }
                next_look = Instant::now() + wanted.looked_for_every();
            }
            if written >= MOST || began.elapsed() > LONGEST {
                return Err(format!(
                    "{name} took no snapshot in {written} entries and {} s; look at its `--snapshot-count` and its log",
                    began.elapsed().as_secs()
                )
                .into());
            }
            self.wait_until_all_are_there(at, wanted).await?;
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
    }

    /// What is written while a member is older, down, or the version has not risen, makes no snapshot of 3.6. Whoever of this host is down
    /// is started meanwhile (I-10).
    async fn wait_until_all_are_there(&mut self, at: usize, wanted: Wanted) -> Result<(), ActError> {
        let deadline = Instant::now() + self.playbook.strategy.health;
        loop {
            let node = &self.host.nodes[at];
            let (member, is_down) = (node.member, !node.status().await?.is_running());
            if is_down {
                self.start(member).await?;
            }
            let why = match self.cluster.observer.probe().await {
                Ok(view) => {
                    let is_old = |report: &Report| {
                        wanted == Wanted::Of36 && report.cluster_version.is_none_or(|version| version < WRITES_SNAPSHOT)
                    };
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
                return Err(format!("{name} needs a snapshot before it goes on, and for that {why}").into());
            }
            tokio::time::sleep(PROBE_GAP).await;
        }
    }
}

impl OwnNode {
    /// After how many entries it takes a snapshot, as its process was told.
    async fn snapshot_count(&self) -> Result<Option<u64>, ActError> {
        let Some(pid) = self.status().await?.process().map(|process| process.identity.pid) else { return Ok(None) };
        let told = blocking(move || {
            let family = family(pid).unwrap_or_else(|_| vec![pid]);
            family.into_iter().find_map(|pid| member_setting(pid, "snapshot-count"))
        });
        Ok(told.await.and_then(|told| told.parse().ok()))
    }
}
