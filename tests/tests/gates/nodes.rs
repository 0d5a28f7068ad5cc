//! Three members of the bundled node, each on a host of its own as far as agents know.
//!
//! All that starts processes here.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use proto::{etcdserverpb::maintenance_client::MaintenanceClient, gates::feature_gate_status};
use rustix::process::Signal;
use serde_json::Value;
use tests::{
    agent::Agent,
    ended::Ended,
    ports::Ports,
    process::{Process, kill_all_under},
    releases,
    system::System,
    wait::{self, GENEROUS},
};
use tonic::transport::Endpoint;

/// The feature that these tests are about.
/// The row of the gate that these tests are about, of a list of features.
pub fn row(features: &serde_json::Value) -> &serde_json::Value {
    let rows = features.as_array().expect("features");
    rows.iter().find(|row| row["name"] == GATE).unwrap_or(&serde_json::Value::Null)
}

pub const GATE: &str = "ClusterLeaseCheckpoint";

/// Three members that run; they end with this value.
pub struct Nodes {
    home: tempfile::TempDir,
    ports: Ports,
    /// By its file a process is not found before it runs that.
    started: Vec<Process>,
}

/// A release of the node.
pub fn executable(minor: &str) -> PathBuf {
    releases::get(System::Node, minor).unwrap_or_else(|error| panic!("node {minor}: {error}")).executable()
}

impl Nodes {
    /// Starts three of this release that want the gate so, and waits until each answers and holds its cluster version.
    pub async fn start(minor: &str, wants: [bool; 3]) -> Self {
        // Whoever came first has installed the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let home = tempfile::tempdir().expect("a folder");
        let mut nodes = Self { home, ports: Ports::lease(6).expect("six ports"), started: Vec::new() };
        for (at, wish) in wants.into_iter().enumerate() {
            let place = nodes.dir(at).join("bin").join("first");
            fs::create_dir_all(&place).expect("a folder");
            tests::process::copy_program(&executable(minor), &place.join("node")).expect("a copy");
            symlink(place.join("node"), nodes.binary(at)).expect("a link");
            nodes.configure(at, wish);
            nodes.start_one(at);
        }
        for at in 0..3 {
            nodes.holds(at, minor).await;
        }
        nodes
    }

    fn start_one(&mut self, at: usize) {
        let argv = [self.binary(at).display().to_string(), self.flag(at)];
        self.started.push(Process::start(&argv, &self.dir(at).join("log")).expect("started"));
    }

    fn flag(&self, at: usize) -> String {
        format!("--config-file={}", self.dir(at).join("node.yaml").display())
    }

    /// Writes a member's configuration, for its next start.
    pub fn configure(&self, at: usize, wants: bool) {
        let peer = |at: usize| format!("http://127.0.0.1:{}", self.ports.numbers[3 + at]);
        let cluster: Vec<_> = (0..3).map(|at| format!("m{}={}", at + 1, peer(at))).collect();
        let (name, data, url, peer) = (at + 1, self.dir(at).join("data"), self.url(at), peer(at));
        let text = format!(
            "name: m{name}\ndata-dir: {}\nlisten-client-urls: {url}\nadvertise-client-urls: {url}\n\
             listen-peer-urls: {peer}\ninitial-advertise-peer-urls: {peer}\ninitial-cluster: {}\n\
             cluster-feature-gates: {GATE}={wants}\n",
            data.display(),
            cluster.join(","),
        );
        fs::write(self.dir(at).join("node.yaml"), text).expect("written");
    }

