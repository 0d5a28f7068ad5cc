//! What ends a command and the rollout machine never hears of: a wrong command line, a damaged file, a cluster that nobody
//! reaches. How each is told stands in `report/stop/trouble.rs`.

use std::{path::PathBuf, sync::Arc};

use proto::MemberId;

use crate::{
    observe::ObserveError,
    playbook::PlaybookError,
    store::{NotRead, stored::StoredError},
    words::with_causes,
};

/// Something that ends a command outside the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The command line cannot be understood.
    Usage(String),
    /// The playbook cannot be used; the whole text with place and caret.
    Playbook(String),
    /// `agent abandon` of somebody who is no member.
    NoSuchMember {
        typed: String,
        members: String,
    },
    /// Another agent holds the lock on the state directory.
    StateDirLocked(String),
    /// The state directory cannot be used.
    StateDir(String),
    JournalDamaged {
        text: String,
        journal: PathBuf,
    },
    /// The journal is of a newer format.
    JournalNewer(String),
    /// The journal or an address belongs to another cluster.
    OtherCluster(String),
    Unreachable(String),
    /// A certificate, key or password file cannot be used.
    Credentials(String),
    /// The cluster refuses user or password.
    AuthRefused(String),
    /// The user is no administrator.
    NotRoot {
        /// The user of the playbook.
        user: String,
    },
    /// The user may not read the shared keys.
    KeysForbidden {
        /// The user of the playbook.
        user: String,
    },
    /// The user lacks a right that this needs; what members answered.
    Denied(String),
    NewerAgent {
        key: String,
        /// The host it came from, if it says.
        host: Option<Arc<str>>,
    },
    /// A key that no agent wrote.
    KeysDamaged(String),
    /// A key that is larger than any agent makes it, or too many of them.
    KeysTooLarge(String),
    /// No step of this member to abandon.
    NothingToAbandon {
        /// The member, as it was typed.
        member: String,
    },
    /// The agent whose step is to be given up keeps its lease alive.
    AgentAtWork {
        member: String,
        host: Arc<str>,
    },
    /// The question before a step is given up was not answered with yes.
    NotConfirmed,
    /// The record changed between the look and the Txn.
    StepLockChanged {
        member: String,
    },
    /// Whoever answers at the endpoints is no member for clients.
    NoClientPort(String),
    /// What was given is a matrix, and no playbook.
    IsAMatrix(String),
    /// The cluster did not answer.
    NoAnswer(String),
    /// This host's members were started, and there is no quorum.
    NoQuorum(String),
    /// A feature was asked for, and nobody who answers has cluster feature gates.
    NoGates,
    /// A signal, before anything was begun.
    Interrupted,
    /// The answer to the question after the plan was not yes.
    Declined {
        /// The names of this host's members that do not run.
        down: Vec<String>,
    },
    /// This host lacks something.
    Unprepared(String),
    /// The operating system refused something.
    System(String),
    /// The member of the step in hand was removed from the cluster.
    Removed {
        name: String,
        member: String,
        by: String,
        lock: LockLeft,
    },
    /// What is known of the releases that a member of this host runs, and is to run: an id of the catalogue.
    KnownHazard {
        name: String,
        id: &'static str,
        /// By which that member shows it, as words behind its name; nothing where the releases decide.
        shown: String,
    },
    /// A member that has begun before has lost its data.
    DataGone {
        name: String,
        /// Of the step that was in hand, if there was one.
        lock: Option<LockLeft>,
    },
    /// A member of this host has forgotten all others, which were members a moment ago.
    Alone {
        name: String,
        others: Vec<String>,
    },
    /// `agent restore` was begun on this host, and not ended.
    Restoring {
        /// The file that it is from.
        from: PathBuf,
        /// What is typed behind the playbook, so that it goes on.
        words: String,
    },
    /// The cluster that was to be replaced serves, or may.
    Serves(String),
    /// A file that nothing is made from.
    BadBackup(String),
    /// A member of this host could not be given its new data, or be started on it.
    NotRestored(String),
    /// This, once members of this host were stopped by `agent restore`.
    AfterRestore {
        why: Box<Trouble>,
        /// What their state is.
        left: String,
    },
    /// A second signal, while `agent restore` made new data beside the old.
    LeftBeside,
    /// A second signal.
    InterruptedAtOnce {
        /// The member of the step in hand, if there was one.
        member: Option<(MemberId, String)>,
    },
}

/// The lock of a step that ended for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockLeft {
    Gone,
    /// Whether it was deleted is not known.
    Perhaps,
}

impl From<PlaybookError> for Trouble {
    fn from(error: PlaybookError) -> Self {
        let text = error.to_string();
        if error.is_a_matrix() { Self::IsAMatrix(text) } else { Self::Playbook(text) }
    }
}

impl From<ObserveError> for Trouble {
    fn from(error: ObserveError) -> Self {
        let text = with_causes(&error);
        match error {
            ObserveError::File { .. }
            | ObserveError::Pem { .. }
            | ObserveError::KeyPair { .. }
            | ObserveError::Tls(_)
            | ObserveError::Untrusted { .. } => Self::Credentials(text),
            ObserveError::Address { .. } => Self::Playbook(text),
            ObserveError::NobodyAnswered { .. } | ObserveError::NoMembership { .. } => Self::unanswered(text),
            ObserveError::NoClientPort { .. } => Self::NoClientPort(text),
            ObserveError::AnotherCluster { .. } => Self::OtherCluster(text),
            ObserveError::NotRoot { user } => Self::NotRoot { user },
            ObserveError::Auth { .. } => Self::AuthRefused(text),
        }
    }
}

impl From<StoredError> for Trouble {
    fn from(error: StoredError) -> Self {
        let text = with_causes(&error);
        match error {
            StoredError::Newer { key, host, .. } => Self::NewerAgent { key, host },
            StoredError::Damaged { .. } => Self::KeysDamaged(text),
            StoredError::Oversize(_) => Self::KeysTooLarge(text),
        }
    }
}

impl From<NotRead> for Trouble {
    fn from(error: NotRead) -> Self {
        match error {
            NotRead::Oversize(oversize) => StoredError::from(oversize).into(),
            NotRead::Unknown(unknown) => Self::no_answer(unknown.to_string()),
        }
    }
}
