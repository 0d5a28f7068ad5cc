//! Ends that the rollout machine never hears of: a wrong command line, a damaged file, a cluster that nobody
//! reaches. Each is a typed trouble; how it is told stands here.

use super::{Reason, Stop, hazard, members::back_by_itself};
use crate::{
    event::trouble::{LockLeft, Trouble},
    observe::error::{DENIED, USER_WANTED},
    report::{names::printable, shown::grants},
    words::typed,
};

impl Trouble {
    /// Nobody answered what was asked; where members do answer, and want a user, that is said instead.
    pub fn unanswered(text: String) -> Self {
        Self::denied(&text).unwrap_or(Self::Unreachable(text))
    }

    /// The same, by whoever had answers before.
    pub fn no_answer(text: String) -> Self {
        Self::denied(&text).unwrap_or(Self::NoAnswer(text))
    }

    /// What was to be written is not.
    pub fn refused(why: &str) -> Self {
        Self::denied(why).unwrap_or_else(|| Self::AuthRefused(format!("it is not written: {why}")))
    }

    /// Members answer what was asked, and it is no.
    fn denied(text: &str) -> Option<Self> {
        match () {
            () if USER_WANTED.iter().any(|said| text.contains(said)) => Some(Self::user_wanted()),
            () if text.contains(DENIED) => Some(Self::Denied(text.to_owned())),
            () => None,
        }
    }

    /// Auth is on, and nobody was named.
    pub fn user_wanted() -> Self {
        let instead = "auth is on in this cluster, so it wants a user (`cluster.auth`, or --user)";
        Self::AuthRefused(format!("{instead}; {} says how to make one", grants::COMMAND))
    }

    /// Whether somebody answers who refuses this user, or his certificate.
    pub fn is_denial(&self) -> bool {
        matches!(
            self,
            Self::Credentials(_)
                | Self::AuthRefused(_)
                | Self::NotRoot { .. }
                | Self::KeysForbidden { .. }
                | Self::Denied(_)
        )
    }

