//! A member's process: whether it runs, its end and its start.

use crate::words::with_causes;
use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    error::ActError,
    node::{OwnNode, Side},
};
use crate::{
    host::process::process_id::ProcessId,
    host::runtime::{
        Found, Listens, Runtime, RuntimeError, Status,
        command::CommandError,
        discovery::Belief,
        stop_request::{StopRequest, StopRequestFile},
    },
    words::typed,
};

/// How often a process that was told to stop is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What came of a start.
#[derive(Debug, Default)]
pub struct Start {
    /// Whether the member did not run before.
    pub is_new: bool,
    pub warnings: Vec<String>,
}

impl Start {
    /// What there is to warn of, where it made the member run.
    pub fn if_new(self) -> Option<Vec<String>> {
        self.is_new.then_some(self.warnings)
    }
}

/// What came of an attempt to stop a member.
pub(super) enum Stopped {
    Ended,
    /// Nothing was done: another process than the one that was found is named as it. It may have been restarted in between.
    Another(ActError),
}

/// What this agent knows of a process that was told to stop, beside what is on file.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What could not be written.
    stop_request: Option<StopRequest>,
    /// Whether its end was waited for.
    has_waited: bool,
    /// Whether this agent has told it to stop, and it did not end, as far as was seen.
    has_failed: bool,
    /// Why its last start failed, where it did.
    start_failure: Option<Arc<str>>,
}

/// Why a process that was told to stop is not known to have ended.
enum NotEnded {
    /// It runs, and may end at any moment.
    Runs(ActError),
    /// Its `status` says that it runs, and nothing shows it.
    Said(ActError),
    /// Its `status` fails.
    Unclear(ActError),
}

impl NotEnded {
    fn into_why(self) -> ActError {
        match self {
            Self::Runs(why) | Self::Said(why) | Self::Unclear(why) => why,
        }
    }
}

impl OwnNode {
    /// As [`OwnNode::look_up`], in the middle of a step: the journal says what its binary is, and a program that does not
    /// answer keeps no member down (I-10).
    pub async fn look_up_in_step(&mut self) -> Result<(), ActError> {
        match self.known() {
            Some(side) => self.look_up_at(&side).await,
            None => self.look_up().await,
        }
    }

    /// The side of its step that it is set to run now.
    pub(super) fn known(&self) -> Option<Side> {
        let (sides, executable) = (self.sides.as_ref()?, self.executable().ok()??);
        [&sides.old, &sides.new].into_iter().find(|side| side.executable.as_ref() == Some(&executable)).cloned()
    }

    /// Whether its process runs, and as which. One that was told to stop is waited for first: it is neither.
    pub async fn status(&self) -> Result<Status, ActError> {
        self.let_end().await.map_err(NotEnded::into_why)?;
        match &self.runtime {
            Some(runtime) => runtime.status().await.map_err(ActError::from),
            None => Ok(Status::Stopped),
        }
    }

    /// As [`OwnNode::status`], and leaves no file behind.
    pub async fn peek(&self) -> Result<Status, ActError> {
        match &self.runtime {
            Some(runtime) => runtime.peek().await.map_err(ActError::from),
            None => Ok(Status::Stopped),
        }
    }

    /// The refusal of a member that answers though its process is not found: the playbook is about another one, and to
    /// start what it says would start the member twice.
    pub fn unseen(&self) -> ActError {
        let nearest = self.runtime.as_ref().and_then(Runtime::nearest);
        let nearest = nearest.map_or(String::new(), |nearest| format!(": {nearest}"));
        let name = &self.node.name;
        format!("{name} answers, but no process of this host is it by the playbook{nearest}; correct its runtime, or stop it").into()
    }

