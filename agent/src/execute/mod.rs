//! Performs the rollout machine's acts on the real thing, one after the other, and tells it what came of each.
//!
//! Makes no choices: what to do next is the machine's, whom to take down the planner's. Every act has its
//! file: `prepare` (this host), `look`, `send` (Txns and leases), `step` (one member), and for what is waited for `ready` (a
//! member), `settled` (the cluster), `wait` (others). Source: ARCHITECTURE.md, "The way of one `agent run`".

pub mod backup;
pub mod bring_up;
mod certificates;
mod confirm;
mod data_dir;
mod down;
mod downgrade;
mod end;
mod environment;
pub mod error;
mod gate_flags;
pub mod gone;
pub mod guard;
pub mod hop;
pub mod identity;
pub mod inspect;
pub mod intent;
pub mod interrupt;
pub mod line;
mod look;
mod lost;
mod lost_settings;
mod membership;
mod newcomer;
mod newcomer_certificate;
mod next_start;
pub mod node;
mod own_certificate;
mod own_data;
mod own_store;
pub mod port_owner;
pub mod prepare;
mod probe;
mod process;
mod process_member;
mod ready;
mod releases;
pub mod replace_run;
pub mod restore;
mod send;
mod settled;
pub mod setup;
mod snapshot;
mod stall;
mod start_failure;
mod step;
mod switch;
mod unit;
mod v2_api;
mod wait;
mod what_runs;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Instant, SystemTime},
};

use proto::MemberId;

use crate::{
    event::{RunEvent, trouble::Trouble},
    host::files::state_dir::StateDir,
    journal::{
        file::Journal,
        progress::{self, Entry},
        restart::{self, Direction, InHand, Stage, Step},
    },
    keys::{ProcessId, rules::Rules},
    machine::{
        act::{Act, Ending, Event},
        agent::Agent,
    },
    observe::{Observer, canary::Canary, view::ClusterView},
    plan::Me,
    playbook::Playbook,
    report::Reporter,
    store::{Store, endpoint::Excluded},
};
pub use end::{Abort, Ended, LAST_STATUS};
use error::ActError;
use interrupt::Interrupt;
use line::{Line, Past};
use node::{OwnNode, Sides};
use send::Leases;

/// Everything one run works with.
#[derive(Debug)]
pub struct Execution<'r> {
    /// What was given, with every hop of its way.
    whole: Playbook,
    /// The same at the hop that this agent is about.
    pub playbook: Playbook,
    pub me: Arc<Me>,
    pub process: ProcessId,
    pub cluster: Cluster,
    seen: Seen,
    pub host: Host,
    pub console: Console<'r>,
    /// What a guard runs.
    command: guard::OwnCommand,
    /// When this agent said that it takes part: only from then on can others be missed.
    began: Instant,
    progress: stall::Progress,
    /// Once this agent takes part in a run, where the playbook wants one.
    canary: Option<Canary>,
    trouble: Option<Trouble>,
}

/// The way to the cluster and to its shared keys.
#[derive(Debug)]
pub struct Cluster {
    pub observer: Observer,
    pub store: Store,
    /// The member no call goes through.
    pub excluded: Arc<Excluded>,
    leases: Leases,
    /// Word that something changed, from the first wait on: a watch that is not needed only holds members up.
    watch: Option<Arc<crate::store::Watch>>,
    /// Which step of a downgrade is asked for, and since when, though it is not known what came of it.
    downgrade_asked: Option<(Option<proto::ClusterVersion>, Instant)>,
}

/// What the looks at the cluster saw.
#[derive(Debug, Default)]
struct Seen {
    last_view: Option<ClusterView>,
    /// The last view in which all was well: by its voters it is judged whether a member was removed.
    whole_view: Option<ClusterView>,
    last_seen: Option<SystemTime>,
    /// Members of this host of which two looks said that they were removed. An id never comes again.
    removed: BTreeSet<MemberId>,
    /// Why the last look saw nothing.
    blind: Option<Trouble>,
    /// Since when the cluster does not let this user read the shared keys.
    denied_since: Option<Instant>,
}