    /// How it is told; `playbook` as it was typed, `verb` as in `agent VERB`, `touched` whether this process has
    /// stopped a member.
    pub fn stop(&self, verb: &str, playbook: Option<&str>, touched: bool) -> Stop {
        let again = playbook.map(|path| format!("agent {verb} {}", typed(path)));
        let with = |verb: &str| playbook.map(|path| format!("agent {verb} {}", typed(path)));
        let (reason, message, left, next) = match self {
            Self::Usage(text) => {
                (Reason::Usage, text.clone(), "", Some(format!("agent help {verb}").trim_end().into()))
            }
            Self::Playbook(text) if verb == "matrix" => {
                (Reason::Playbook, text.clone(), NOTHING, again.map(|again| again + " --list"))
            }
            Self::Playbook(text) => (Reason::Playbook, text.clone(), NOTHING, with("validate")),
            Self::IsAMatrix(text) => {
                let list = playbook.map(|path| format!("agent matrix {} --list", typed(path)));
                (Reason::Playbook, text.clone(), NOTHING, list)
            }
            Self::NoClientPort(text) => {
                let correct = match playbook {
                    Some(path) => format!("correct cluster.endpoints in {}, then: agent {verb} {0}", typed(path)),
                    None => "correct --endpoints, and repeat the command".to_owned(),
                };
                (Reason::Unreachable, text.clone(), NOTHING, Some(correct))
            }
            Self::NoSuchMember { typed, members } => {
                let message = format!("the cluster has no member `{}`; its members are {members}", printable(typed));
                (Reason::NoSuchMember, message, NOTHING, with("status"))
            }
            Self::StateDirLocked(text) => (Reason::StateDirLocked, text.clone(), NOTHING, with("status")),
            Self::StateDir(text) => (Reason::StateDir, text.clone(), NOTHING, again),
            Self::JournalDamaged { text, journal } => {
                let path = journal.to_string_lossy();
                let aside = format!("mv {} {}", typed(&path), typed(&format!("{path}.damaged")));
                let message = format!("{text}; put it aside, and the same command goes on from what it finds");
                (Reason::JournalDamaged, message, NOTHING, Some(aside))
            }
            Self::JournalNewer(text) => (Reason::NewerAgent, text.clone(), NOTHING, None),
            Self::OtherCluster(text) => (Reason::OtherCluster, text.clone(), NOTHING, with("status")),
            Self::Unreachable(text) => {
                (Reason::Unreachable, text.clone(), NOTHING, Some(to_be_answered(verb, playbook)))
            }
            Self::Credentials(text) => (Reason::Credentials, text.clone(), NOTHING, again),
            Self::AuthRefused(text) => (Reason::AuthRefused, text.clone(), NOTHING, again),
            Self::NotRoot { user } => {
                let message = format!(
                    "user `{}` does not have the role root, which this needs of etcd: agent run always, and in some \
                     releases whoever looks",
                    printable(user)
                );
                (Reason::NotRoot, message, NOTHING, Some(grants::COMMAND.into()))
            }
            Self::KeysForbidden { user } => {
                let message = format!(
                    "user `{}` may not read the shared keys, so it is not known whether a run stands: it wants the \
                     role root, or one with `read` on /baton/",
                    printable(user)
                );
                (Reason::NotRoot, message, NOTHING, Some(grants::COMMAND.into()))
            }
            Self::Denied(text) => {
                let message = format!("the cluster does not let this user do it: {text}");
                (Reason::NotRoot, message, NOTHING, Some(grants::COMMAND.into()))
            }
            Self::NewerAgent { key, host } => {
                let host = host.as_deref().map_or_else(String::new, |host| format!(" on {}", printable(host)));
                let message = format!("a newer agent{host} wrote the key `{}`", printable(key));
                (Reason::NewerAgent, message, NOTHING, None)
            }
            Self::KeysDamaged(text) => (Reason::KeysDamaged, text.clone(), NOTHING, with("keys")),
            Self::KeysTooLarge(text) => (Reason::KeysTooLarge, text.clone(), NOTHING, with("keys")),
            Self::NothingToAbandon { member } => {
                let message = format!("no step of {member} stands");
                (Reason::NothingToAbandon, message, NOTHING, with("status"))
            }
            Self::AgentAtWork { member, host } => {
                let message = format!("the agent on {} is at work, and may be on {member}", printable(host));
                let left = "nothing was touched; end that agent first, or with --yes two members may be down at once";
                (Reason::AgentAtWork, message, left, with("status"))
            }
            Self::NotConfirmed => (Reason::Declined, "the answer was not yes".into(), NOTHING, with("status")),
            Self::StepLockChanged { member } => {
                let message = format!("the step of {member} has ended or changed meanwhile");
                (Reason::StepLockChanged, message, NOTHING, with("status"))
            }
            Self::NoAnswer(text) => (Reason::NoAnswer, format!("the cluster did not answer: {text}"), "", again),
            Self::NoQuorum(text) => (Reason::NoQuorum, text.clone(), "", again),
            Self::NoGates => {
                let message = "no member that answers has cluster feature gates, as no release of etcd does: the feature is \
                               neither on nor off";
                (Reason::NoGates, message.into(), NOTHING, None)
            }
            Self::Interrupted => {
                (Reason::Interrupted, "a signal asked for an end before anything was begun".into(), NOTHING, again)
            }
            Self::Declined { .. } => {
                (Reason::Declined, "the answer was not yes".into(), "no member was taken down or started", again)
            }
            Self::Unprepared(text) => (Reason::Unprepared, text.clone(), NOTHING, again),
            Self::System(text) => (Reason::System, text.clone(), NOTHING, again),
            Self::Removed { name, member, by, lock } => {
                let message = format!(
                    "{member} was removed from the cluster in the middle of its step, as {by} say, so it is not started \
                     again; keep its data until `etcdctl member list` through another member shows that it is gone; then \
                     `etcdctl member add {}` has it back, with a new data directory",
                    typed(name)
                );
                (Reason::StepFailed, message, step_over(*lock), with("status"))
            }
            Self::KnownHazard { name, id, shown } => {
                let (found, _) = hazard::known(id, &printable(&format!("{name}{shown}")));
                (Reason::Hazard, found, NOTHING, Some(hazard::explained(id)))
            }
            Self::DataGone { name, lock } => {
                let message = format!(
                    "there is no data of {name} where it is to start: it is gone, or its log, or their disk is not mounted, or another folder \
                     is named than it lies in; a member does not begin anew"
                );
                (Reason::DataGone, message, lock.map_or("", step_over), with("status"))
            }
            Self::Alone { name, others } => {
                let message = format!(
                    "{name} is a cluster of its own now: it lists no other member, and {} were members a moment ago. So it is where etcd is \
                     started with `--force-new-cluster`, or its data was exchanged. Start nothing of the others: what they know that it does \
                     not is on their disks alone",
                    others.join(", ")
                );
                let left = "keep the data of every host; take what makes it so out of its start; then `agent restore` makes one cluster \
                            of the newest data, or `kind: Replace` brings the others back to this member, one by one";
                (Reason::Alone, message, left, with("status"))
            }
            Self::Restoring { from, words } => {
                let message = format!(
                    "a restore from {} is in hand on this host: a member of it may be down, or have its new data; where none has, or where \
                     it is lost, --give-up behind the same command ends it",
                    from.display()
                );
                let next = playbook.map(|path| format!("agent restore {}{words}", typed(path)));
                (Reason::Restoring, message, NOTHING, next)
            }
            Self::Serves(text) => (Reason::ClusterServes, text.clone(), NOTHING, with("status")),
            Self::BadBackup(text) => (Reason::BadBackup, text.clone(), NOTHING, None),
            Self::NotRestored(text) => {
                let left = "its old data is where it was, or was put aside beside it; nothing was deleted";
                (Reason::NotRestored, text.clone(), left, again)
            }
            Self::AfterRestore { why, left } => {
                return Stop { left: printable(left).to_string(), ..why.stop(verb, playbook, true) };
            }
            Self::LeftBeside => {
                let left = "no member was stopped; new data may lie beside the old, and the same command, or the next one, clears it";
                (Reason::InterruptedAtOnce, "ended at once by a signal".into(), left, again)
            }
            Self::InterruptedAtOnce { member: None } if verb == "restore" => {
                let left = "members of this host may be down; the same command goes on";
                (Reason::InterruptedAtOnce, "ended at once by a signal".into(), left, again)
            }
            Self::InterruptedAtOnce { member: None } => {
                (Reason::InterruptedAtOnce, "ended at once by a signal".into(), "no step was in hand", again)
            }
            Self::InterruptedAtOnce { member: Some((id, name)) } => {
                let message = format!("ended at once by a signal, in the middle of the step of {name} ({id})");
                let left = "that member may be down; the same command brings it up and goes on";
                (Reason::InterruptedAtOnce, message, left, again)
            }
        };
        // Only these two have lines of their own; nothing that others wrote may begin one.
        let message = match self {
            Self::Usage(_) | Self::Playbook(_) => message,
            _ => printable(&message).to_string(),
        };
        let left = if left == NOTHING && touched { "" } else { left };
        let stop = Stop { exit: reason.exit().code(touched), reason, message, left: left.into(), next, cluster: None };
        match self {
            Self::Declined { down } => stop.with_down(down, &[]),
            Self::KnownHazard { name, id, .. } => stop.leaving(&hazard::known(id, name).1),
            Self::DataGone { name, .. } => {
                let back = back_by_itself(&printable(name));
                stop.leaving(&format!("where it is there after all, correct what names it; else {back}"))
            }
            _ => stop,
        }
    }
}

