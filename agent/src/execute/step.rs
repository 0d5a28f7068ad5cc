//! What is done to one member: hooks, hand-over, stop, switch, start.

use crate::words::with_causes;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proto::{MemberId, Release};
use tokio::time::sleep;

use super::{
    Execution,
    error::ActError,
    node::OwnNode,
    port_owner::{kept_up_by, listens},
    prepare::is_unseen,
    process::Stopped,
    process_member::{judged_to_go_back, must_be_the_member, started_by_another},
};
use crate::{
    event::RunEvent,
    host::{
        blocking::blocking,
        program::hook,
        runtime::{Found, Listens},
    },
    journal::restart::{Binary, Direction, InHand, Stage},
    machine::act::Event,
    observe::HandOver,
    plan::Verb,
    playbook::{POLLS, Playbook, expand_all},
};

/// How long a member is looked at anew that is another process each time.
const RESTARTS: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Execution<'_> {
    pub(super) async fn hooks_before(&mut self, member: MemberId) -> Result<(), ActError> {
        let hooks = self.playbook.hooks.before_node.clone();
        self.hooks(member, &hooks).await
    }

    pub(super) async fn hooks_after(&mut self, member: MemberId) -> Event {
        let hooks = self.playbook.hooks.after_node.clone();
        if let Err(error) = self.hooks(member, &hooks).await {
            self.warn(&format!("after_node of {}: {error}", self.name_of(member)));
        }
        Event::Done
    }

    async fn hooks(&mut self, member: MemberId, hooks: &[Vec<String>]) -> Result<(), ActError> {
        if hooks.is_empty() {
            return Ok(());
        }
        // Before a step nothing is in hand yet; then it is the verb that says where it leads.
        let in_hand = self.host.past.restart().filter(|in_hand| in_hand.step.member == member);
        let wanted = if self.me.verb == Verb::Rollback { Direction::Back } else { Direction::Forward };
        let direction = in_hand.map_or(wanted, |in_hand| in_hand.step.direction);
        let node = self.node_mut(member)?;
        let release = match &node.sides {
            Some(sides) => sides.side(direction.to()).release.clone(),
            None => node.current().await?.release,
        };
        for argv in node.expanded(hooks, &release)? {
            let hook = argv.first().map_or("", String::as_str);
            if let Err(error) = hook::run(&argv).await {
                self.tell(RunEvent::HookFailed { member, hook, why: &with_causes(&error) });
                return Err(error.into());
            }
            self.tell(RunEvent::HookRan { member, hook });
        }
        Ok(())
    }

    pub(super) async fn hand_over(&mut self, from: MemberId, to: MemberId) -> Event {
        match self.cluster.observer.move_leader(from, to).await {
            HandOver::Moved => {
                self.tell(RunEvent::HandedOver { from, to });
                Event::Done
            }
            HandOver::Refused(reason) | HandOver::Unknown(reason) => Event::Failed(Arc::from(reason)),
        }
    }

    pub(super) async fn stop(&mut self, member: MemberId) -> Result<(), ActError> {
        let mut found = self.confirmed(member).await?;
        if self.host.past.restart().is_some_and(|in_hand| {
            in_hand.stage == Stage::Stopping(Direction::Back) && in_hand.step.direction == Direction::Forward
        }) {
            self.tell(RunEvent::PuttingBack { member });
        }
        self.tell(RunEvent::Stopping { member });
        self.cluster.excluded.set(Some(member));
        self.host.touched = true;
        // A supervisor may restart it between the look and the stop, and a crash loop does so again and again.
        let deadline = Instant::now() + RESTARTS;
        loop {
            match self.node_mut(member)?.stop(found).await {
                Ok(Stopped::Ended) => break,
                Ok(Stopped::Another(why)) => found = self.found_again(member, deadline, why).await?,
                Err(why) => return Err(self.with_who_keeps_it_up(member, found, why).await),
            }
        }
        if let Some(address) = self.cluster.observer.still_answers(member).await {
            return Err(ActError::from(format!(
                "it still answers at {address}: what was stopped is another member's process, or something has \
                 started it again"
            )));
        }
        self.tell(RunEvent::Stopped { member });
        Ok(())
    }

    async fn with_who_keeps_it_up(&self, member: MemberId, found: Found, why: ActError) -> ActError {
        let url = self.cluster.observer.access().directory().address_of(member);
        let (Found::Shown(judged), Some(url)) = (found, url) else { return why };
        match blocking(move || kept_up_by(judged.node.pid, &url)).await {
            Some(clients) => format!("{why}; {clients}").into(),
            None => why,
        }
    }

    /// What is found of a member whose process has changed since it was found. One that shows nothing now is left alone.
    async fn found_again(&self, member: MemberId, deadline: Instant, why: ActError) -> Result<Found, ActError> {
        loop {
            let is_late = Instant::now() >= deadline;
            match self.found(member).await? {
                Found::Unknown if is_late => return Err(why),
                Found::Unknown => sleep(POLL_INTERVAL).await,
                // It is the member each time, and has to be stopped. Which process is hit is the stop command's to know.
                Found::Shown(_) if is_late && self.turns_back(member) => return Ok(Found::Unknown),
                _ if is_late => return Err(why),
                found => return Ok(found),
            }
        }
    }

    /// Refuses a stop that would end something else than the member, and says which process it is, where that is known.
    pub(super) async fn found(&self, member: MemberId) -> Result<Found, ActError> {
        let Some(node) = self.node(member) else { return Ok(Found::Unknown) };
        // Since preflight hours may have passed. What turns back is not asked: it has to.
        if let Some(direction) = self.stops_for(member).filter(|_| !self.turns_back(member)) {
            self.check_own_certificate()?;
            node.check_unchanged(direction.to())?;
            node.check_alone().await?;
            node.check_log().await?;
            node.check_has_data().await?;
            if let Some(sides) = &node.sides {
                let side = sides.side(direction.to());
                node.check_unit_still(side, &self.playbook.strategy).await?;
                node.check_config_file(side).await?;
                node.check_next_start(side).await?;
            }
            let found = must_be_the_member(node, &self.cluster.observer, Duration::ZERO).await?.found;
            // A hook may have changed what its process is known by.
            return match matches!(found, Found::Stopped) && is_unseen(node, &self.cluster.observer).await? {
                true => Err(node.unseen()),
                false => Ok(found),
            };
        }
        judged_to_go_back(node, &self.cluster.observer).await
    }

    /// The direction that this member is about to be stopped for.
    fn stops_for(&self, member: MemberId) -> Option<Direction> {
        match self.host.past.restart() {
            Some(InHand { step, stage: Stage::Stopping(direction) }) if step.member == member => Some(direction),
            _ => None,
        }
    }

    /// Whether this member is stopped to leave what its step has brought it to.
    fn turns_back(&self, member: MemberId) -> bool {
        let in_hand = self.host.past.restart();
        self.stops_for(member)
            .is_some_and(|direction| in_hand.is_some_and(|in_hand| in_hand.step.direction != direction))
    }

    /// The member is brought up as its journal says, if that is still to be done.
    pub(super) fn tell_of_a_step_taken_over(&mut self) {
        let Some(InHand { step, stage }) = self.host.past.restart() else { return };
        if matches!(stage, Stage::Stopping(_) | Stage::Switched(_) | Stage::Starting(_)) {
            self.tell(RunEvent::StepTakenOver { member: step.member, back: step.direction == Direction::Back });
        }
    }

    pub(super) fn switch(&mut self, member: MemberId, to: Binary) -> Result<(), ActError> {
        let in_hand = self.host.past.restart().filter(|in_hand| in_hand.step.member == member);
        let is_mended = in_hand.is_some_and(|in_hand| in_hand.binary() == to);
        // Only a step that goes where it was to go can still be left undone.
        let is_asked_for = in_hand.is_some_and(|in_hand| in_hand.step.direction.to() == to) && !is_mended;
        let node = self.node_mut(member)?;
        let before = node.switched();
        let switched = match is_asked_for {
            true => node.switch(to).map(|()| Vec::new()),
            false => node.switch_to_start(to),
        };
        let has_changed = node.switched() != before;
        match &switched {
            Ok(wrong) => {
                wrong.iter().for_each(|why| self.warn(&files_are_wrong(&self.name_of(member), why)));
                // A switch that is made sure of after a crash finds it done most times.
                if has_changed {
                    self.tell(RunEvent::Switched { member });
                }
            }
            // The machine asks then whether it is ready all the same, and no end has this reason.
            Err(why) if is_mended => self.warn(&format!("{} could not be switched: {why}", self.name_of(member))),
            Err(_) => {}
        }
        switched.map(drop)
    }

    pub(super) async fn start(&mut self, member: MemberId) -> Result<(), ActError> {
        let in_hand = self.host.past.restart().filter(|in_hand| in_hand.step.member == member);
        // A second process beside the one that is not found would take its data directory or its ports.
        if self.was_hidden(member).await {
            return Ok(());
        }
        let url = self.cluster.observer.access().directory().address_of(member);
        let other = match self.node(member).filter(|node| node.may_be_stopped) {
            // Known by its file, an agent of this host has started it: this one, or the one before it that died.
            Some(node) if node.peek().await.is_ok_and(|status| status.process().is_some()) => None,
            Some(node) => started_by_another(node, &self.cluster.observer).await,
            None => None,
        };
        let node = self.node_mut(member)?;
        let started = match (other, node.may_be_stopped) {
            (Some(other), _) => Ok(node.adopt(other)),
            (None, true) => {
                let listens = blocking(move || url.map_or(Listens::Perhaps, |url| listens(&url))).await;
                node.start_stopped(listens).await
            }
            (None, false) => node.start().await,
        };
        node.remember_start(started.as_ref().err());
        let started = started?;
        started.warnings.iter().for_each(|warning| self.warn(warning));
        if started.is_new {
            self.tell(if in_hand.is_some() { RunEvent::Started { member } } else { RunEvent::Mended { member } });
        }
        Ok(())
    }

    /// Whether a member answers that this step has not stopped, though its process is not found any more: it runs what it ran.
    pub(super) async fn was_hidden(&self, member: MemberId) -> bool {
        match self.node(member).filter(|node| !node.may_be_stopped) {
            Some(node) => is_unseen(node, &self.cluster.observer).await.unwrap_or(false),
            None => false,
        }
    }

    pub(super) async fn await_polls(&mut self) -> Event {
        if let Some(in_hand) = self.host.past.in_hand {
            self.tell(RunEvent::LettingPollsEnd { member: in_hand.member(), seconds: POLLS.as_secs() });
        }
        tokio::time::sleep(POLLS).await;
        Event::Done
    }
}

