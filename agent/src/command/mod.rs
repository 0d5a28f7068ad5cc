//! The verbs: what each does with the rooms behind it. Wiring only; no rule of a rollout is decided here.
//!
//! A verb gives an [`Outcome`] or a [`Trouble`]; here either becomes what is printed, and the exit code.

pub mod abandon;
mod abandon_join;
mod again;
pub mod ask;
mod backup;
mod check;
pub mod companion;
pub mod explain;
mod gates;
mod guard;
mod hazards;
mod hosting;
pub mod init;
mod init_members;
mod init_release;
pub mod keys;
pub mod look;
pub mod manual;
pub mod pause;
mod plan;
pub mod print_role;
mod reach;
pub mod report;
mod restore;
pub mod run;
pub mod status;
mod trusted_playbook;
mod turn;
pub mod validate;
mod verify;
mod watch;

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
};

use nix::sys::signal::SigSet;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::{
    cli::{self, Cli, Form, Output, Verb},
    event::trouble::Trouble,
    report::{
        file::json::{self, Facts},
        live::{colour, text},
        stop::{Reason, Stop},
    },
    visible,
};

#[derive(Clone, Debug)]
pub struct Outcome {
    pub stop: Stop,
    pub facts: Facts,
    /// What is printed for a person; an error's own lines are added to it.
    pub text: String,
}

/// Carries out a command line, and gives its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let cli = match cli::parse(arguments.iter().cloned()) {
        Ok(cli) => cli,
        Err(error) => return misread(&error, &arguments),
    };
    let result = log_to_stderr(&cli.log).and_then(|()| carry_out(&cli));
    result.unwrap_or_else(|trouble| print(&in_trouble(&cli, &arguments, &trouble), cli.output.output()))
}

fn carry_out(cli: &Cli) -> Result<u8, Trouble> {
    let output = cli.output.output();
    if cli.output == Form::Prometheus && !matches!(cli.verb, Verb::Status(_)) {
        return Err(Trouble::Usage("--output prometheus is for agent status alone".into()));
    }
    if cli.output == Form::Osv && !matches!(cli.verb, Verb::Hazards(_)) {
        return Err(Trouble::Usage("--output osv is for agent hazards alone".into()));
    }
    let outcome = match &cli.verb {
        Verb::Validate(typed) => validate::validate(&typed.playbook),
        Verb::Plan(typed) => carried_out(plan::plan(&typed.one.playbook, typed.replace, &typed.accepting)),
        Verb::Status(typed) => carried_out(look(typed, cli.output)),
        Verb::Gates(typed) => carried_out(gates::gates(typed, output)),
        Verb::Verify(cli::Verify::Membership(typed)) => carried_out(verify::membership(typed)),
        Verb::Verify(cli::Verify::Storage(typed)) => carried_out(verify::storage(typed)),
        Verb::Adopt(typed) => carried_out(hosting::adopt(typed)),
        Verb::Drain(typed) => carried_out(hosting::drain(typed)),
        Verb::Hold(typed) => carried_out(hosting::hold(typed)),
        Verb::Abandon(typed) => carried_out(abandon::abandon(typed, output)),
        Verb::Keys(typed) => carried_out(keys::keys(typed, output)),
        Verb::Matrix(typed) => return companion::matrix(cli, typed),
        Verb::Init(typed) if typed.print_role => carried_out(print_role::print_role(typed)),
        Verb::Init(typed) => carried_out(init::init(typed)),
        Verb::Pause(typed) => carried_out(pause::pause(typed)),
        Verb::Backup(typed) => carried_out(backup::backup(typed)),
        Verb::Restore(typed) => carried_out(restore::restore(typed, output)),
        Verb::Check(typed) => carried_out(check::check(typed)),
        Verb::Hazards(typed) => hazards::hazards(typed, cli.output),
        Verb::Report(typed) => report::report(typed),
        Verb::Explain(typed) => explain::explain(typed),
        Verb::Schema => Ok(explain::schema()),
        Verb::Completions(typed) => Ok(manual::completions(typed)),
        Verb::Man => manual::manual(),
        Verb::Run(typed) => return rollout(crate::plan::Verb::Run, &typed.rollout, typed.replace, output),
        Verb::Finalize(typed) => return rollout(crate::plan::Verb::Finalize, typed, false, output),
        Verb::Rollback(typed) => return rollout(crate::plan::Verb::Rollback, typed, false, output),
        Verb::Guard(typed) if typed.hand_over => carried_out(guard::hand_over(typed)),
        Verb::Guard(typed) => return guarded(typed, output),
        Verb::Resume(typed) => return rollout(crate::plan::Verb::Resume, typed, false, output),
    };
    Ok(print(&outcome?, output))
}

/// Neither a terminal that is still read nor an address that answers a byte at a time holds up the end.
fn carried_out(verb: impl Future<Output = Result<Outcome, Trouble>>) -> Result<Outcome, Trouble> {
    let runtime = runtime()?;
    let ended = runtime.block_on(verb);
    runtime.shutdown_background();
    ended
}

/// What was asked for, as a text and under its name in the object.
fn shown(text: String, name: &str, value: serde_json::Value) -> Outcome {
    let (exit, message) = (Reason::Shown.exit().code(false), "printed; nothing was asked or touched".into());
    let stop = Stop { exit, reason: Reason::Shown, message, left: String::new(), next: None, cluster: None };
    let mut facts = Facts::default();
    facts.more.insert(name.into(), value);
    Outcome { stop, facts, text }
}

/// Two threads: what blocks one holds up neither the leases nor the display. Long work that nobody waits for any more,
/// such as an unpacking that was interrupted, does not hold up the end.
fn rollout(verb: crate::plan::Verb, typed: &cli::Rollout, replace: bool, output: Output) -> Result<u8, Trouble> {
    let runtime = several_threads()?;
    let ended = runtime.block_on(run::run(verb, typed, replace, output));
    // Neither a name server that does not answer nor a file that is still read holds up anybody's end.
    runtime.shutdown_background();
    ended
}

