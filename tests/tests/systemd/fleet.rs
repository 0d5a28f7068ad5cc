//! Three hosts, each with one member that is a service of its systemd, and an agent to be run there.

use std::{path::Path, time::Duration};

use proto::Release;
use tests::{
    client::{Access, Client, Versions},
    cluster::{Layout, Member},
    ended::Ended,
    machine::{Host, Network, hosts_or_skip},
    skip::build_or_skip,
    system::{Build, System},
    wait,
    workload::{Load, Workload},
};

use crate::{
    run::{self, Run},
    watch::Watch,
};

/// How long an agent may take.
pub const LIMIT: Duration = Duration::from_secs(300);
/// The members' unit.
pub const UNIT: &str = "member.service";
/// While this file is there, a unit that was started waits before it runs its member.
pub const HOLD_START: &str = "/var/lib/hold-start";
/// While this file is there, a unit that was stopped waits after its member has ended.
pub const HOLD_STOP: &str = "/var/lib/hold-stop";
/// The playbook on each host.
pub const PLAYBOOK: &str = "/etc/baton/upgrade.yaml";

/// The hosts, with a cluster that serves.
pub struct Fleet {
    pub hosts: Vec<Host>,
    pub layout: Layout,
    pub from: Build,
    pub to: Build,
    _network: Network,
}

/// What a playbook says beside the usual.
#[derive(Clone, Default)]
pub struct Words {
    /// More lines of the node.
    pub node: Vec<String>,
    /// More lines under `strategy`.
    pub strategy: Vec<String>,
}

impl Fleet {
    /// Three hosts with the main job before them. `None` is a skip.
    pub async fn of(system: System) -> Option<Self> {
        Self::with(system, 3, "Restart=always\nRestartSec=2").await
    }

    /// So many hosts, whose units have these settings, too.
    pub async fn with(system: System, size: u8, settings: &str) -> Option<Self> {
        Self::along(system, system.main_job(), size, settings).await
    }

    /// The same with another way before them, which may lead down.
    pub async fn along(system: System, path: (&str, &str), size: u8, settings: &str) -> Option<Self> {
        Some(Self::beside_others(system, path, (size, 0), settings).await?.0)
    }

    /// The same, with so many hosts beside it that have no member.
    pub async fn beside_others(
        system: System,
        (from, to): (&str, &str),
        (size, others): (u8, u8),
        settings: &str,
    ) -> Option<(Self, Vec<Host>)> {
        let (from, to) = (build_or_skip(system, from)?, build_or_skip(system, to)?);
        let (network, mut hosts) = hosts_or_skip(size + others)?;
        let others = hosts.split_off(size.into());
        let members = hosts.iter().map(|host| member(system, host)).collect();
        let layout = Layout {
            dir: hosts[0].root.clone(),
            system,
            release: from.release.clone(),
            members,
            certificates: None,
            user: None,
        };
        let fleet = Self { hosts, layout, from, to, _network: network };
        for index in 0..fleet.hosts.len() {
            fleet.set_up(index, settings);
            fleet.write(index, &Words::default());
        }
        for host in &fleet.hosts {
            host.must(&["systemctl", "enable", "--now", "--no-block", UNIT]).expect("a unit that is enabled");
        }
        fleet.serves().await;
        fleet.knows(&fleet.from.release.clone()).await;
        Some((fleet, others))
    }

    fn set_up(&self, index: usize, settings: &str) {
        self.install(&self.hosts[index]);
        self.hosts[index].write_unit(UNIT, &self.unit(index, settings)).expect("a unit");
    }

    /// Puts the releases and the agent on a host.
    pub fn install(&self, host: &Host) {
        let name = self.layout.system.name();
        host.install(&self.from.executable(), Path::new("/opt/member/releases/original").join(name))
            .expect("installed");
        host.install(&self.to.executable(), Path::new("/opt/new").join(name)).expect("installed");
        host.install(&tests::agent::executable().expect("an agent"), "/usr/local/bin/agent").expect("installed");
        let link = format!("releases/original/{name}");
        std::os::unix::fs::symlink(link, host.path("/opt/member/current")).expect("a link");
    }