    /// Ends its process, of which this was found. From then on nothing else that looks like it is it.
    pub(super) async fn stop(&mut self, found: Found) -> Result<Stopped, ActError> {
        // What cannot be told from another is not stopped.
        let status = self.peek().await?;
        let before = std::mem::replace(&mut self.may_be_stopped, true);
        let stop = &self.node.stop;
        let Some(runtime) = &self.runtime else { return Err(ActError::from("its runtime was never looked up")) };
        match runtime.stop(stop.timeout, stop.kill, found).await {
            Ok(()) => {}
            Err(error @ RuntimeError::Command(CommandError::Another { .. })) => {
                self.may_be_stopped = before;
                return Ok(Stopped::Another(error.into()));
            }
            Err(error) => {
                self.memory().has_failed = true;
                let is_shown = !matches!(runtime, Runtime::Command(_)) || matches!(found, Found::Shown(_));
                let is_on_file = StopRequestFile::of(&self.nodes, &self.node.name).read().is_some();
                if !is_on_file && error.is_of_one_that_was_told() {
                    self.memory().stop_request = StopRequest::now(found.process(&status), is_shown).ok();
                }
                return Err(error.into());
            }
        }
        *self.memory() = Memory::default();
        self.believe(Belief::Started(None));
        Ok(Stopped::Ended)
    }

    /// Whether this very process was told to stop, by this agent or by one that is gone.
    pub(super) fn was_told_to_stop(&self, process: ProcessId) -> bool {
        let told = StopRequestFile::of(&self.nodes, &self.node.name).read();
        let told = told.or_else(|| self.memory().stop_request.clone()).filter(|told| !told.is_of_another_boot());
        told.is_some_and(|told| told.process == Some(process))
    }

