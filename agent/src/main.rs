//! `agent`: argv in, exit code out.

use std::process::ExitCode;

use agent::{
    execute::setup::{Options, set_up},
    host::launcher,
    plan::Verb,
    playbook::Playbook,
    report::happening::Reporter,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let verb = arguments.next();
    if verb.as_deref() == Some(launcher::SUBCOMMAND) {
        return launcher::main(arguments.next().as_deref());
    }
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let playbook = Playbook::load(std::path::Path::new(&arguments.next().unwrap())).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let verb = match verb.as_deref() {
        Some("rollback") => Verb::Rollback,
        Some("finalize") => Verb::Finalize,
        Some("resume") => Verb::Resume,
        _ => Verb::Run,
    };
    let ended = runtime.block_on(async {
        set_up(playbook, Options { verb, expect_agents: None }, Reporter).await.unwrap().run().await
    });
    println!("{:?}", ended.ending);
    ExitCode::SUCCESS
}
