//! What the rollout machine asks for, and what it is told. One act is under way at a time.
//!
//! An act is a request and names no way of doing it: `execute/` does it on the real thing, the model
//! checker on its own.

use std::sync::Arc;

use proto::{ClusterVersion, MemberId, Revision};

use crate::{
    journal::{
        guarded::Command,
        progress::{Entry, InHand},
        restart::Binary,
    },
    keys::{Backup, Keys, ProcessId, TakeId, change::Change, txn::Txn},
    observe::{evidence::Evidence, view::ClusterView},
    plan::{
        Finish, Me,
        membership::{RoleStep, survey::Survey},
        refusal::{Refusal, Wait},
    },
};

/// A request of the machine to the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Download, verify, unpack and check everything on this host that a step will need.
    Prepare,
    /// Read every key in one Range, then ask every member. Answered by [`Event::Looked`].
    Look,
    /// Ask what is costly to ask. Answered by [`Event::Examined`].
    Examine,
    /// Answered by [`Event::Yes`], [`Event::No`] or [`Event::Unknown`].
    Send(Txn),
    /// Give the baton back by revoking the lease of this taking, so that no late sending of it can land
    /// after. Answered by [`Event::Done`] or [`Event::Unknown`].
    GiveBack(TakeId),
    /// Make an entry durable. Answered by [`Event::Done`].
    Journal(Entry),
    /// Pass leadership on. Answered by [`Event::Done`] once the target says so itself, else [`Event::Failed`].
    HandOver {
        from: MemberId,
        to: MemberId,
    },
    /// Enable a downgrade to this version, or cancel the one that is enabled. Answered by [`Event::Done`] also where it is
    /// not known, since the next look shows it; by [`Event::Failed`] where the cluster refuses.
    Downgrade(Option<ClusterVersion>),
    /// Run the `before_node` hooks. A failure ends the run before anything was touched.
    HookBefore(MemberId),
    /// Run the `after_node` hooks. A failure is a warning.
    HookAfter(MemberId),
    /// Right before a stop: have every other ready voter show at once that the record stands (I-2, R-2). Answered by
    /// [`Event::Done`], by [`Event::Unconfirmed`], or by [`Event::Failed`] where this host itself keeps from the stop.
    Confirm(MemberId),
    /// Make the process of a guarded command, which does nothing before it is let, and nothing at all once this process is
    /// gone. Answered by [`Event::Spawned`] or [`Event::Failed`].
    Spawn,
    /// Let it begin, and wait for its end. Answered by [`Event::Done`], by [`Event::Failed`] where it failed, or by
    /// [`Event::Unconfirmed`] where it was not let.
    Command,
    /// Wait until the command has ended and the host stays, or the host has come back. Needs no quorum.
    AwaitHost(Command),
    /// Stop a member's process. [`Event::Failed`] means that it still runs.
    Stop(MemberId),
    /// Make this binary and its files the member's own.
    Switch {
        /// The member, which is down.
        member: MemberId,
        /// Which of the step's two binaries.
        to: Binary,
    },
    /// See to it that a member's process runs, on the binary that is its own now. Needs no quorum.
    Start(MemberId),
    /// Wait until a member has been healthy for the soak time, at the release of `on` where that is given.
    AwaitReady {
        member: MemberId,
        /// The binary it must be seen to run.
        on: Option<Binary>,
    },
    /// Let 20 s pass: a version poll that began before the stop has ended after that.
    AwaitPolls,
    /// Wait until versions, gates and hashes agree on every member.
    AwaitSettled {
        /// Whether the run went back.
        back: bool,
    },
    /// Carry out this hop of the way from now on. Answered by [`Event::Hop`].
    Hop(Box<Change>),
    /// Save one member's database. Answered by [`Event::BackedUp`], or by [`Event::Failed`] where none was to be had, or to be kept.
    BackUp,
    /// Wait until the keys or the members change, or for a while.
    Wait(Wait),
    /// Put the data in this seat's directory aside, which no process has open. Answered by [`Event::Done`] or [`Event::Failed`].
    Archive(usize),
    /// Have this seat's newcomer added as a learner. Answered by [`Event::Done`] also where it is not known, since the next look
    /// shows it; by [`Event::Failed`] where the cluster refuses.
    AddMember(usize),
    /// Start this seat's newcomer, listed by this id, with the members that there are now. Answered as [`Act::Archive`].
    StartNew(usize, MemberId),
    /// Change this member's role. Answered as [`Act::AddMember`].
    ChangeRole(RoleStep),
    /// Stop this seat's process for good, and put its data aside. Answered as [`Act::Archive`].
    Retire(usize),
    Exit(Ending),
}