    /// The unit's file.
    pub fn unit(&self, index: usize, settings: &str) -> String {
        let peers = self.hosts.iter().map(|host| format!("{}={}", host.name.replace('h', "m"), peer_url(host)));
        let founders = format!("--initial-cluster={}", peers.collect::<Vec<_>>().join(","));
        unit(&self.layout.members[index], &self.hosts[index], &[founders], settings)
    }

    /// Writes a host's playbook.
    pub fn write(&self, index: usize, words: &Words) {
        self.hosts[index].write(PLAYBOOK, self.playbook(index, UNIT, words)).expect("written");
    }

    /// A host's playbook, for this unit.
    pub fn playbook(&self, index: usize, unit: &str, words: &Words) -> String {
        let version = self.from.release.cluster_version();
        let lines =
            |lines: &[String], indent: &str| lines.iter().map(|line| format!("{indent}{line}\n")).collect::<String>();
        format!(
            "apiVersion: baton/v1\nkind: {}\ncluster: {{ name: fleet, endpoints: {:?} }}\nfrom: \">={}, <{}.{}\"\nto: {}\n\
             artifact: {{ source: /opt/new }}\nnodes:\n  - name: {}\n    binary: /opt/member/current\n    \
             runtime: {{ kind: systemd, unit: {unit} }}\n{}strategy:\n  soak: 0s\n{}",
            if self.to.release < self.from.release { "Downgrade" } else { "Upgrade" },
            self.layout.endpoints(),
            self.from.release,
            version.major,
            version.minor + 1,
            self.to.release,
            self.layout.members[index].name,
            lines(&words.node, "    "),
            lines(&words.strategy, "  "),
        )
    }

    /// A client of one member.
    pub fn client(&self, index: usize) -> Client {
        self.layout.client(&self.layout.members[index]).expect("a client")
    }

    /// Waits until every member serves.
    pub async fn serves(&self) {
        for index in 0..self.hosts.len() {
            let client = self.client(index);
            let what = format!("{} to serve", self.layout.members[index].name);
            let served = wait::until(&what, wait::GENEROUS, || async {
                let read = tokio::time::timeout(Duration::from_secs(1), client.get("ready"));
                read.await.map_err(|error| error.to_string())?.map_err(|status| status.to_string())
            });
            served.await.unwrap_or_else(|error| unreachable!("{error}: {}", self.journal(index)));
        }
    }

    /// Waits until every member is at this cluster version.
    pub async fn knows(&self, release: &Release) {
        let wanted = release.cluster_version();
        let known = wait::until("the cluster version", wait::GENEROUS, || async {
            let said = self.said().await;
            match said.iter().all(|said| said.cluster.parse() == Ok(wanted)) {
                true => Ok(()),
                false => Err(format!("{said:?}")),
            }
        });
        known.await.expect("it is decided");
    }

    /// What every member says that it runs.
    pub async fn said(&self) -> Vec<Versions> {
        self.layout.versions().await.unwrap_or_default()
    }

    /// What each member runs.
    pub async fn releases(&self) -> Vec<String> {
        self.said().await.into_iter().map(|said| said.server).collect()
    }

    /// Every member runs the new release, and says so.
    pub async fn arrived(&self) {
        self.knows(&self.to.release).await;
        assert_eq!(self.releases().await, vec![self.to.release.to_string(); self.hosts.len()]);
        for host in &self.hosts {
            assert_eq!(self.property(host, "ActiveState"), "active");
        }
    }

    /// A property of a host's unit.
    pub fn property(&self, host: &Host, name: &str) -> String {
        host.must(&["systemctl", "show", "-p", name, "--value", UNIT]).expect("systemd answers").trim().to_owned()
    }

    /// The main process of each unit.
    pub fn pids(&self) -> Vec<String> {
        self.hosts.iter().map(|host| self.property(host, "MainPID")).collect()
    }

    /// The end of a unit's log.
    pub fn journal(&self, index: usize) -> String {
        let said = self.hosts[index].run(&["journalctl", "-u", UNIT, "-n", "8", "--no-pager", "-o", "cat"]);
        said.map(|said| said.stdout).unwrap_or_default()
    }

