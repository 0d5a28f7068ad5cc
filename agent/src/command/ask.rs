//! The question before a run that a person types at a terminal: the plan, then y or N.
//!
//! Nothing is held meanwhile, neither lock nor lease nor baton, and nothing is started: a person may have stopped a
//! member on purpose, so its start is a line of the plan. What an earlier run left in the middle goes on unasked: its
//! journal says that it is down by our hand (I-10). Scripts are never asked.

use std::{
    future::Future,
    io::{self, IsTerminal, Write},
};

use super::{
    plan::{Foreseen, foresee},
    run::trouble_of_setup,
};
use crate::{
    cli::{Output, Rollout},
    event::trouble::Trouble,
    execute::{bring_up, identity::host_name, inspect::host_state, interrupt::Interrupt},
    plan::Verb,
    playbook::Playbook,
    report::{Reporter, names::printable, shown::forecast},
    visible,
};

enum Question {
    Run(String),
    /// The start of what is down, and no more: what comes then cannot be planned before.
    Start(String),
}

/// Shows the plan and asks, where there is a person to answer and something to ask.
///
/// # Errors
/// The answer was not yes, or the plan cannot be made.
pub async fn ask(
    playbook: &Playbook,
    verb: Verb,
    typed: &Rollout,
    replace: bool,
    output: Output,
) -> Result<(), Trouble> {
    if typed.yes || output == Output::Json || !is_person() {
        return Ok(());
    }
    let interrupt = Interrupt::install().map_err(no_signals)?;
    let mut here = unless_interrupted(&interrupt, host_state(playbook)).await?;
    if here.is_in_hand && here.down.is_empty() {
        return Ok(());
    }
    if here.is_in_hand {
        let started = unless_interrupted(&interrupt, bring_up::start_in_hand(playbook)).await?;
        if let Some((name, warnings)) = started.map_err(trouble_of_setup)? {
            warnings.iter().for_each(|warning| print(&format!("warning: {}\n", printable(warning))));
            print(&format!("{name}  was down in the middle of a step, and was started\n"));
        }
    }
    loop {
        let foreseen = unless_interrupted(&interrupt, foresee(playbook, &typed.playbook, verb, replace)).await?;
        let Some(question) = question(foreseen, &here.down)? else { return Ok(()) };
        let (Question::Run(text) | Question::Start(text)) = &question;
        if !is_yes(text, &interrupt).await? {
            return Err(Trouble::Declined { down: here.down });
        }
        let Question::Start(_) = question else { return Ok(()) };
        unless_interrupted(&interrupt, start(playbook, typed)).await??;
        here = unless_interrupted(&interrupt, host_state(playbook)).await?;
    }
}

/// What is to be asked, if anything; `down` are this host's members that do not run.
fn question(foreseen: Result<Foreseen, Trouble>, down: &[String]) -> Result<Option<Question>, Trouble> {
    let start = |text: &str| Question::Start(format!("{text}\nStart {}, and plan again?", down.join(", ")));
    Ok(Some(match foreseen {
        Ok(Foreseen { takes_down: false, starts: false, .. }) => return Ok(None),
        Ok(Foreseen { text, refused: true, starts: true, .. }) => start(&text),
        Ok(Foreseen { text, refused: true, .. }) => {
            Question::Run(format!("{text}\nAs things stand it is refused. Try all the same?"))
        }
        Ok(Foreseen { text, .. }) => Question::Run(format!("{text}\nGo on as planned?")),
        Err(Trouble::Unreachable(why)) if !down.is_empty() => {
            start(&format!("{}\nwhat comes then cannot be told: {why}\n", forecast::starts(down)))
        }
        Err(trouble) => return Err(trouble),
    }))
}

/// Signals are taken over for good, so each wait must heed them.
async fn unless_interrupted<T>(interrupt: &Interrupt, work: impl Future<Output = T>) -> Result<T, Trouble> {
    tokio::select! {
        done = work => Ok(done),
        () = interrupt.asked(1) => Err(Trouble::Interrupted),
    }
}

pub(super) fn no_signals(error: io::Error) -> Trouble {
    Trouble::System(format!("no signals: {error}"))
}

/// Prints a question, and reads the answer. What cannot be read is no yes.
///
/// # Errors
/// A signal came instead.
pub(super) async fn is_yes(question: &str, interrupt: &Interrupt) -> Result<bool, Trouble> {
    print(&format!("{question} [y/N] "));
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line).unwrap_or_default()
    });
    tokio::select! {
        answer = answer => Ok(matches!(answer.unwrap_or_default().trim().to_lowercase().as_str(), "y" | "yes")),
        () = interrupt.asked(1) => {
            print("\n");
            Err(Trouble::Interrupted)
        }
    }
}

/// Somebody who sees what is printed and can type. A command in the background of a terminal would only be stopped by
/// the terminal when it reads.
pub(super) fn is_person() -> bool {
    let is_in_front = || rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
    io::stdin().is_terminal() && io::stdout().is_terminal() && is_in_front()
}

/// Starts this host's members that are down, and no more: the run, which is asked for next, is set up once.
async fn start(playbook: &Playbook, typed: &Rollout) -> Result<(), Trouble> {
    // Line by line: a display would stand where the plan is to be printed.
    let mut reporter = Reporter::open(Output::Json, typed.events.as_deref(), host_name())?;
    let started = bring_up::start_down(playbook, &mut reporter).await;
    reporter.close();
    started.map_err(trouble_of_setup)
}

/// What cannot be written is not answered with yes.
fn print(text: &str) {
    let _ = io::stdout().write_all(visible::lines(text).as_bytes()).and_then(|()| io::stdout().flush());
}