    fn forget_stop_request(&self) {
        StopRequestFile::of(&self.nodes, &self.node.name).forget();
        *self.memory() = Memory::default();
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits once for a process that was told to stop, by this agent or by one that is gone, as long as a stop may take.
    /// It is not killed: that is for a stop of its own, before which the cluster was looked at.
    async fn let_end(&self) -> Result<(), NotEnded> {
        let file = StopRequestFile::of(&self.nodes, &self.node.name);
        let Some(told) = file.read().or_else(|| self.memory().stop_request.clone()) else { return Ok(()) };
        let limit = if self.memory().has_waited { Duration::ZERO } else { self.node.stop.timeout };
        if told.is_of_another_boot() || self.ends_within(&told, limit).await? {
            self.forget_stop_request();
            return Ok(());
        }
        self.memory().has_waited = true;
        let (name, after) = (&self.node.name, self.node.stop.timeout);
        Err(match told.process.filter(|_| told.is_shown) {
            Some(process) => NotEnded::Runs(
                format!(
                    "{name} ({process}) was told to stop, has not ended after {after:?}, and may end at any moment; end it, \
                     then repeat the command: {}kill -KILL {}",
                    self.own_stop().map(|stop| format!("{stop}; ")).unwrap_or_default(),
                    process.pid
                )
                .into(),
            ),
            None => NotEnded::Said(
                format!(
                    "{name} was told to stop, and its `status` still says the same after {after:?}, which does not show whether \
                     it was started again; if it was, repeat the command after: rm {}",
                    typed(&file.path().to_string_lossy())
                )
                .into(),
            ),
        })
    }

    /// The operator's own command that stops it, as it is typed.
    fn own_stop(&self) -> Option<String> {
        let Some(Runtime::Command(command)) = &self.runtime else { return None };
        Some(command.stop.iter().map(|word| typed(word)).collect::<Vec<_>>().join(" "))
    }

    /// What is to be known of a process that was told to stop and still runs, before a run that waits for its end.
    pub(super) async fn still_ending(&self) -> Option<String> {
        let told =
            StopRequestFile::of(&self.nodes, &self.node.name).read().filter(|told| !told.is_of_another_boot())?;
        // One whose `status` fails is warned of elsewhere.
        let runs = matches!(self.ends_within(&told, Duration::ZERO).await, Ok(false));
        let (name, timeout) = (&self.node.name, self.node.stop.timeout);
        let process = told.process.map_or(String::new(), |process| format!(" ({process})"));
        runs.then(|| {
            format!(
                "{name}{process} was told to stop by an earlier run and may end at any moment: a run waits up to \
                 {timeout:?} for its end, starts it again, and is refused if it has not ended by then"
            )
        })
    }

    async fn ends_within(&self, told: &StopRequest, limit: Duration) -> Result<bool, NotEnded> {
        let deadline = Instant::now() + limit;
        loop {
            let is_there = match told.process {
                Some(process) if told.is_shown => process.is_alive().unwrap_or(true),
                // Whoever is named by a supervisor alone may be anybody: its word counts, while it names the same one.
                named => match self.peek().await.map_err(NotEnded::Unclear)? {
                    Status::Stopped => false,
                    Status::Running { process } => {
                        process.is_none_or(|now| named.is_none_or(|named| now.identity == named))
                    }
                },
            };
            if !is_there || Instant::now() >= deadline {
                return Ok(!is_there);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Kept until it was started, or is to be stopped.
    pub(super) fn remember_start(&self, why: Option<&ActError>) {
        self.memory().start_failure = why.map(|why| why.to_string().into());
    }

    /// Why its last start failed, where it did.
    pub(super) fn start_failure(&self) -> Option<Arc<str>> {
        self.memory().start_failure.clone()
    }

    fn believe(&mut self, belief: Belief) {
        self.belief = belief;
        if let Some(runtime) = &mut self.runtime {
            runtime.believe(belief);
        }
    }

    /// Takes the process that somebody else has started as this node, since it was stopped.
    pub(super) fn adopt(&mut self, process: ProcessId) -> Start {
        self.forget_stop_request();
        self.believe(Belief::Started(Some(process)));
        let name = &self.node.name;
        let warning =
            format!("{name}: somebody else has started it since it was stopped, as {process}; it is left as it is");
        Start { is_new: false, warnings: vec![warning] }
    }

    /// Its step is over: whoever starts it now, it is this node.
    pub fn believe_looks(&mut self) {
        self.may_be_stopped = false;
        self.believe(Belief::Looks);
    }

    /// Refuses a process beside its own that can only be this member, too.
    pub async fn check_alone(&self) -> Result<(), ActError> {
        let status = self.peek().await?;
        self.runtime.as_ref().map_or(Ok(()), |runtime| runtime.check_alone(&status).map_err(ActError::from))
    }

    /// Starts its process, as the release that it has now wants it.
    ///
    /// # Errors
    /// Why it was not started. A member whose data is gone has forgotten what it promised, and is not begun anew.
    pub async fn start(&mut self) -> Result<Start, ActError> {
        self.check_has_data().await?;
        self.check_start_now().await?;
        self.begin().await
    }

    /// As [`OwnNode::start`], also of a newcomer that has no data yet.
    pub(super) async fn begin(&mut self) -> Result<Start, ActError> {
        self.look_up().await?;
        self.let_end().await.map_err(NotEnded::into_why)?;
        let Some(runtime) = &self.runtime else { return Ok(Start::default()) };
        let started = runtime.start().await?;
        Ok(Start { is_new: started.is_new, warnings: started.warnings })
    }

    /// As [`OwnNode::start`], for a member that this host has stopped: it is started whatever else looks like it (I-10).
    /// What does, and what else was not as it should be, is returned as warnings. Its `status` alone is not believed that it
    /// runs, after a stop of this agent's that failed and where it `listens` nowhere.
    pub async fn start_stopped(&mut self, listens: Listens) -> Result<Start, ActError> {
        // I-10 is for who can go on where it was: this one would come back as somebody who knows nothing.
        self.check_has_data().await?;
        self.check_start_now().await?;
        self.look_up_in_step().await?;
        let listens = if self.memory().has_failed { listens } else { Listens::Perhaps };
        match self.let_end().await {
            Err(NotEnded::Runs(why)) => return Err(why),
            Err(NotEnded::Said(why)) if listens == Listens::Perhaps => return Err(why),
            // A `status` that fails does not say that it runs, and keeps no member down (I-10).
            Err(NotEnded::Said(_) | NotEnded::Unclear(_)) | Ok(()) => {}
        }
        let Some(runtime) = &self.runtime else { return Ok(Start::default()) };
        let started = runtime.start_stopped(listens).await?;
        // What runs now was started since.
        self.forget_stop_request();
        let doubt = runtime.check_alone(&started.status).err().map(|error| with_causes(&error));
        let name = &self.node.name;
        let doubt = doubt.map(|doubt| format!("started all the same, as it was stopped for its step: {doubt}"));
        let warnings =
            doubt.into_iter().chain(started.warnings.iter().map(|warning| format!("{name}: {warning}"))).collect();
        self.believe(Belief::Started(started.status.process().map(|process| process.identity)));
        Ok(Start { is_new: started.is_new, warnings })
    }
}

#[cfg(test)]
#[path = "process_test.rs"]
mod tests;