/// This host: its members, and what it wrote down of them.
#[derive(Debug)]
pub struct Host {
    pub nodes: Vec<OwnNode>,
    /// The lock on the state directory, held to the end.
    pub state: StateDir,
    /// What this host was about to do.
    pub journal: Journal<Line>,
    pub past: Past,
    /// Why the journal cannot be written.
    unwritable: Option<Trouble>,
    /// Members that this process has asked the cluster to remove: lists may show them for a while yet.
    removed: Vec<MemberId>,
    /// Whether this process has stopped a member.
    touched: bool,
    /// The member that may be stopped now.
    confirmed: Option<confirm::Confirmed>,
}

/// Whoever started the run: what is said to them, and what they ask.
#[derive(Debug)]
pub struct Console<'r> {
    pub reporter: &'r mut Reporter,
    pub interrupt: Interrupt,
    /// Which warnings of looks were told.
    warned: BTreeSet<String>,
}

impl Execution<'_> {
    /// Runs the machine to its end.
    pub async fn run(mut self) -> Ended {
        let interrupt = self.console.interrupt.clone();
        let has_systemd = self.command.is_on_systemd() || self.host.nodes.iter().any(OwnNode::is_unit);
        let ending = tokio::select! {
            ending = self.drive() => ending,
            () = interrupt.asked(2) => Err(Abort::AtOnce),
            () = interrupt.by_shutdown(), if has_systemd => Err(self.command.cut_short()),
        };
        let is_as_it_stays = |abort: &Abort| {
            use Abort::{Alone, AtOnce, DataGone, HostGoesDown, Removed};
            matches!(abort, AtOnce | HostGoesDown | Removed { .. } | DataGone { .. } | Alone { .. })
        };
        if ending.as_ref().is_err_and(|abort| !is_as_it_stays(abort)) {
            self.repair_before_abort().await;
        }
        self.ends(ending).await
    }

    async fn drive(&mut self) -> Result<Ending, Abort> {
        let mut agent = Agent::new(self.me.clone(), Rules::default(), self.process);
        let mut is_told = false;
        self.cluster.observer.access().directory().prefer(&self.me.seats.members().collect::<Vec<_>>());
        self.catch_up_with_what_runs().await?;
        self.correct_new_side().await;
        self.tell_of_a_step_taken_over();
        let down = self.down().await;
        let mut event = Event::Started { in_hand: self.host.past.in_hand, down };
        loop {
            if self.console.interrupt.is_asked() && !is_told {
                is_told = true;
                agent.on(Event::Interrupted);
            }
            let act = agent.on(event).expect("every event answers the act that the machine asked for");
            tracing::debug!(?act);
            event = match act {
                Act::Exit(ending) => return Ok(self.ended(ending)),
                act => self.perform(act).await?,
            };
            if let Event::Looked(looked) = &event {
                self.warn_of(&agent.warnings(looked));
            }
            tracing::trace!(?event);
        }
    }

    async fn perform(&mut self, act: Act) -> Result<Event, Abort> {
        Ok(match act {
            Act::Prepare => {
                let prepared = self.prepare().await;
                self.note_trouble(prepared)
            }
            Act::Look => return self.look().await,
            Act::Examine => self.examine().await,
            Act::Send(txn) => return self.send(&txn).await,
            Act::GiveBack(take) => self.give_back(take).await,
            Act::Journal(entry) => return self.write(entry),
            Act::HandOver { from, to } => self.hand_over(from, to).await,
            Act::Downgrade(to) => self.downgrade(to).await,
            Act::HookBefore(member) => as_event(self.hooks_before(member).await),
            Act::HookAfter(member) => self.hooks_after(member).await,
            Act::Confirm(member) => self.confirm(member).await,
            Act::Spawn => self.spawn(),
            Act::Command => self.run_command().await,
            Act::AwaitHost(command) => self.await_host(command).await,
            Act::Stop(member) => {
                self.cluster.leases.recorded = None;
                as_event(self.stop(member).await)
            }
            Act::Switch { member, to } => as_event(self.switch(member, to)),
            Act::Start(member) => as_event(self.start(member).await),
            Act::AwaitReady { member, on } => return self.await_ready(member, on).await,
            Act::AwaitPolls => self.await_polls().await,
            Act::Hop(change) => self.hop(&change),
            Act::BackUp => self.back_up().await,
            Act::AwaitSettled { back } => self.await_settled(back).await,
            Act::Wait(wait) => self.wait(wait).await,
            Act::Archive(seat) => self.archive(seat).await,
            Act::AddMember(seat) => self.add_member(seat).await,
            Act::StartNew(seat, member) => self.start_new(seat, member).await,
            Act::ChangeRole(step) => self.change_role(step).await,
            Act::Retire(seat) => self.retire(seat).await,
            Act::Exit(_) => Event::Done,
        })
    }

    /// A reason of its own is kept for the end, beside the machine.
    fn note_trouble(&mut self, prepared: Result<(), ActError>) -> Event {
        let failed = prepared.as_ref().err().map(|error| Arc::from(error.to_string()));
        if let Some(trouble) = prepared.err().and_then(ActError::into_trouble) {
            self.trouble = Some(trouble);
        }
        failed.map_or(Event::Done, Event::Failed)
    }

    fn write(&mut self, entry: Entry) -> Result<Event, Abort> {
        let sides = match entry {
            Entry::Restart(restart::Entry::Planned(step)) => self.sides_of(&step),
            _ => None,
        };
        self.host.journal.append(&Line::new(entry, sides)).map_err(Abort::Journal)?;
        let before = self.host.past.restart();
        if let Ok(in_hand) = progress::advance(self.host.past.in_hand, entry) {
            self.host.past.in_hand = in_hand;
        }
        if let Some(before) = before.filter(|_| !self.host.past.in_hand.is_some_and(|now| now.may_have_stopped()))
            && let Ok(node) = self.node_mut(before.step.member)
        {
            node.believe_looks();
        }
        let is_started = entry == Entry::Restart(restart::Entry::Starting(Direction::Forward));
        if let Some(InHand { step, stage: Stage::Stopping(Direction::Back) }) = before.filter(|_| is_started) {
            self.tell(RunEvent::KeptNew { member: step.member });
        }
        Ok(Event::Done)
    }

    /// The two sides of a step that begins. What an earlier step saved of the member's files is not what this
    /// one comes from.
    fn sides_of(&mut self, step: &Step) -> Option<Sides> {
        let node = self.node(step.member)?;
        let sides = node.sides.clone();
        let forgotten = if step.direction == Direction::Forward { node.forget_saved() } else { Ok(()) };
        if let Err(why) = forgotten {
            self.warn(&format!("{}: {why}", self.name_of(step.member)));
        }
        sides
    }

    fn node(&self, member: MemberId) -> Option<&OwnNode> {
        self.host.nodes.iter().find(|node| node.member == member)
    }

    fn node_mut(&mut self, member: MemberId) -> Result<&mut OwnNode, ActError> {
        self.host
            .nodes
            .iter_mut()
            .find(|node| node.member == member)
            .ok_or_else(|| "this host has no such member".into())
    }

    fn name_of(&self, member: MemberId) -> String {
        self.node(member).map_or_else(|| member.to_string(), |node| node.node.name.clone())
    }

    fn tell(&mut self, happening: RunEvent<'_>) {
        self.console.reporter.tell(happening);
    }

    fn warn(&mut self, text: &str) {
        self.tell(RunEvent::Warning(text));
    }
}

fn as_event(result: Result<(), ActError>) -> Event {
    match result {
        Ok(()) => Event::Done,
        Err(why) => Event::Failed(why.to_string().into()),
    }
}