/// What the world tells the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process has started and read its own host.
    Started {
        /// The step that the journal has in hand.
        in_hand: Option<InHand>,
        /// Members of this host whose process does not run.
        down: Vec<MemberId>,
    },
    Looked(Box<Looked>),
    /// What was found; less where it was not to be had.
    Examined(Arc<Evidence>),
    /// The Txn was done, at this revision.
    Yes(Revision),
    /// The Txn was refused; the keys as they stood.
    No(Box<Keys>),
    /// Nobody knows whether the Txn was, or will yet be, done.
    Unknown {
        /// Whether it has been sent for long enough to end without knowing.
        give_up: bool,
    },
    Done,
    Failed(Arc<str>),
    /// What this process does from now on, on another hop of the way.
    Hop(Arc<Me>),
    BackedUp(Arc<Backup>),
    /// The process that a command will be.
    Spawned(Command),
    /// Somebody did not show what was asked for.
    Unconfirmed(Arc<str>),
    /// The member could not be judged: there is no quorum.
    NoQuorum,
    /// The wait ended; the time that was waited for has passed, or something has changed.
    Woke {
        /// Whether nobody has made progress for longer than the playbook allows.
        expired: bool,
    },
    /// The operator asked for an end. May come beside any answer.
    Interrupted,
}

/// One look: keys first, then members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Every key; `None` where the Range was not answered.
    pub keys: Option<Keys>,
    /// Every member; `None` where not even a membership could be had.
    pub view: Option<ClusterView>,
    /// Members of this host that were removed from the cluster, as a majority of the voters says.
    pub removed: Vec<MemberId>,
    /// Members of this host whose process does not run.
    pub down: Vec<MemberId>,
    /// Whether enough time has passed since the start for other agents to come.
    pub is_window_over: bool,
    /// When this host's window opens, where it is closed (`strategy.window`).
    pub closed_until: Option<Arc<str>>,
    /// Whether the baton's lease has more than a third of its time left.
    pub lease_is_fresh: bool,
    /// Processes that have put something in the name of this host, or at its members in the name of another state
    /// directory of this machine, and are gone.
    pub gone: Vec<ProcessId>,
    /// An id that was never used, for the next attempt or run.
    pub fresh: u128,
    /// What a change of members is decided by, where that is asked for and was had.
    pub survey: Option<Survey>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    Finished(Finish),
    Refused(Refusal),
    /// This host is not fit for the step.
    Unprepared(Arc<str>),
    /// A `before_node` hook failed; nothing was touched.
    Hook {
        /// The member whose turn it was.
        member: MemberId,
        why: Arc<str>,
    },
    /// Leadership could not be passed on; nothing was stopped.
    HandOver {
        member: MemberId,
        why: Arc<str>,
    },
    /// The cluster refuses to enable a downgrade, or to cancel it; nothing was stopped.
    NotLowered(Arc<str>),
    /// The backup that comes first was not had; nothing was changed.
    NotBackedUp(Arc<str>),
    Step {
        member: MemberId,
        why: Arc<str>,
        left: Left,
    },
    /// A member of this host does not become ready.
    Sick {
        member: MemberId,
        why: Arc<str>,
    },
    /// This host's members run, but there is no quorum to judge them by.
    NoQuorum {
        /// The member that could not be judged.
        member: MemberId,
    },
    /// The members are all at their target, but the cluster did not settle.
    NotSettled(Arc<str>),
    /// A newcomer of this host did not become a member, and is taken back.
    NotJoined {
        seat: Arc<str>,
        why: Arc<str>,
    },
    /// Something that this host was to do for a seat of its own failed.
    Seat {
        seat: Arc<str>,
        why: Arc<str>,
    },
    /// Nobody made progress for too long.
    Expired(Wait),
    /// A guarded command ran, and this host's members are ready.
    Guarded {
        /// Why the command failed, if it did.
        failed: Option<Arc<str>>,
    },
    /// It was asked whether a command could run, and it could.
    MayGo,
    /// It was asked, and it would have to wait.
    NotYet(Wait),
    /// The store did not answer for too long.
    NoAnswer {
        /// The member whose record may stand.
        record: Option<MemberId>,
    },
    Interrupted,
}

/// What a failed step leaves its member on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// Its old binary, ready; the record is gone.
    PutBack,
    /// The binary it had, ready: it could not be stopped, or not be switched; the record is gone.
    AsItWas,
    /// Whatever it was on, not ready; the record stands.
    AsItIs,
    /// Its new binary: the way back was closed; the record stands.
    NewBinaryKept,
}
