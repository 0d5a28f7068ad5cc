//! One upgrade of a real cluster under watch, whose agents a scenario kills, freezes or starves.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use proto::Release;
use tests::{
    agent::Agent,
    client::Client,
    cluster::{Cluster, Member, Spec},
    ended::Ended,
    etcd::Etcd,
    fault::{Call, Cut, Moment},
    playbook::Upgrade,
    skip::etcd_or_skip,
    witness::{Testimony, Witness},
    workload::Load,
};

/// How long an agent has, on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(240);

/// A cluster under load, and a playbook for each of its members.
pub struct Rollout {
    pub cluster: Cluster,
    pub playbooks: Vec<PathBuf>,
    target: Release,
    witness: Witness,
    began: Instant,
}

/// What the cluster runs before and is to run.
pub struct Change {
    pub from: Etcd,
    pub to: Etcd,
}

impl Change {
    /// The main job: 3.4 to 3.5. `None` is a skip.
    pub fn of_minor() -> Option<Self> {
        Some(Self { from: etcd_or_skip("3.4")?, to: etcd_or_skip("3.5")? })
    }

    /// Another patch, where one cluster can go there and back as often as it takes. `None` is a skip.
    pub fn of_patch() -> Option<Self> {
        Some(Self { from: etcd_or_skip("3.5.1")?, to: etcd_or_skip("3.5")? })
    }
}

impl Rollout {
    /// Three members, clients at work, and playbooks with these lines under `strategy`.
    pub async fn begin(change: &Change, strategy: &[&str]) -> Self {
        Self::begin_on(Spec::new(change.from.clone()), &change.to, strategy).await
    }

    pub async fn begin_on(spec: Spec, to: &Etcd, strategy: &[&str]) -> Self {
        let cluster = Cluster::up(&spec).await.expect("a cluster");
        let playbooks = playbooks(&cluster, to, &to.executable(), strategy);
        let wanted = to.release.cluster_version();
        let witness = Witness::begin(&cluster.layout, &Load::default(), wanted).await.expect("clients at work");
        Self { cluster, playbooks, target: to.release.clone(), witness, began: Instant::now() }
    }

    pub fn member(&self, index: usize) -> &Member {
        &self.cluster.layout.members[index]
    }

    pub fn state_dir(&self, index: usize) -> PathBuf {
        self.member(index).dir.join("baton")
    }

    pub fn journal(&self, index: usize) -> PathBuf {
        self.state_dir(index).join("journal")
    }

    /// Where strace writes what it saw of this host's agent.
    pub fn trace(&self, index: usize) -> PathBuf {
        self.cluster.layout.dir.join(format!("trace-{index}"))
    }

    pub fn client(&self, index: usize) -> Client {
        Client::new(&self.member(index).client_url, &self.cluster.layout.access()).expect("a client")
    }

    pub fn start(&self, index: usize) -> Agent {
        Agent::start("run", &self.playbooks[index], &[]).expect("an agent")
    }

    /// The command, run to its end on this host.
    pub async fn run(&self, index: usize) -> Ended {
        self.start(index).ended(LIMIT).await.expect("an end")
    }

    /// The same command on every host at once, which is to finish the job.
    pub async fn run_everywhere(&self) {
        let agents: Vec<_> = (0..self.playbooks.len()).map(|index| self.start(index)).collect();
        for agent in agents {
            agent.ended(LIMIT).await.expect("an end").must_succeed();
        }
    }

    /// A cut of this host's agent at the nth fsync of its journal.
    pub fn cut(&self, index: usize, nth: usize, moment: Moment) -> Cut {
        let file = self.journal(index);
        Cut { file, call: Call::Fdatasync, nth, moment, trace: self.trace(index) }
    }

    /// Starts this host's agent and kills it there; `None` when it ended unkilled, and well.
    pub async fn kill_at(&self, index: usize, nth: usize, moment: Moment) -> Option<Killed> {
        match self.kill_verb_at("run", index, nth, moment).await {
            Ok(killed) => Some(killed),
            Err(ended) => {
                ended.must_succeed();
                None
            }
        }
    }

    /// The same for any verb; how it ended, when it ended unkilled.
    pub async fn kill_verb_at(&self, verb: &str, index: usize, nth: usize, moment: Moment) -> Result<Killed, Ended> {
        let cut = self.cut(index, nth, moment);
        let agent = Agent::start_under(verb, &self.playbooks[index], &[], |argv| cut.wrap(&argv)).expect("an agent");
        let process = agent.process().expect("it runs");
        let was_cut = tokio::task::spawn_blocking(move || cut.carry_out(&process, LIMIT)).await.expect("no panic");
        let ended = agent.ended(LIMIT).await.expect("an end");
        if !was_cut.expect("cut or ended") {
            return Err(ended);
        }
        assert_eq!(ended.signal, Some(9), "{ended}");
        Ok(Killed { last: last_entry(&self.journal(index)) })
    }

    /// Ends the watch. Every member must run the new release, and nobody may have been told anything that was
    /// not so.
    pub async fn end(self) -> Testimony {
        self.witness.has_settled().await.expect("the cluster version rises");
        for index in 0..self.cluster.layout.members.len() {
            let said = self.client(index).versions().await.expect("an answer").server;
            assert_eq!(said, self.target.to_string(), "{}", self.member(index).name);
        }
        let testimony = self.witness.end().await.expect("a testimony");
        assert_eq!(testimony.lost, []);
        testimony.history.as_ref().expect("linearizable");
        println!("{} writes in {:.1} s", testimony.writes_acked, self.began.elapsed().as_secs_f64());
        testimony
    }

    /// As [`Rollout::end`], where no member but one at a time may ever have been down.
    pub async fn end_one_at_a_time(self) {
        let observed = self.end().await.observed;
        assert!(observed.max_members_down <= 1, "{:?} were down at once: {observed:?}", observed.worst);
    }
}

/// A playbook for each member, with this artifact.
pub fn playbooks(cluster: &Cluster, to: &Etcd, source: &Path, strategy: &[&str]) -> Vec<PathBuf> {
    let mut upgrade = Upgrade { source: source.into(), ..Upgrade::new(&cluster.layout, to) };
    upgrade.strategy.extend(strategy.iter().map(ToString::to_string));
    upgrade.write(&cluster.layout).expect("playbooks")
}

/// An agent that was killed.
#[derive(Debug)]
pub struct Killed {
    /// The last record of its journal, by name.
    pub last: String,
}

/// The name of a journal's last whole entry, behind which a torn one may stand; the header has none.
pub fn last_entry(journal: &Path) -> String {
    let bytes = fs::read(journal).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let record = |line: &str| serde_json::from_str::<serde_json::Value>(line.split_once(' ')?.1).ok();
    let entry = text.lines().rev().find_map(record).unwrap_or_default()["entry"].clone();
    match entry.as_object().and_then(|entry| entry.iter().next()) {
        Some((name, leg)) => leg.as_str().map_or(name.clone(), |leg| format!("{name} {leg}")),
        None => entry.as_str().unwrap_or("nothing").to_owned(),
    }
}
