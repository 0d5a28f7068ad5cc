//! What a plan is made from: the cluster, its keys and this host, looked at once.

use crate::{
    command::{look::Prober, run::trouble_of_setup},
    event::trouble::Trouble,
    execute::{
        gone::gone,
        hop, identity,
        inspect::{Inspected, inspect},
        intent::intent,
        replace_run::not_replaced,
        restore,
    },
    host::files::state_dir::{self, Layout},
    keys::{AttemptId, Keys, ProcessId},
    observe::{evidence::Evidence, view::ClusterView},
    plan::{
        Me, Verb,
        membership::survey::Survey,
        replace_run::{Replacement, replacement},
    },
    playbook::Playbook,
    report::{names::Names, stop::refused},
    store::NotRead,
};

/// What a plan is made from.
pub(super) struct Seen {
    pub(super) me: Me,
    pub(super) keys: Keys,
    pub(super) view: ClusterView,
    pub(super) evidence: Evidence,
    /// What a change of members is decided by, where it was had.
    pub(super) survey: Option<Survey>,
    /// The newcomer that this host's agent, which is at work beside this look, begins.
    pub(super) begins: Option<AttemptId>,
    pub(super) names: Names,
    /// What a run would find on this host.
    pub(super) here: Inspected,
    /// Processes that are gone, of those that keys name.
    pub(super) gone: Vec<ProcessId>,
    pub(super) process: ProcessId,
    /// Whether another run stands that is to be replaced.
    pub(super) replaces: bool,
    /// The user, where it may look and not run.
    pub(super) viewer: Option<String>,
}

impl Seen {
    pub(super) async fn of(playbook: &Playbook, verb: Verb) -> Result<Self, Trouble> {
        // One that cannot be read is for the run to tell.
        if let Ok(Some(record)) = restore::in_hand(&Layout::of(&playbook.state_dir)) {
            return Err(Trouble::Restoring { words: record.words(), from: record.from });
        }
        let prober = Prober::open(&playbook.cluster)?;
        let mut snapshot = prober.look().await?;
        prober.observer().ask_activities(&mut snapshot.view).await;
        let viewer = prober.viewer(playbook).await?;
        let run = snapshot.keys().ok().and_then(|keys| keys.run).map(|run| run.value);
        let intent = hop::due(intent(playbook, snapshot.view.cluster), run.as_ref(), &snapshot.view);
        let here = inspect(playbook, &intent, &snapshot.view, prober.observer()).await.map_err(trouble_of_setup)?;
        let host = identity::host_id(&playbook.state_dir);
        let seats = identity::seats(playbook, host, &identity::known(playbook, &snapshot.view));
        let me = identity::me(playbook, intent, host, seats, verb);
        let keys = match snapshot.keys() {
            // Without a leader the keys cannot be read, and that is what a person must know.
            Err(_) if snapshot.view.leader().is_none() => Keys::default(),
            Ok(keys) => keys,
            Err(trouble) => return Err(prober.unread(trouble, viewer).await),
        };
        snapshot.names.learn_host(me.host, &me.host_name, me.seats.members());
        let process =
            ProcessId::own().map_err(|error| Trouble::System(format!("no process of this agent: {error}")))?;
        let mut gone = gone(&prober.store, &keys, &me, process).await.map_err(NotRead::from)?;
        // This host's own agent, which is at work beside this look, is no twin.
        let at_work = state_dir::holder(&playbook.state_dir);
        gone.extend(at_work);
        let evidence = prober.observer().examine_and_compare(&snapshot.view, playbook.verify.max_db).await;
        let survey = match me.intent.change.changes_members() {
            true => prober.survey(&keys, here.places.clone()).await?,
            false => None,
        };
        let is_at_work = at_work.is_some_and(|agent| matches!(agent.is_alive(), Ok(true)));
        let membership = keys.run.as_ref().filter(|_| is_at_work).and_then(|run| run.value.membership.as_ref());
        let begins = membership.and_then(|membership| membership.begun_by(me.host)).map(|join| join.attempt);
        Ok(Self {
            survey,
            begins,
            me,
            keys,
            view: snapshot.view,
            evidence,
            names: snapshot.names,
            here,
            gone,
            process,
            replaces: false,
            viewer,
        })
    }

    /// Forgets a run with another intent, where it may be replaced.
    pub(super) fn replace(&mut self) -> Result<(), Trouble> {
        match replacement(&self.me, &self.keys, (&self.view, &self.evidence)) {
            Replacement::NotNeeded => return Ok(()),
            // The plan itself is refused for it, and has the better words.
            Replacement::Of(_) | Replacement::Refused(_) => {}
            Replacement::Forbidden(obstacle) => return Err(not_replaced(&refused::obstacle(&obstacle, &self.names))),
        }
        (self.keys.run, self.replaces) = (None, true);
        Ok(())
    }
}
