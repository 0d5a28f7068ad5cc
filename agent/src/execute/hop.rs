//! Which hop of its way this host is on, and the change to another one. What is due is decided in `plan/hops.rs`.

use std::sync::Arc;

use proto::Release;

use super::{
    Execution,
    error::ActError,
    intent,
    line::Past,
    node::{OwnNode, Side},
    prepare::ANSWERS_WITHIN,
};
use crate::{
    event::RunEvent,
    keys::{Intent, Run, change::Change},
    machine::act::Event,
    observe::{Observer, awake::within, view::ClusterView},
    plan::{Me, Verb, hops},
    playbook::{Hop, Playbook},
    report::Reporter,
    store::{Store, stored},
};

/// The intent at the hop that is due, as far as that is known before the first look: by the step in hand, by what is read of the cluster, by
/// what this host's members are set to run. The first look is asked again.
pub(super) async fn found(
    whole: Arc<Intent>,
    past: &Past,
    (observer, store): (&Observer, &Store),
    nodes: &[OwnNode],
) -> Arc<Intent> {
    let Some(hops) = &whole.hops else { return whole };
    let in_hand = past.restart().and_then(|in_hand| past.sides.get(&in_hand.step.member));
    if let Some(sides) = in_hand
        && let Some(hop) = hops::leading_to(&hops.changes, &sides.new.release)
    {
        return Arc::new(whole.at(hop));
    }
    let view = within(ANSWERS_WITHIN, observer.probe()).await.and_then(Result::ok);
    if let Some(view) = view {
        let snapshot = within(ANSWERS_WITHIN, store.read()).await.and_then(Result::ok);
        let keys = snapshot.and_then(|snapshot| stored::keys(&snapshot).ok());
        let run = keys.as_ref().and_then(|keys| keys.run.as_ref()).map(|run| &run.value);
        if let Some(hop) = hops::due(&whole, run, &view) {
            return Arc::new(whole.at(hop));
        }
    }
    let mut own: Vec<Release> = Vec::new();
    for node in nodes {
        own.extend(node.current().await.ok().map(|side| side.release));
    }
    let at = hops::by_releases(&hops.changes, own.iter());
    at.map_or(whole.clone(), |at| Arc::new(whole.at(&hops.changes[at])))
}

/// The intent at the hop that is due.
pub fn due(whole: Arc<Intent>, run: Option<&Run>, view: &ClusterView) -> Arc<Intent> {
    match hops::due(&whole, run, view) {
        Some(hop) => Arc::new(whole.at(hop)),
        None => whole,
    }
}

/// Tells which hop it is, where there are several.
pub(super) fn tell(me: &Me, reporter: &mut Reporter) {
    let Some(hops) = &me.intent.hops else { return };
    let change = &me.intent.change;
    let number = hops.number(change).unwrap_or_default();
    reporter.tell(RunEvent::Hop { number, of: hops.changes.len(), change });
}

impl Execution<'_> {
    /// From now on another hop of the way is carried out.
    pub(super) fn hop(&mut self, change: &Change) -> Event {
        let intent = Arc::new(self.me.intent.at(change));
        // What stood when it was typed is taken up.
        let verb = if self.me.verb == Verb::Resume { Verb::Run } else { self.me.verb };
        let Me { host, seats, expect_agents, command, .. } = (*self.me).clone();
        let me = super::identity::me(&self.whole, intent, host, seats, verb);
        self.me = Arc::new(Me { expect_agents, command, ..me });
        self.playbook = intent::at(&self.whole, change);
        tell(&self.me, self.console.reporter);
        Event::Hop(self.me.clone())
    }

    /// What later hops need is had and tried before the first member is stopped: whoever finds it missing halfway is between two releases.
    pub(super) async fn prepare_later_hops(&mut self, at: usize) -> Result<(), ActError> {
        let later: Vec<Hop> = later(&self.whole, &self.me.intent);
        let mut before = match &self.host.nodes[at].sides {
            Some(sides) => sides.new.clone(),
            None => return Ok(()),
        };
        for hop in later {
            let side = self.install(at, &hop.to, &hop.artifact).await.map_err(of_hop(&hop.to))?;
            let warnings = self.host.nodes[at].check_hop((&before, &side), &self.playbook).await;
            warnings.map_err(of_hop(&hop.to))?.iter().for_each(|warning| self.warn(warning));
            before = side;
        }
        Ok(())
    }
}

impl OwnNode {
    /// Tries what a later hop needs of this host, as far as nothing has to be stopped for it; gives what is to be known all the same.
    pub(super) async fn check_hop(
        &self,
        (before, after): (&Side, &Side),
        playbook: &Playbook,
    ) -> Result<Vec<String>, ActError> {
        let accepted = &playbook.strategy.accept_hazards;
        self.check(before, &after.release).await?;
        self.check_safe(after).await?;
        self.check_hooks(playbook, &after.release)?;
        self.check_known_hazards(&before.release, after, accepted).await?;
        self.check_next_start(after).await?;
        self.check_fsync(after, accepted).await?;
        self.check_settings((before, after), accepted).await?;
        // When they end was told for the first hop.
        drop(self.check_certificates((before, after), accepted).await?);
        self.check_v2_ahead((before, after), accepted).await?;
        let warnings = self.check_arguments(after).await?;
        Ok(warnings.iter().map(|warning| format!("for {}: {warning}", after.release)).collect())
    }
}

/// Says of what keeps a later hop from its beginning which one that is.
pub(super) fn of_hop(to: &Release) -> impl Fn(ActError) -> ActError + use<> {
    let to = to.clone();
    move |why| match why {
        ActError::KnownHazard { node, id, shown } => {
            ActError::KnownHazard { node, id, shown: format!("{shown}, on its way to {to}") }
        }
        why => format!("for the hop to {to}: {why}").into(),
    }
}

/// The hops to other releases after the one that the intent is at.
pub(super) fn later(whole: &Playbook, intent: &Intent) -> Vec<Hop> {
    let (Some(hops), Some(of)) = (&intent.hops, whole.kind.hops()) else { return Vec::new() };
    let later = hops.changes.iter().skip_while(|change| **change != intent.change).skip(1);
    later.filter_map(|change| of.iter().find(|hop| Some(&hop.to) == change.to())).cloned().collect()
}
