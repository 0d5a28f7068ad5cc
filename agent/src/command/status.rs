//! `agent status`: the cluster and the run as they stand. Touches nothing.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::json;

use super::{
    Outcome,
    look::{ClusterSnapshot, Downgrade, Prober},
    reach,
};
use crate::{
    calendar::rfc3339,
    cli,
    event::trouble::Trouble,
    execute::{identity, inspect},
    keys::{Keys, PREFIX, RunResult, RunState, seat::Seats},
    observe::{secret_file, view::ClusterView},
    playbook::Playbook,
    report::{
        file::{
            json::{Facts, members, versions},
            metrics,
        },
        names::Names,
        shown::{
            agents,
            cluster::{cluster_version, line},
            downgrade::downgrade,
            gates::gates,
            hosts, status as told,
        },
        stop::{Progress, Reason, Stop},
    },
    store::{Snapshot, Store},
    words::typed,
};

#[derive(Debug)]
pub struct Place {
    playbook: Option<Playbook>,
    path: Option<PathBuf>,
    prober: Prober,
    /// What is to be known of the files that it is reached with.
    exposed: Vec<String>,
}

/// What one look has shown.
#[derive(Debug)]
pub struct Picture {
    pub outcome: Outcome,
    pub view: ClusterView,
    /// None where they could not be read.
    pub keys: Option<Keys>,
    pub names: Names,
}

/// Reads the playbook, or takes the endpoints for one.
///
/// # Errors
/// What is wrong with either.
pub fn place(typed: &cli::Status) -> Result<Place, Trouble> {
    match &typed.playbook {
        Some(path) => {
            let playbook = Playbook::load(path)?;
            let prober = Prober::open(&playbook.cluster)?;
            let exposed = secret_file::warnings(&playbook.cluster);
            Ok(Place { playbook: Some(playbook), path: Some(path.clone()), prober, exposed })
        }
        None => {
            let cluster = reach::cluster(&typed.endpoints, &typed.reach)?;
            let prober = Prober::open(&cluster).map_err(|trouble| match trouble {
                Trouble::Playbook(text) => Trouble::Usage(text),
                other => other,
            })?;
            Ok(Place { playbook: None, path: None, prober, exposed: secret_file::warnings(&cluster) })
        }
    }
}

impl Place {
    /// Looks once. Where nobody answers, this host's own journal and processes are what there is to say.
    ///
    /// # Errors
    /// Nothing can be said about the cluster as a whole.
    pub async fn status(&self) -> Result<Outcome, Trouble> {
        match self.look().await {
            Ok(picture) => Ok(picture.outcome),
            Err(trouble @ Trouble::Unreachable(_)) => self.of_this_host(trouble).await,
            Err(trouble) => Err(trouble),
        }
    }

    /// Looks once, for those who watch by metrics: where nobody answers the page says so.
    pub async fn metrics(&self) -> Outcome {
        let looked = self.look().await;
        let (picture, stop) = match &looked {
            Ok(picture) => (Some(picture), picture.outcome.stop.clone()),
            Err(trouble) => (None, self.stop(trouble)),
        };
        let text = metrics::page(&metrics::Look {
            cluster: self.playbook.as_ref().map(|playbook| playbook.cluster.name.as_str()),
            at: SystemTime::now(),
            view: picture.map(|picture| &picture.view),
            keys: picture.and_then(|picture| picture.keys.as_ref()),
            names: picture.map_or(&Names::default(), |picture| &picture.names),
            agent: None,
        });
        let facts = picture.map(|picture| picture.outcome.facts.clone()).unwrap_or_default();
        Outcome { stop, facts, text }
    }

    /// How it is told that a look shows nothing.
    pub fn stop(&self, trouble: &Trouble) -> Stop {
        trouble.stop("status", self.typed().as_deref(), false)
    }

