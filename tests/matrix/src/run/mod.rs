//! Runs a plan on a real cluster, and judges after every step.

mod agents;
mod buckets;
mod chores;
mod gates;
mod judge;
mod leaders;
mod leases;
mod members;
mod record;
mod scaling;
mod stage;
mod tools;
mod written;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use lab::system::{Build, System};
use proto::Release;

use super::{
    past::{self, kept::Kept},
    plan::{Action, Plan, Step},
    verdict::{Failure, Outcome, Verdict},
};
use chores::Chores;
use record::Record;
use stage::Stage;
use tokio::task::block_in_place;
use tools::Tools;

/// The releases on this machine, by system.
pub type Builds = BTreeMap<(&'static str, Release), Build>;

/// What is there to run plans with.
#[derive(Clone, Debug)]
pub struct Bench {
    pub builds: Builds,
    /// The program that agents are.
    pub agent: PathBuf,
    /// Where each plan has a folder of its own while it runs; a plan that fails keeps it.
    pub folder: PathBuf,
    /// Of real etcd, those whose etcdctl is typed during each step.
    pub tools: Vec<Build>,
    /// Clusters that have something behind them.
    pub kept: Kept,
}

impl Bench {
    fn build(&self, system: System, release: &Release) -> Result<&Build, String> {
        let found = self.builds.get(&(system.name(), release.clone()));
        found.ok_or_else(|| format!("{system} {release} is not there"))
    }

    fn of(&self, system: System) -> past::run::Builds {
        let its = self.builds.iter().filter(|((name, _), _)| *name == system.name());
        its.map(|((_, release), build)| (release.clone(), build.clone())).collect()
    }

    /// Runs a plan in a folder of this name, to its end or to the first broken promise.
    pub async fn run(&self, plan: &Plan, name: &str) -> Outcome {
        let began = Instant::now();
        let folder = self.folder.join(name);
        let mut record = Record::new(began);
        let verdict = self.perform(plan, &folder, &mut record).await;
        let verdict = match verdict {
            Verdict::Passed if plan.cell.column.has_faults() && !record.has_injected_any(plan) => Verdict::NotInjected,
            verdict => verdict,
        };
        if !matches!(verdict, Verdict::Failed(_)) {
            // Of what went well nobody reads the logs.
            let _ = std::fs::remove_dir_all(&folder);
        }
        let (record, again) = (record.entries(plan), record.all_again());
        Outcome { plan: plan.clone(), verdict, record, again, took: began.elapsed() }
    }

    async fn perform(&self, plan: &Plan, folder: &Path, record: &mut Record) -> Verdict {
        let fail = |step: usize, why: String, before, after| {
            let folder = folder.to_owned();
            Verdict::Failed(Box::new(Failure { step, why, before, after, smallest: None, folder }))
        };
        let cell = &plan.cell;
        let builds = (self.build(cell.system, &cell.path.from), self.build(cell.system, &cell.path.to));
        let (from, to) = match builds {
            (Ok(from), Ok(to)) => (from, to),
            (Err(why), _) | (_, Err(why)) => return fail(0, why, Vec::new(), Vec::new()),
        };
        let past = match &cell.past {
            None => None,
            Some(past) => match self.kept.copy(past, (cell.size, cell.tls), &self.of(cell.system), folder).await {
                Ok(raised) => Some(raised),
                Err(error) => return fail(0, error.to_string(), Vec::new(), Vec::new()),
            },
        };
        let laid_out = || Stage::laid_out(plan, (from, to), past, self, folder, record);
        let mut stage = match block_in_place(laid_out) {
            Ok(stage) => stage,
            Err(error) => return fail(0, error.to_string(), Vec::new(), Vec::new()),
        };
        for step in &plan.steps {
            let before = stage.standing().await;
            if let Err(error) = perform(&mut stage, step, record).await {
                let after = stage.standing().await;
                return fail(step.id, error.to_string(), before, after);
            }
        }
        match stage.leases.end(&stage).await {
            Ok(()) => Verdict::Passed,
            Err(error) => fail(plan.steps.len(), error.to_string(), Vec::new(), stage.standing().await),
        }
    }
}

/// One step, judged from before it begins until it is over and the cluster has come to rest.
async fn perform(stage: &mut Stage, step: &Step, record: &mut Record) -> Result<(), lab::Error> {
    if let Action::Start { leader } = step.action {
        return stage.start(leader).await;
    }
    // Before anybody watches: what is compacted is older than all that a watch of this step is told.
    let chores = Chores::begin(stage, step).await?;
    let watch = judge::Watch::begin(stage, step).await?;
    let members = stage.clients()?;
    stage.leases.grant(step.id, &members).await?;
    let tools = Tools::begin(stage, step.id);
    match &step.action {
        Action::Start { .. } => {}
        Action::Rest { lasts } => members::rest(stage, step, *lasts, record).await?,
        Action::Forward { hosts, pace } => agents::forward(stage, step, hosts, *pace, record).await?,
        Action::Back => agents::back(stage, step, record).await?,
        Action::TooLate { last } => agents::too_late(stage, step, *last, record).await?,
        Action::Scale { to } => scaling::scale(stage, step, to, record).await?,
        Action::Replace { member, by } => scaling::replace(stage, step, *member, *by, record).await?,
    }
    chores.into_iter().for_each(|chores| chores.end(step, record));
    watch.judge(stage, record).await?;
    stage.leases.hold(&stage.clients()?).await?;
    tools.judge(stage.layout()).await
}