/// What is said of a member that is started though one of its files is not as its binary should have it.
pub(super) fn files_are_wrong(name: &str, why: &ActError) -> String {
    format!("{name} is started all the same, but one of its files is not as it should be: {why}")
}

impl OwnNode {
    /// Refuses a log that its start could not open.
    async fn check_log(&self) -> Result<(), ActError> {
        match &self.runtime {
            Some(runtime) => runtime.check_log().await.map_err(ActError::from),
            None => Ok(()),
        }
    }

    /// Hooks with this member and a release in place of their templates.
    pub(super) fn expanded(&self, hooks: &[Vec<String>], release: &Release) -> Result<Vec<Vec<String>>, ActError> {
        let context = self.node.context(release);
        hooks.iter().map(|argv| expand_all(argv, &context).map_err(ActError::from)).collect()
    }

    /// Refuses a hook that others may change.
    pub(super) fn check_hooks(&self, playbook: &Playbook, release: &Release) -> Result<(), ActError> {
        let mut all = self.expanded(&playbook.hooks.before_node, release)?;
        all.extend(self.expanded(&playbook.hooks.after_node, release)?);
        all.extend(self.expanded(playbook.strategy.probe.as_slice(), release)?);
        all.iter().try_for_each(|argv| hook::check(argv).map_err(ActError::from))
    }
}
