//! For tests: an agent of member 1's host, driven in a world where every act succeeds and looks show what
//! the test says; and its acts in short words, as `switch old, start, ready, look, delete step`.

use std::sync::Arc;

use proto::{MemberId, Revision};

use super::{
    act::{Act, Event, Looked},
    agent::Agent,
};
use crate::{
    journal::{
        guarded::Command,
        progress,
        restart::{Binary, Direction, InHand, Stage, Step},
    },
    keys::{
        At, AttemptId, Backup, Baton, Intent, Keys, Participant, Pause, ProcessId, RunState, StepLock, TakeId,
        host_id::HostId,
        rules::Rules,
        seat::Seats,
        txn::{Op, Txn},
    },
    observe::view::ClusterView,
    plan::{Me, OnFailure, Verb, samples},
    unknown::Unknown,
};

/// The attempt that a journal of these tests has in hand.
pub(super) const ATTEMPT: AttemptId = AttemptId(7);

pub(super) fn at<T>(value: T) -> At<T> {
    At { created: Revision(5), modified: Revision(6), value }
}

pub(super) fn host(number: u64) -> HostId {
    HostId { machine: None, instance: u128::from(number) }
}

pub(super) fn process(pid: u32) -> ProcessId {
    ProcessId { boot_id: 1, pid_namespace: 1, pid, start_time: 0 }
}

/// A record of this member, put by an agent of that host.
pub(super) fn record(member: u64, by: u64, attempt: AttemptId) -> At<StepLock> {
    let (member, host_name) = (MemberId(member), Arc::from(""));
    at(StepLock {
        member,
        host: host(by),
        host_name,
        attempt,
        process: process(9),
        back: false,
        guarded: None,
        role: None,
        unknown: Unknown::default(),
    })
}

pub(super) fn baton(by: u64, pid: u32) -> At<Baton> {
    at(Baton {
        host: host(by),
        process: process(pid),
        host_name: Arc::from(""),
        take: TakeId(3),
        unknown: Unknown::default(),
    })
}

pub(super) fn pause() -> Arc<Pause> {
    Arc::new(Pause { by: Arc::from("here"), at: Arc::from(""), why: None })
}

pub(super) fn backup() -> Arc<Backup> {
    let (host_name, path) = (Arc::from("here"), Arc::from("/b"));
    Arc::new(Backup { host_name, path, member: MemberId(2), revision: None, sha256: None, bytes: 1 })
}

/// A run in this state, and every host at work.
pub(super) fn keys(state: RunState) -> Keys {
    let participant = |owner| Participant {
        host_name: Arc::from(""),
        process: process(8),
        seats: Seats::on(host(owner), [(Arc::from(""), MemberId(owner))]),
        done: Vec::new(),
        waits_for: None,
        waits_since: None,
        waits_until: None,
        does: None,
        backed_up: None,
        is_closed: false,
        unknown: Unknown::default(),
    };
    let agents = (1..=3).map(|owner| (host(owner), at(participant(owner)))).collect();
    Keys { run: Some(at(samples::run(state))), agents, ..Keys::default() }
}

pub(super) fn in_hand(stage: Stage) -> progress::InHand {
    let step = Step { member: MemberId(1), attempt: ATTEMPT, direction: Direction::Forward };
    progress::InHand::Restart(InHand { step, stage })
}

fn agent(me: Me) -> Agent {
    Agent::new(Arc::new(me), Rules::default(), process(1))
}

pub(super) struct Driven {
    pub(super) agent: Agent,
    pub(super) keys: Keys,
    pub(super) view: ClusterView,
    /// Processes that are seen to be gone.
    pub(super) gone: Vec<ProcessId>,
    /// This host's members that do not run.
    pub(super) removed: Vec<MemberId>,
    pub(super) down: Vec<MemberId>,
    /// Whether others show, right before a stop, that the record stands.
    pub(super) is_confirmed: bool,
    pub(super) fails: fn(&Act) -> bool,
    pub(super) answers: bool,
}

impl Driven {
    /// An agent that finds these keys and members; `view` as in `samples::view`.
    pub(super) fn new(keys: Keys, view: &str) -> Self {
        Self {
            agent: agent(samples::me(&[1])),
            keys,
            view: samples::view(view),
            gone: vec![process(8), process(9)],
            removed: Vec::new(),
            down: Vec::new(),
            is_confirmed: true,
            fails: |_| false,
            answers: true,
        }
    }

