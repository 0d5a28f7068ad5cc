//! `agent run`, `rollback`, `finalize` and `resume`: one way through all rooms, with different verbs.

use proto::MemberId;

use crate::{
    execute::{
        Abort, Ended,
        setup::{self, Options, SetupError},
    },
    observe::view::ClusterView,
    plan::Verb,
    playbook::Playbook,
    report::{
        happening::Reporter,
        names::Names,
        stop::{self, Context, Stop},
        trouble::{Trouble, with_causes},
    },
    rollout::{act::Ending, keys::Keys},
};

/// What was typed.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The verb.
    pub verb: Verb,
    /// The playbook's path, as typed.
    pub path: String,
    /// `--expect-agents`
    pub expect_agents: Option<usize>,
    /// `--require-complete`
    pub require_complete: bool,
    /// `--replace`
    pub replace: bool,
}

/// What a run knew at its end, for the result.
#[derive(Debug)]
pub struct Account {
    /// The last view.
    pub view: Option<ClusterView>,
    /// The last keys.
    pub keys: Option<Keys>,
    /// Who is called what.
    pub names: Names,
    /// Where all of it was told.
    pub reporter: Reporter,
}

/// Carries a playbook out.
pub async fn run(playbook: Playbook, typed: &Typed, reporter: Reporter) -> (Stop, Option<Account>) {
    let options = Options { verb: typed.verb, expect_agents: typed.expect_agents };
    let mut execution = match setup::set_up(playbook, options, reporter).await {
        Ok(execution) => execution,
        Err(error) => return (told(&trouble_of_setup(error), typed, false), None),
    };
    if typed.replace {
        if let Err(why) = execution.replace().await {
            return (told(&Trouble::Unprepared(format!("the run is not replaced: {why}")), typed, false), None);
        }
    }
    let intent = execution.me.intent.clone();
    let ended = execution.run().await;
    let mut names = ended.view.as_ref().map(Names::of).unwrap_or_default();
    if let Some(keys) = &ended.keys {
        names.learn_hosts(keys);
    }
    let Ended { ending, touched, view, trouble, in_hand, keys, reporter } = ended;
    let context = Context {
        names: &names,
        view: view.as_ref(),
        playbook: &typed.path,
        verb: typed.verb,
        change: Some(&intent.change),
        touched,
        require_complete: typed.require_complete,
    };
    let stop = match (ending, trouble) {
        (Ok(Ending::Unprepared(_)), Some(trouble)) => told(&trouble, typed, touched),
        (Ok(ending), _) => stop::of(&ending, &context),
        (Err(abort), _) => told(&trouble_of_abort(abort, in_hand, &names), typed, touched),
    };
    (stop, Some(Account { view, keys, names, reporter }))
}

fn told(trouble: &Trouble, typed: &Typed, touched: bool) -> Stop {
    let verb = match typed.verb {
        Verb::Run => "run",
        Verb::Rollback => "rollback",
        Verb::Finalize => "finalize",
        Verb::Resume => "resume",
    };
    trouble.stop(verb, Some(&typed.path), touched)
}

fn trouble_of_abort(abort: Abort, in_hand: Option<MemberId>, names: &Names) -> Trouble {
    match abort {
        Abort::Journal(error) => Trouble::System(format!("the journal cannot be written: {}", with_causes(&error))),
        Abort::Keys(error) => error.into(),
        Abort::Refused(reason) => Trouble::AuthRefused(format!("the shared keys cannot be written: {reason}")),
        Abort::AtOnce => Trouble::InterruptedAtOnce { member: in_hand.map(|member| (member, names.short(member))) },
    }
}

fn trouble_of_setup(error: SetupError) -> Trouble {
    use crate::{host::state_dir::StateDirError, journal::file::JournalError};
    match error {
        SetupError::StateDir(error @ StateDirError::Locked { .. }) => Trouble::StateDirLocked(with_causes(&error)),
        SetupError::StateDir(error) => Trouble::StateDir(with_causes(&error)),
        SetupError::Journal(error @ JournalError::OtherCluster { .. }) => Trouble::OtherCluster(with_causes(&error)),
        SetupError::Journal(error) => Trouble::JournalDamaged(with_causes(&error)),
        SetupError::Illegal(error) => Trouble::JournalDamaged(with_causes(&error)),
        SetupError::Observe(error) => error.into(),
        SetupError::NoSuchMember { name, known } => Trouble::NoSuchMember { typed: name, members: known.join(", ") },
        SetupError::Node { name, why } => Trouble::Unprepared(format!("{name}: {why}")),
        SetupError::Own(error) => Trouble::System(with_causes(&error)),
    }
}