/// The same command alone would end the same way, and so would any other that looks.
fn to_be_answered(verb: &str, playbook: Option<&str>) -> String {
    match playbook {
        Some(path) => {
            format!("start the members, or correct cluster.endpoints in {}, then: agent {verb} {0}", typed(path))
        }
        None => "start the members, or correct --endpoints, and repeat the command".to_owned(),
    }
}

const NOTHING: &str = "nothing was touched";

const ONLY_STARTED: &str = "no member was taken down by this command; what was down was started";

impl Stop {
    /// The same end of a command that has started members before it.
    pub fn after_a_start(self) -> Self {
        let left = if self.left == NOTHING { ONLY_STARTED.to_owned() } else { self.left };
        Self { left, ..self }
    }

    /// The same end beside members of this host that do not run, and such as could not be looked at: whoever reads that
    /// nothing was touched would take them to be well.
    pub fn with_down(self, down: &[String], unclear: &[String]) -> Self {
        let told = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what}: {}", printable(&names.join(", "))))
        };
        let mut parts: Vec<_> =
            told("not running", down).into_iter().chain(told("not known whether they run", unclear)).collect();
        if parts.is_empty() {
            return self;
        }
        let left = if self.left == NOTHING { "no member was taken down by this command" } else { &self.left };
        if !left.is_empty() {
            parts.insert(0, left.into());
        }
        Self { left: parts.join("; "), ..self }
    }
}

fn step_over(lock: LockLeft) -> &'static str {
    match lock {
        LockLeft::Perhaps => "its step lock, if it stands, is deleted by the next run on this host",
        LockLeft::Gone => "its step is over, and its step lock is gone",
    }
}
