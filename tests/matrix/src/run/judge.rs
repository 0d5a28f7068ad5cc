//! The promises, judged after every step: nothing acknowledged is lost, one order explains all that clients saw, watches
//! have no gap, members agree, and never was more than one of them down.

use std::time::Duration;

use lab::{
    Error,
    cluster::Member,
    observer::Observer,
    wait::{self, GENEROUS},
    watcher::Watcher,
    workload::{Load, Workload},
};
use proto::Revision;

use super::{
    buckets,
    gates::{self, Gates},
    leaders::Leaders,
    record::Record,
    stage::Stage,
};
use crate::plan::{Host, Step, Trouble, hosts::Cast, tree};

/// Writes that are awaited before a step begins and after it has ended.
const WARM: u64 = 30;

/// Everything that looks on while a step is performed.
pub(super) struct Watch {
    step: Step,
    workload: Workload,
    /// Through each member, by its name.
    watchers: Vec<(String, Watcher)>,
    observer: Observer,
    leaders: Leaders,
    gates: Gates,
}

impl Watch {
    /// Begins to look on; when this returns, clients are at work.
    pub(super) async fn begin(stage: &Stage, step: &Step) -> Result<Self, Error> {
        let (endpoints, access) = (stage.layout().endpoints(), stage.layout().access());
        let prefix = format!("load/{}/", step.id);
        let newest = newest(stage).await?;
        let members = stage.hosts();
        let after = step.action.after(&members);
        // One that goes is down for good, and no watch goes on through it.
        let goes_on = |member: &Member| tree::host(&member.name).is_some_and(|host| after.contains(&host));
        let through = |(member, endpoint): (&Member, &String)| {
            // Of this member alone: whatever ends the watch, it must go on there.
            let one = std::slice::from_ref(endpoint);
            let watcher = Watcher::start_among_others(one, &access, &prefix, Revision(newest.0 + 1))?;
            Ok::<_, Error>((member.name.clone(), watcher))
        };
        let listed = stage.layout().members.iter().zip(&endpoints);
        let watchers = listed.filter(|(member, _)| goes_on(member)).map(through).collect::<Result<_, _>>()?;
        let pause = Duration::from_millis(50);
        let workload =
            Workload::start(&endpoints, &access, &Load { clients: 4, keys: 24, pause, prefix, ..Load::default() })?;
        workload.more(WARM).await?;
        let mut watched = stage.layout().clone();
        watched.members.retain(goes_on);
        let (observer, leaders) = (Observer::start(&watched), Leaders::watch(stage)?);
        let gates = Gates::watch(stage, Cast::of(step, &members).stay.len())?;
        Ok(Self { step: step.clone(), workload, watchers, observer, leaders, gates })
    }

    /// Ends the watch, and judges.
    pub(super) async fn judge(self, stage: &mut Stage, record: &Record) -> Result<(), Error> {
        stage.cluster.ready().await?;
        self.workload.more(WARM).await?;
        let Self { step, workload, watchers, observer, leaders, gates } = self;
        // Both wait for threads of their own.
        let (outcome, observed) = tokio::task::spawn_blocking(move || (workload.finish(), observer.finish())).await?;
        let (outcome, observed) = (outcome?, observed?);
        if observed.max_members_down > 1 {
            return Err(format!("{} were down at once: {:?}", observed.worst.join(" and "), observed.outages).into());
        }
        let mut moves = step.faults.iter().filter(|fault| matches!(fault.trouble, Trouble::LeaderMoved { .. }));
        leaders.judge(stage, moves.any(|fault| record.may_have_injected(&step, fault)))?;
        gates.judge()?;
        let acked = outcome.acked.clone();
        let last = acked.iter().map(|write| write.revision).max().unwrap_or(Revision(0));
        for (member, watcher) in watchers {
            watcher.judge(last, &acked).await.map_err(|error| format!("the watch through {member}: {error}"))?;
        }
        let verified = outcome.verify(&stage.layout().endpoints(), &stage.layout().access()).await?;
        if let [first, ..] = &verified.lost[..] {
            return Err(format!(
                "{} of {} acknowledged writes are lost, {first:?} the first",
                verified.lost.len(),
                acked.len()
            )
            .into());
        }
        verified.history.map_err(|error| format!("the history is not linearizable: {error}"))?;
        stage.written.read_back(&stage.clients()?).await?;
        stage.written.remember(&acked);
        agree(stage).await
    }
}

/// The newest revision, by a linearizable read.
async fn newest(stage: &Stage) -> Result<Revision, Error> {
    Ok(stage.clients()?[0].newest().await?)
}

/// Every member runs what it should, and they agree on versions, gates and hashes; what is shared by agents is put away.
async fn agree(stage: &Stage) -> Result<(), Error> {
    for host in stage.hosts() {
        runs(stage, host).await?;
    }
    stage.cluster.settled(stage.cluster_version()).await?;
    gates::agree(stage).await?;
    let keys = lab::raft_status::keys(stage.layout()).await?;
    if let Some(left) = keys.keys().find(|name| *name == "step" || name.starts_with("abandoned/")) {
        return Err(format!("a key of the agents is left behind: {left}: {}", keys[left]).into());
    }
    // A member that is behind has no such revision yet.
    wait::until("equal hashes on every member", GENEROUS, || hashes(stage)).await?;
    buckets::agree(stage).await
}

async fn runs(stage: &Stage, host: Host) -> Result<(), Error> {
    let (member, wanted) = (stage.member(host), &stage.release(host).release);
    let (runs, binary) = (stage.layout().client(member)?.versions().await?.server, member.release()?);
    match runs == wanted.to_string() && binary == *wanted {
        true => Ok(()),
        false => {
            Err(format!("{} runs {runs} from a link to {binary}, and should be at {wanted}", tree::member(host)).into())
        }
    }
}

/// Hashes at one revision of all members that have compacted as far, which nobody here does.
async fn hashes(stage: &Stage) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let revision = newest(stage).await.map_err(|error| words(&error))?;
    let mut hashes = Vec::new();
    for client in stage.clients().map_err(|error| words(&error))? {
        hashes.push(client.hash(revision).await.map_err(|error| words(&error))?);
    }
    match hashes.windows(2).all(|pair| pair[0] == pair[1]) {
        true => Ok(()),
        false => Err(format!("at revision {} members hash to {hashes:?}", revision.0)),
    }
}
