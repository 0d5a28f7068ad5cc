//! `agent`: argv in, exit code out.

use std::process::ExitCode;

use agent::{
    command::run::{Typed, run},
    host::launcher,
    plan::Verb,
    playbook::Playbook,
    report::happening::Reporter,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let verb = arguments.first().map(String::as_str);
    if verb == Some(launcher::SUBCOMMAND) {
        return launcher::main(arguments.get(1).map(String::as_str));
    }
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let playbook = match Playbook::load(std::path::Path::new(&arguments[1])) {
        Ok(p) => p,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let verb = match verb {
        Some("rollback") => Verb::Rollback,
        Some("finalize") => Verb::Finalize,
        Some("resume") => Verb::Resume,
        _ => Verb::Run,
    };
    let has = |flag: &str| arguments.iter().any(|a| a == flag);
    let typed = Typed {
        verb,
        path: arguments[1].clone(),
        expect_agents: None,
        require_complete: has("--require-complete"),
        replace: has("--replace"),
    };
    let (stop, _) = runtime.block_on(run(playbook, &typed, Reporter));
    println!("{}", serde_json::to_string(&stop).unwrap());
    ExitCode::from(stop.exit)
}
