//! `agent run`, `rollback`, `finalize` and `resume`: one way through all rooms, with different verbs.

use std::sync::Arc;

use proto::MemberId;

use super::Outcome;
use crate::{
    cli::Rollout,
    execute::{
        Abort, Ended,
        setup::{self, Options, SetupError},
    },
    plan::{Me, Verb},
    playbook::Playbook,
    report::{
        happening::Reporter,
        json::{Facts, members, versions},
        names::Names,
        stop::{self, Context},
        text,
        trouble::{Trouble, with_causes},
    },
    rollout::act::Ending,
};

/// Carries a playbook out.
///
/// # Errors
/// What kept the rollout machine from starting.
pub async fn run(verb: Verb, typed: &Rollout, replace: bool) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let options = Options { verb, expect_agents: typed.expect_agents };
    let mut execution = setup::set_up(playbook, options, Reporter).await.map_err(trouble_of_setup)?;
    if replace {
        let refused = |why| Trouble::Unprepared(format!("the run is not replaced: {why}"));
        execution.replace().await.map_err(refused)?;
    }
    let me = execution.me.clone();
    let ended = execution.run().await;
    Ok(Account::of(&ended, me).outcome(ended, typed))
}

/// What a run knew at its end.
struct Account {
    names: Names,
    facts: Facts,
    me: Arc<Me>,
}

impl Account {
    fn of(ended: &Ended, me: Arc<Me>) -> Self {
        let mut names = ended.view.as_ref().map(Names::of).unwrap_or_default();
        if let Some(keys) = &ended.keys {
            names.learn_hosts(keys);
        }
        let (from, to) = versions(&me.intent.change);
        let facts = Facts {
            changed: ended.touched,
            run: ended.keys.as_ref().and_then(|keys| keys.run.as_ref()).map(|run| run.value.id),
            from,
            to,
            members: ended.view.as_ref().map(|view| members(view, &names, &me.owns)).unwrap_or_default(),
            ..Facts::default()
        };
        Self { names, facts, me }
    }

    fn outcome(self, ended: Ended, typed: &Rollout) -> Outcome {
        let path = typed.playbook.to_string_lossy();
        let Ended { ending, touched, view, trouble, in_hand, .. } = ended;
        let context = Context {
            names: &self.names,
            view: view.as_ref(),
            playbook: &path,
            verb: self.me.verb,
            change: Some(&self.me.intent.change),
            touched,
            require_complete: typed.require_complete,
        };
        let told = |trouble: &Trouble| trouble.stop(stop::typed(self.me.verb), Some(&path), touched);
        let stop = match (ending, trouble) {
            (Ok(Ending::Unprepared(_)), Some(trouble)) => told(&trouble),
            (Ok(ending), _) => stop::of(&ending, &context),
            (Err(abort), _) => told(&trouble_of_abort(abort, in_hand, &self.names)),
        };
        let text = if stop.exit == 0 { text::end(&stop) } else { String::new() };
        Outcome { stop, facts: self.facts, text }
    }
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