fn guarded(typed: &cli::Guard, output: Output) -> Result<u8, Trouble> {
    let runtime = several_threads()?;
    let ended = runtime.block_on(guard::guard(typed, output));
    runtime.shutdown_background();
    ended
}

/// What a verb runs on that takes long.
///
/// # Errors
/// The system has no more threads.
pub fn several_threads() -> Result<tokio::runtime::Runtime, Trouble> {
    built(tokio::runtime::Builder::new_multi_thread().worker_threads(2))
}

fn runtime() -> Result<tokio::runtime::Runtime, Trouble> {
    built(&mut tokio::runtime::Builder::new_current_thread())
}

fn built(builder: &mut tokio::runtime::Builder) -> Result<tokio::runtime::Runtime, Trouble> {
    let built = unblock_signals().and_then(|()| builder.enable_all().build()).and_then(|runtime| {
        hear_of_children(&runtime)?;
        Ok(runtime)
    });
    built.map_err(|error| Trouble::System(format!("no runtime: {error}")))
}

/// Whoever started the agent may have blocked signals, and then none would end it. Before a thread is started, which would
/// have the same mask.
fn unblock_signals() -> io::Result<()> {
    Ok(SigSet::empty().thread_set_mask()?)
}

/// Whoever started the agent may ignore SIGCHLD: then the kernel keeps no child's end, and nobody could tell how one
/// ended (wait(2)). With a handler it does, here and in what the agent starts. One for SIGXFSZ makes a file that may
/// not grow an error of the disk, which is told, and not the agent's end.
fn hear_of_children(runtime: &tokio::runtime::Runtime) -> io::Result<()> {
    let _context = runtime.enter();
    for kind in [SignalKind::child(), SignalKind::from_raw(nix::libc::SIGXFSZ)] {
        let _ = signal(kind)?;
    }
    Ok(())
}

async fn look(typed: &cli::Status, form: Form) -> Result<Outcome, Trouble> {
    if form == Form::Prometheus && typed.watch {
        return Err(Trouble::Usage(
            "--output prometheus shows one look: call it again and again, and leave out --watch".into(),
        ));
    }
    let place = status::place(typed)?;
    match typed.watch {
        true => Ok(watch::watch(&place, form.output()).await),
        false if form == Form::Prometheus => Ok(place.metrics().await),
        false => place.status().await,
    }
}

fn in_trouble(cli: &Cli, arguments: &[OsString], trouble: &Trouble) -> Outcome {
    let path = cli.verb.playbook().map(|path| path.to_string_lossy());
    let stop = trouble.stop(cli.verb.name(), path.as_deref(), false);
    let next = stop.next.map(|next| again::as_typed(next, &cli.verb, arguments));
    Outcome { stop: Stop { next, ..stop }, facts: Facts::default(), text: String::new() }
}

/// Prints the result; what cannot be written changes no exit code.
pub fn print(outcome: &Outcome, output: Output) -> u8 {
    let Outcome { stop, facts, text } = outcome;
    let (out, err) = match output {
        Output::Json => (json::object(stop, facts) + "\n", String::new()),
        // What was asked for has been said: off is no error.
        Output::Text if stop.exit == 0 || stop.reason == Reason::FeatureOff => (shown_text(text), warnings(facts)),
        Output::Text => (shown_text(text), warnings(facts) + &text::end(stop)),
    };
    let written = io::stdout().write_all(out.as_bytes()).and_then(|()| io::stdout().flush());
    if let Err(error) = written {
        tracing::warn!(%error, "stdout cannot be written");
    }
    let _ = io::stderr().write_all(err.as_bytes());
    stop.exit
}

fn warnings(facts: &Facts) -> String {
    facts.warnings.iter().map(|warning| format!("warning: {}\n", visible::line(warning))).collect()
}

fn shown_text(text: &str) -> String {
    visible::lines(text).into_owned()
}

/// For a person at a terminal, in colour.
fn coloured(text: &str) -> String {
    let text = shown_text(text);
    match io::stdout().is_terminal() && colour::is_wanted(|name| std::env::var_os(name)) {
        true => colour::painted(&text),
        false => text,
    }
}

/// A command line that clap did not take: help and version are no mistakes, the rest is exit 2, as an object
/// where one was asked for.
pub fn misread(error: &clap::Error, arguments: &[OsString]) -> u8 {
    if error.exit_code() == 0 || !wants_json(arguments) {
        // A closed stdout changes no exit code.
        let _ = error.print();
        return u8::try_from(error.exit_code()).unwrap_or(2);
    }
    let text = error.to_string();
    let stop = Trouble::Usage(text.trim_start_matches("error: ").trim().to_owned()).stop("", None, false);
    print(&Outcome { stop, facts: Facts::default(), text: String::new() }, Output::Json)
}

fn wants_json(arguments: &[OsString]) -> bool {
    let pairs = arguments.windows(2).any(|pair| pair[0] == "--output" && pair[1] == "json");
    pairs || arguments.iter().any(|argument| argument == "--output=json")
}

/// What `--log` asks for.
///
/// # Errors
/// It is no filter.
pub fn log_to_stderr(filter: &str) -> Result<(), Trouble> {
    let wrong = |error| Trouble::Usage(format!("--log {filter}: {error}"));
    let filter = EnvFilter::try_new(filter).map_err(wrong)?;
    // Its own complaint about a closed stderr would be a panic.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| visible::Log(io::stderr()))
        .with_ansi(false)
        .log_internal_errors(false)
        .init();
    Ok(())
}
