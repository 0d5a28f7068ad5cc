//! The question before a run that a person types at a terminal: the plan, then y or N.
//!
//! Nothing is held meanwhile, neither lock nor lease nor baton, and no member of this host is down by our hand: what an
//! earlier run left in the middle goes on unasked, and what is down is started first (I-10). Scripts are never asked.

use std::io::{self, IsTerminal, Write};

use super::{
    plan::{Foreseen, foresee},
    run::trouble_of_setup,
};
use crate::{
    cli::{Output, Rollout},
    execute::{
        identity::host_name,
        inspect::{Standing, standing},
        interrupt::Interrupt,
        setup::{self, Options},
    },
    plan::Verb,
    playbook::Playbook,
    report::{Reporter, trouble::Trouble},
};

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
    let interrupt = Interrupt::install().map_err(|error| Trouble::System(format!("no signals: {error}")))?;
    match standing(playbook).await {
        Standing::InHand => return Ok(()),
        Standing::Down => mend(playbook, verb, typed).await?,
        Standing::Up => {}
    }
    // Signals are taken over for good, so each wait from here on must heed them.
    let Foreseen { text, refused, takes_down } = tokio::select! {
        foreseen = foresee(playbook, &typed.playbook, verb, replace) => foreseen?,
        () = interrupt.asked(1) => return Err(Trouble::Interrupted),
    };
    if !takes_down {
        return Ok(());
    }
    let question = match refused {
        false => "Go on as planned?",
        true => "As things stand it is refused. Try all the same?",
    };
    print(&format!("{text}\n{question} [y/N] "));
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        // What cannot be read is no yes.
        io::stdin().read_line(&mut line).map(|_| line).unwrap_or_default()
    });
    tokio::select! {
        answer = answer => match answer.unwrap_or_default().trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Trouble::Declined),
        },
        () = interrupt.asked(1) => {
            print("\n");
            Err(Trouble::Interrupted)
        }
    }
}

/// Somebody who sees what is printed and can type. A command in the background of a terminal would only be stopped by
/// the terminal when it reads.
fn is_person() -> bool {
    let is_in_front = || rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
    io::stdin().is_terminal() && io::stdout().is_terminal() && is_in_front()
}

/// Starts this host's members that are down, as the run itself would do first.
async fn mend(playbook: &Playbook, verb: Verb, typed: &Rollout) -> Result<(), Trouble> {
    // Line by line: a display would stand where the plan is to be printed.
    let mut reporter = Reporter::open(Output::Json, typed.events.as_deref(), host_name())?;
    let options = Options { verb, expect_agents: typed.expect_agents };
    let mended = match setup::set_up(playbook.clone(), options, &mut reporter).await {
        Ok(mut execution) => {
            execution.bring_up().await;
            Ok(())
        }
        Err(error) => Err(trouble_of_setup(error)),
    };
    reporter.close();
    mended
}

/// What cannot be written is not answered with yes.
fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
}