    /// The playbook's path.
    fn typed(&self) -> Option<Cow<'_, str>> {
        self.path.as_deref().map(Path::to_string_lossy)
    }

    /// What this host knows of its own members, to be said with why the cluster is not shown.
    async fn of_this_host(&self, trouble: Trouble) -> Result<Outcome, Trouble> {
        let Some(playbook) = &self.playbook else { return Err(trouble) };
        let host = inspect::host_state(playbook).await;
        let text = told::host(&identity::host_name(), host.step.as_ref(), &host.down);
        let mut facts = Facts::default();
        facts.more.insert(
            "here".into(),
            json!({ "not_running": host.down, "step": host.step.as_ref().map(|(name, in_hand)|
                json!({ "member": name, "stage": told::stage(in_hand) })) }),
        );
        let stop = self.stop(&trouble);
        let stop = match self.typed() {
            // That this host's own members do not run may be all that is wrong, and a run begins with their start.
            Some(path) if host.is_in_hand || !host.down.is_empty() => {
                stop.with_down(&host.down, &[]).next(format!("agent run {}", typed(&path)))
            }
            _ => stop,
        };
        Ok(Outcome { stop, facts, text })
    }

    /// Looks once.
    ///
    /// # Errors
    /// Nothing can be said about the cluster as a whole.
    pub async fn look(&self) -> Result<Picture, Trouble> {
        let mut snapshot = self.prober.look().await?;
        let keys = snapshot.keys();
        let lapses = match &snapshot.raw {
            Ok(raw) => baton_left(&self.prober.store, raw).await,
            Err(_) => None,
        };
        let asked = self.prober.downgrade(&snapshot.view).await;
        Ok(self.told(snapshot, keys, lapses, asked))
    }

    fn told(
        &self,
        mut snapshot: ClusterSnapshot,
        keys: Result<Keys, Trouble>,
        lapses: Option<Duration>,
        asked: Downgrade,
    ) -> Picture {
        let mine = match &self.playbook {
            Some(playbook) => {
                let host = identity::host_id(&playbook.state_dir);
                let mine = identity::mine(playbook, host, &snapshot.view);
                snapshot.names.learn_host(host, &identity::host_name(), mine.members());
                mine
            }
            None => Seats::default(),
        };
        let (view, names) = (&snapshot.view, &snapshot.names);
        let (gates, members) = (gates(view, names), members(view, names, &mine));
        let target = if let Downgrade::To(target) = asked { Some(target) } else { None };
        let downgrade = downgrade(view, target, names);
        let seen_at = Some(rfc3339(SystemTime::now()));
        let warnings = self.exposed.iter().chain(&view.warnings).cloned().collect();
        let mut facts = Facts { members, gates, seen_at, warnings, ..Facts::default() };
        if asked == Downgrade::NotReported {
            facts.warnings.push(
                "whether a downgrade is enabled is not known: the leader did not say, or not to this user".into(),
            );
        }
        facts.more.insert("downgrade".into(), json!(downgrade));
        facts.more.insert(
            "status".into(),
            json!({ "cluster_id": view.cluster, "leader": view.leader().map(|m| &m.name),
            "cluster_version": cluster_version(view).map(|version| version.to_string()) }),
        );
        let run = match &keys {
            Ok(keys) => {
                self.add_keys(&mut facts, keys, names, view, lapses);
                told::keys(keys, names, view, lapses, SystemTime::now())
            }
            Err(trouble) => {
                let warning = trouble.stop("status", None, false).message;
                let text = format!("run: unknown: {warning}\n");
                facts.warnings.push(warning);
                text
            }
        };
        let text = format!(
            "{}\n{run}",
            told::cluster(view, &facts.members, facts.gates.as_ref(), downgrade.as_ref(), keys.as_ref().ok())
        );
        let path = self.path.clone().unwrap_or_default();
        let stop = Stop::well(Reason::Looked, line(view), "plan", &path);
        let keys = keys.ok();
        let stop = Stop { next: None, cluster: keys.as_ref().and_then(progress), ..stop };
        Picture { outcome: Outcome { stop, facts, text }, keys, names: snapshot.names, view: snapshot.view }
    }

    fn add_keys(&self, facts: &mut Facts, keys: &Keys, names: &Names, view: &ClusterView, lapses: Option<Duration>) {
        // Then who is gone is not told from who is there.
        let may_be_gone = view.keeps_every_lease();
        let lapses = lapses.filter(|_| !may_be_gone);
        if let Some(run) = &keys.run {
            facts.run = Some(run.value.id);
            (facts.from, facts.to) = versions(&run.value.intent.change);
        }
        let baton = keys.baton.as_ref().map(|baton| {
            json!({ "host": baton.value.host_name, "pid": baton.value.process.pid,
                "lapses_in_s": lapses.map(|left| left.as_secs()) })
        });
        let agents: Vec<_> = keys.agents.values().map(|at| agents::object(&at.value, names, may_be_gone)).collect();
        let step_lock = |record: &crate::keys::StepLock| {
            json!({ "member": names.short(record.member), "id": record.member, "host": record.host_name,
                "attempt": record.attempt, "pid": record.process.pid, "back": record.back })
        };
        if let Some(waits) = keys.agents.values().map(|at| &at.value).find(|agent| agent.waits_for.is_some()) {
            let said = |said: &Option<Arc<str>>| said.as_deref().map(str::to_owned);
            facts.waiting_for = said(&waits.waits_for);
            (facts.waiting_since, facts.waiting_until) = (said(&waits.waits_since), said(&waits.waits_until));
        }
        facts.more.insert("baton".into(), json!(baton));
        facts.more.insert("agents".into(), json!(agents));
        let stale: Vec<_> = keys.stale.iter().map(|stale| format!("{PREFIX}{}", stale.key)).collect();
        facts.more.insert("stale".into(), json!(stale));
        facts.more.insert("step_lock".into(), json!(keys.step.as_ref().map(|down| step_lock(&down.value))));
        facts.more.insert(
            "abandoned".into(),
            json!(keys.abandoned.values().map(|lost| step_lock(&lost.value)).collect::<Vec<_>>()),
        );
        facts.more.insert("protection".into(), hosts::object(keys, names, view));
        facts.more.insert("run_state".into(), json!(keys.run.as_ref().map(|run| &run.value.state)));
    }
}

fn progress(keys: &Keys) -> Option<Progress> {
    Some(match keys.run.as_ref()?.value.state {
        RunState::Done { result: RunResult::Reached | RunResult::RolledBack } => Progress::Done,
        RunState::Held { .. } => Progress::Held,
        _ => Progress::Partial,
    })
}

/// How long the baton's lease still runs if nobody keeps it alive, as the leader counts.
async fn baton_left(store: &Store, snapshot: &Snapshot) -> Option<Duration> {
    let lease = snapshot.keys.iter().find(|key| key.key == "baton")?.lease?;
    Some(store.remaining(lease).await.ok()??.left)
}
