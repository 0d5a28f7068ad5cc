//! One host of a rollout: its agent is killed again and again, and the same command is started each time.

use std::path::PathBuf;

use rustix::process::Signal;
use tests::{
    Error,
    agent::Agent,
    cluster::Member,
    ended::Ended,
    fault::{Call, Cut, Moment},
    journal::last_entry,
    rollout::LIMIT,
};

use crate::journey::Kill;

/// Why an agent may end though nothing is wrong but that the machine is slower than its patience: members had no time to
/// answer it. Then the same command is for the person who typed it.
const UNANSWERED: [&str; 4] = ["unreachable", "no_leader", "no_answer", "no_quorum"];
/// A newcomer is taken back whose agent was killed as it began: nobody knows what it had on disk. The same command joins anew.
const TAKEN_BACK: &str = "not_joined";
/// How often it is typed for that.
const TRIES: usize = 5;

/// A host with one member.
#[derive(Clone)]
pub struct Host {
    pub name: String,
    /// As in `agent VERB PLAYBOOK MORE`.
    pub verb: &'static str,
    pub more: Vec<String>,
    pub playbook: PathBuf,
    pub journal: PathBuf,
    /// Where strace writes.
    pub trace: PathBuf,
}

/// An agent that was killed.
pub struct Killed {
    pub member: String,
    pub at: Kill,
    /// The last record of its journal.
    pub last: String,
}

impl Host {
    pub fn of(member: &Member, playbook: PathBuf) -> Self {
        let journal = member.state_dir().join("journal");
        let trace = member.dir.join("trace");
        Self { name: member.name.clone(), verb: "run", more: Vec::new(), playbook, journal, trace }
    }

    /// One whose agent runs a command that ends the member's process, whichever that is by then.
    pub fn guarding(member: &Member, playbook: PathBuf) -> Self {
        let script =
            "for one in /proc/[0-9]*; do case $(readlink $one/exe) in \"$0\"/*) kill -TERM ${one#/proc/};; esac; done";
        let folder = member.bin().display().to_string();
        let more = ["--wait", "5m", "--", "/bin/sh", "-c", script, &folder].map(String::from).to_vec();
        Self { verb: "guard", more, ..Self::of(member, playbook) }
    }

    /// One that makes its member anew.
    pub fn restoring(member: &Member, playbook: PathBuf, more: &[&str]) -> Self {
        let more = more.iter().map(ToString::to_string).collect();
        Self { verb: "restore", more, ..Self::of(member, playbook) }
    }

    fn more(&self) -> Vec<&str> {
        self.more.iter().map(String::as_str).collect()
    }

    /// Kills this host's agent at each of these moments, starts the same command again, and lets the last one end; or
    /// the first that ends before its moment comes.
    pub async fn is_killed(&self, kills: &[Kill]) -> Result<(Vec<Killed>, Ended), Error> {
        let mut killed = Vec::new();
        for at in kills {
            let ended = self.run_until(*at).await?;
            match ended.signal {
                Some(signal) if signal == Signal::KILL.as_raw() => {}
                _ if is_to_be_typed_again(&ended) => continue,
                _ => return Ok((killed, ended)),
            }
            killed.push(Killed { member: self.name.clone(), at: *at, last: last_entry(&self.journal) });
        }
        Ok((killed, self.run().await?))
    }

    /// The same command, to its end; again where the cluster did not answer it.
    pub async fn run(&self) -> Result<Ended, Error> {
        for _ in 1..TRIES {
            let ended = Agent::start(self.verb, &self.playbook, &self.more())?.ended(LIMIT).await?;
            if !is_to_be_typed_again(&ended) {
                return Ok(ended);
            }
        }
        Agent::start(self.verb, &self.playbook, &self.more())?.ended(LIMIT).await
    }

    async fn run_until(&self, at: Kill) -> Result<Ended, Error> {
        match at {
            Kill::After(time) => {
                let agent = Agent::start(self.verb, &self.playbook, &self.more())?;
                // The moment is what is wanted here, whatever the agent does in it.
                tokio::time::sleep(time).await;
                if let Ok(process) = agent.process() {
                    process.signal(Signal::KILL)?;
                }
                agent.ended(LIMIT).await
            }
            Kill::AtSync(nth, moment) => self.run_until_sync(nth, moment).await,
        }
    }

    async fn run_until_sync(&self, nth: usize, moment: Moment) -> Result<Ended, Error> {
        let (file, trace) = (self.journal.clone(), self.trace.clone());
        let cut = Cut { file, call: Call::Fdatasync, nth, moment, trace };
        let agent = Agent::start_under(self.verb, &self.playbook, &self.more(), |argv| cut.wrap(&argv))?;
        if let Ok(process) = agent.process() {
            tokio::task::spawn_blocking(move || cut.carry_out(&process, LIMIT)).await??;
        }
        agent.ended(LIMIT).await
    }
}

fn is_to_be_typed_again(ended: &Ended) -> bool {
    UNANSWERED.contains(&ended.reason()) || ended.reason() == TAKEN_BACK
}
