//! An agent at work inside a host.

use std::{
    fs,
    io::{self, Read},
    os::unix::process::ExitStatusExt,
    process::{Child, Stdio},
    thread::{self, JoinHandle},
};

use rustix::process::Signal;
use tests::{ended::Ended, machine::Host, process::Process, wait};

use crate::fleet::LIMIT;

/// An agent; killed with this value.
pub struct Run {
    command: String,
    child: Child,
    output: Option<[JoinHandle<String>; 2]>,
}

impl Run {
    /// Starts a command that prints an agent's result.
    pub fn start(host: &Host, argv: &[&str]) -> Self {
        Self::begin(host, &[argv, &["--output", "json"]].concat())
    }

    /// The same, word for word.
    pub fn begin(host: &Host, argv: &[&str]) -> Self {
        let mut command = host.command(argv).expect("a host that is up");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let output = [read(child.stdout.take()), read(child.stderr.take())];
        Self { command: format!("{}: {}", host.name, argv.join(" ")), child, output: Some(output) }
    }

    /// Sends the agent itself a signal, and not whoever entered the host for it; as soon as there is one.
    pub fn signal(&self, signal: Signal) {
        let sent = wait::until_blocking(&format!("{} to begin", self.command), wait::GENEROUS, || match self.agent() {
            Ok(Some(agent)) => agent.signal(signal).map_err(|error| error.to_string()),
            Ok(None) => Err("it is not there yet".into()),
            Err(_) => Ok(()),
        });
        sent.expect("a signal that is sent");
    }

    /// An error when it has ended.
    fn agent(&self) -> io::Result<Option<Process>> {
        let pid = self.child.id();
        if Process::open(pid as i32).is_ok_and(|entered| !entered.is_alive()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        children.split_whitespace().next().and_then(|pid| pid.parse().ok()).map(Process::open).transpose()
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> Ended {
        let ended = wait::until(&self.command, LIMIT, || {
            let status = self.child.try_wait().map_err(|error| error.to_string());
            std::future::ready(status.and_then(|status| status.ok_or_else(|| "it runs".into())))
        });
        let status = ended.await.expect("its end");
        let output = self.output.take().into_iter().flatten().map(|reader| reader.join().unwrap_or_default());
        let [stdout, stderr] = output.collect::<Vec<_>>().try_into().unwrap_or_default();
        Ended {
            command: self.command.clone(),
            exit: status.code(),
            signal: status.signal(),
            result: serde_json::from_str(&stdout).ok(),
            stderr,
            events: Vec::new(),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits for the ends of agents that were started at once.
pub async fn all_end(runs: impl IntoIterator<Item = Run>) -> Vec<Ended> {
    let mut ended = Vec::new();
    for run in Vec::from_iter(runs) {
        ended.push(run.ended().await);
    }
    ended
}

/// Read as it comes: a pipe that is full would hold the agent up.
fn read(from: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut from) = from {
            let _ = from.read_to_string(&mut text);
        }
        text
    })
}