    /// Changes a word of a member's configuration, for its next start.
    pub fn change(&self, at: usize, from: &str, to: &str) {
        let path = self.dir(at).join("node.yaml");
        let text = fs::read_to_string(&path).expect("readable");
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).expect("written");
    }

    /// Ends a member's process, which stays away.
    pub fn end(&self, at: usize) {
        for process in Process::under(&self.dir(at)) {
            process.signal(Signal::KILL).expect("signalled");
            process.ended(GENEROUS).expect("ended");
        }
    }

    async fn holds(&self, at: usize, minor: &str) {
        wait::until(&format!("m{} to hold cluster version {minor}", at + 1), GENEROUS, async || {
            let version = async { reqwest::get(format!("{}/version", self.url(at))).await?.text().await };
            let version = version.await.map_err(|error| error.to_string())?;
            let is_held = version.contains(&format!("\"etcdcluster\":\"{minor}.0\""));
            if is_held { Ok(()) } else { Err(version) }
        })
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", self.logs()));
    }

    /// What every member said, and whether it runs.
    fn logs(&self) -> String {
        let of = |at| {
            let said = fs::read_to_string(self.dir(at).join("log")).unwrap_or_else(|error| error.to_string());
            format!("m{}, {} processes:\n{said}", at + 1, Process::under(&self.dir(at)).len())
        };
        (0..3).map(of).collect()
    }

    /// Ends a member's process and starts it once more, by its configuration as it is now.
    pub async fn restart(&mut self, at: usize, minor: &str) {
        for process in Process::under(&self.dir(at)) {
            process.signal(Signal::TERM).expect("signalled");
            process.ended(GENEROUS).expect("ended");
        }
        self.start_one(at);
        self.holds(at, minor).await;
    }

    /// Where a member serves clients.
    pub fn url(&self, at: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports.numbers[at])
    }

    fn dir(&self, at: usize) -> PathBuf {
        self.home.path().join(format!("m{}", at + 1))
    }

    fn binary(&self, at: usize) -> PathBuf {
        self.dir(at).join("bin").join("node")
    }

    /// Writes each host's playbook: what is to be done, and what else it says at its end.
    pub fn playbooks(&self, what: &str, more: &str) -> [PathBuf; 3] {
        [0, 1, 2].map(|at| {
            let path = self.dir(at).join("playbook.yaml");
            let endpoints: Vec<_> = (0..3).map(|at| self.url(at)).collect();
            let dir = self.dir(at).display().to_string();
            let text = format!(
                "apiVersion: baton/v1\n{what}\ncluster: {{ name: local, endpoints: [{}] }}\nstate_dir: {dir}/state\n\
                 nodes:\n  - name: m{}\n    binary: {dir}/bin/node\n    runtime: {{ kind: process, \
                 argv: [\"{{{{binary}}}}\", \"{}\"], log: {dir}/log }}\n{more}\n",
                endpoints.join(", "),
                at + 1,
                self.flag(at),
            );
            fs::write(&path, text).expect("written");
            path
        })
    }

    /// Runs the agents of all hosts at once to their end.
    pub async fn run(&self, verb: &str, playbooks: &[PathBuf; 3]) -> Vec<Ended> {
        let start = |path: &Path| Agent::start(verb, path, &[]).expect("an agent");
        let agents: Vec<_> = playbooks.iter().map(|path| start(path)).collect();
        let mut ended = Vec::new();
        for agent in agents {
            ended.push(agent.ended(GENEROUS).await.expect("ended"));
        }
        ended
    }

    /// Runs one agent to its end.
    pub async fn run_one(&self, verb: &str, playbook: &Path) -> Ended {
        Agent::start(verb, playbook, &[]).expect("an agent").ended(GENEROUS).await.expect("ended")
    }

    /// Runs one agent to its end, with more words on its command line.
    pub async fn run_with(&self, verb: &str, playbook: &Path, more: &[&str]) -> Ended {
        Agent::start(verb, playbook, more).expect("an agent").ended(GENEROUS).await.expect("ended")
    }

    /// What each member itself says of the gate.
    pub async fn is_on(&self) -> [bool; 3] {
        let mut found = [false; 3];
        for (at, is_on) in found.iter_mut().enumerate() {
            let channel = Endpoint::try_from(self.url(at)).expect("an address").connect().await.expect("connected");
            let mut member = MaintenanceClient::new(channel);
            *is_on = match feature_gate_status(&mut member, [GATE]).await {
                Ok(features) => features[GATE],
                Err(status) if status.code() == tonic::Code::Unimplemented => false,
                Err(status) => panic!("m{}: {status}", at + 1),
            };
        }
        found
    }

    /// What the agent wrote of the gates while they settled, in its events.
    pub fn told(&self, at: usize) -> Vec<Value> {
        let folders = (1..).map(|number| self.dir(at).join(format!("agent-{number}"))).take_while(|path| path.exists());
        let text: String = folders.filter_map(|path| fs::read_to_string(path.join("events")).ok()).collect();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter(|line| !line["gates"].is_null() && line["event"] != "seen").collect()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for process in &self.started {
            // Nothing to one that is gone.
            let _ = process.signal(Signal::KILL);
        }
        kill_all_under(self.home.path());
    }
}