    pub(super) fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.agent = agent(Me { on_failure, ..samples::me(&[1]) });
        self
    }

    pub(super) fn verb(mut self, verb: Verb) -> Self {
        self.agent = agent(Me { verb, ..samples::me(&[1]) });
        self
    }

    /// An agent that is about this, and so is the run.
    pub(super) fn about(mut self, intent: &Arc<Intent>) -> Self {
        self.agent = agent(Me { intent: intent.clone(), ..samples::me(&[1]) });
        self.keys.run.iter_mut().for_each(|run| run.value.intent = intent.clone());
        self
    }

    pub(super) fn without_answers(mut self) -> Self {
        self.answers = false;
        self
    }

    /// Starts it over this journal and tells its acts up to the first write, wait or end.
    pub(super) fn start(&mut self, in_hand: Option<progress::InHand>) -> String {
        let act = self.agent.on(Event::Started { in_hand, down: Vec::new() });
        self.follow(act)
    }

    /// Answers the write, wait or end it came to, and tells its acts up to the next.
    pub(super) fn then(&mut self, event: Event) -> String {
        let act = self.agent.on(event);
        self.follow(act)
    }

    fn looked(&self) -> Event {
        Event::Looked(Box::new(Looked {
            keys: self.answers.then(|| self.keys.clone()),
            view: Some(self.view.clone()),
            removed: self.removed.clone(),
            down: self.down.clone(),
            is_window_over: true,
            closed_until: None,
            lease_is_fresh: true,
            gone: self.gone.clone(),
            fresh: 11,
            survey: None,
        }))
    }

    fn follow(&mut self, mut next: Option<Act>) -> String {
        let mut words = Vec::new();
        while let Some(act) = next {
            words.push(word(&act));
            next = self.answer(&act);
        }
        words.join(", ")
    }

    /// The next act, unless this one is a write, a wait or an end.
    pub(super) fn answer(&mut self, act: &Act) -> Option<Act> {
        match act {
            Act::Send(txn) if is_registration(txn) => self.agent.on(Event::Yes(Revision(6))),
            Act::Send(_) | Act::Wait(_) | Act::Exit(_) | Act::GiveBack(_) | Act::HandOver { .. } => None,
            Act::Look => self.agent.on(self.looked()),
            Act::BackUp if !(self.fails)(act) => self.agent.on(Event::BackedUp(backup())),
            Act::Examine => self.agent.on(Event::Examined(Arc::default())),
            Act::Confirm(_) if !self.is_confirmed => self.agent.on(Event::Unconfirmed(Arc::from("m2 did not answer"))),
            Act::Spawn => {
                let command = Command { process: process(77), init: process(1), reboots: false };
                self.agent.on(Event::Spawned(command))
            }
            _ if (self.fails)(act) => self.agent.on(Event::Failed(Arc::from("it does not work"))),
            Act::AwaitReady { member, .. } if !self.view.ends_step(*member) => {
                self.agent.on(Event::Failed(Arc::from("not ready")))
            }
            _ => self.agent.on(Event::Done),
        }
    }
}

fn is_registration(txn: &Txn) -> bool {
    matches!(txn.ops.as_slice(), [Op::PutAgent(..)])
}

pub(super) fn word(act: &Act) -> String {
    match act {
        Act::Prepare => "prepare".into(),
        Act::Look => "look".into(),
        Act::Examine => "examine".into(),
        Act::Send(txn) => txn.ops.iter().map(op).collect::<Vec<_>>().join(" and "),
        Act::GiveBack(_) => "give back".into(),
        Act::Journal(entry) => format!("note {}", note(*entry)),
        Act::HandOver { .. } => "hand over".into(),
        Act::Downgrade(to) => if to.is_some() { "lower" } else { "cancel" }.into(),
        Act::HookBefore(_) => "hook".into(),
        Act::HookAfter(_) => "hook after".into(),
        Act::Confirm(_) => "confirm".into(),
        Act::Spawn => "spawn".into(),
        Act::Command => "command".into(),
        Act::AwaitHost(_) => "await host".into(),
        Act::Stop(_) => "stop".into(),
        Act::Switch { to, .. } => format!("switch {}", if *to == Binary::Old { "old" } else { "new" }),
        Act::Start(_) => "start".into(),
        Act::AwaitReady { .. } => "ready".into(),
        Act::AwaitPolls => "let polls end".into(),
        Act::AwaitSettled { .. } => "settle".into(),
        Act::Hop(_) => "hop".into(),
        Act::BackUp => "back up".into(),
        Act::Wait(wait) => format!("wait {}", name_of(wait)),
        Act::Archive(_) => "archive".into(),
        Act::AddMember(_) => "add".into(),
        Act::StartNew(..) => "start new".into(),
        Act::ChangeRole(step) => name_of(&step.change).to_lowercase(),
        Act::Retire(_) => "retire".into(),
        Act::Exit(ending) => format!("end {}", name_of(ending)),
    }
}

fn op(op: &Op) -> String {
    match op {
        Op::PutRun(run) => {
            let paused = if run.pause.is_some() { ", paused" } else { "" };
            format!("run {}{paused}", name_of(&run.state).to_lowercase())
        }
        Op::PutAgent(..) => "register".into(),
        Op::PutBaton(_) => "take baton".into(),
        Op::PutStepLock(_) => "put step".into(),
        Op::PutAbandoned(_) => "put abandoned".into(),
        Op::PutHost(..) => "put host".into(),
        Op::Delete(key) => format!("delete {}", name_of(key).to_lowercase()),
    }
}

fn note(entry: progress::Entry) -> String {
    match entry {
        progress::Entry::Restart(entry) => name_of(&entry).to_lowercase(),
        progress::Entry::Guarded(entry) => name_of(&entry).to_lowercase(),
    }
}

/// The names of a value's variants, outermost first, without what they hold of ids.
fn name_of(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(['{', ' ']).unwrap_or(text.len());
    let names = text[..end].split(['(', ')']).filter(|word| word.starts_with(char::is_uppercase));
    names.filter(|word| *word != "MemberId" && !word.starts_with("HostId")).collect::<Vec<_>>().join(" ")
}