    /// Waits until a host's unit is in this state.
    pub async fn until_it_is(&self, host: &Host, sub: &str) {
        let what = format!("{} to be {sub}", host.name);
        let found = wait::until(&what, LIMIT, || async {
            match self.property(host, "SubState") {
                state if state == sub => Ok(()),
                state => Err(format!("it is {state}")),
            }
        });
        found.await.expect("the state");
    }

    /// Starts `agent VERB` on a host.
    pub fn start(&self, verb: &str, index: usize) -> Run {
        Run::start(&self.hosts[index], &["agent", verb, PLAYBOOK])
    }

    /// Runs `agent VERB` on a host to its end.
    pub async fn one(&self, verb: &str, index: usize) -> Ended {
        self.start(verb, index).ended().await
    }

    /// Runs `agent run` on every host at once.
    pub async fn all(&self) -> Vec<Ended> {
        let started = (0..self.hosts.len()).map(|index| self.start("run", index));
        run::all_end(started.collect::<Vec<_>>()).await
    }

    /// Begins to watch, with clients at work.
    pub async fn begin(&self) -> Watched<'_> {
        let workload = Workload::start(&self.layout.endpoints(), &Access::default(), &Load::light()).expect("clients");
        workload.more(8).await.expect("clients that get answers");
        Watched {
            fleet: self,
            workload: Some(workload),
            watch: Watch::start(self.hosts.iter().map(|host| (host.address(), 2379).into())),
        }
    }
}

/// A fleet under watch.
pub struct Watched<'f> {
    fleet: &'f Fleet,
    workload: Option<Workload>,
    watch: Watch,
}

/// The clients of a test that failed would write to the next one's hosts, which may have these addresses.
impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let _ = self.workload.take().map(Workload::finish);
    }
}

impl Watched<'_> {
    /// Nothing may be lost, some order must explain all that was read, and never may more than so many members have
    /// refused clients at once.
    pub async fn end(mut self, down: usize) {
        let workload = self.workload.take().expect("clients");
        workload.more(8).await.expect("clients that get answers");
        let most = self.watch.end();
        let outcome = workload.finish().expect("clients that live");
        let gap = outcome.longest_write_gap;
        let verified = outcome.verify(&self.fleet.layout.endpoints(), &Access::default()).await.expect("a last look");
        assert!(verified.lost.is_empty(), "lost: {:?}", verified.lost);
        verified.history.expect("a history that some order explains");
        println!("most members down at once: {most}; longest write gap: {gap:?}");
        assert!(most <= down, "{most} members were down at once");
    }
}

fn peer_url(host: &Host) -> String {
    format!("http://{}:2380", host.address())
}

/// A member's unit, with more flags and settings.
pub fn unit(member: &Member, host: &Host, more: &[String], settings: &str) -> String {
    let flags = [
        format!("--name={}", member.name),
        "--data-dir=/var/lib/member".into(),
        format!("--listen-client-urls={}", member.client_url),
        format!("--advertise-client-urls={}", member.client_url),
        format!("--listen-peer-urls={}", peer_url(host)),
        format!("--initial-advertise-peer-urls={}", peer_url(host)),
    ];
    let flags = [&flags[..], more].concat().join(" ");
    let hold = |file: &str| format!("/bin/sh -c 'while [ -e {file} ]; do sleep 0.02; done'");
    format!(
        "[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStartPre={}\nExecStart=/opt/member/current {flags}\n\
         ExecStopPost={}\n{settings}\n[Install]\nWantedBy=multi-user.target\n",
        hold(HOLD_START),
        hold(HOLD_STOP),
    )
}

/// The member of a host.
pub fn member(system: System, host: &Host) -> Member {
    Member {
        name: host.name.replace('h', "m"),
        system,
        dir: host.path("/var/lib/member"),
        client_url: format!("http://{}:2379", host.address()),
        client_port: 2379,
        peer_port: 2380,
        flags: Vec::new(),
    }
}
