//! Clusters on hosts of their own: a member each, which is at work before anybody thinks of an upgrade.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tests::{
    agent,
    client::{Access, Client, Versions},
    cluster::Member,
    machine::{Host, Network, hosts_or_skip},
    skip::build_or_skip,
    system::{Build, System},
    wait::{self, GENEROUS},
    workload::{Load, Workload},
};

/// Where a member and all that is its own is on its host.
const HOME: &str = "/srv/member";
/// What a member is where it is a unit.
pub const UNIT: &str = "member.service";

/// Hosts with members, and clients at work.
pub struct Site {
    /// What members are.
    pub system: System,
    /// What they run before.
    pub from: Build,
    /// What they shall run.
    pub to: Build,
    /// The hosts; h1 has the member m1.
    pub hosts: Vec<Host>,
    /// Which hosts are a cluster, by their place in `hosts`. The members of each are m1, m2 and so on.
    clusters: Vec<Range<usize>>,
    /// Files of the machine that plays are run from.
    pub home: tempfile::TempDir,
    load: Option<Workload>,
    /// The unit that a member is; `None` where it is a process.
    unit: Option<&'static str>,
    _network: Network,
}

impl Site {
    /// So many hosts, for the main job. `None` is a skip.
    pub async fn up(system: System, size: u8) -> Option<Self> {
        Self::path(system, system.main_job(), size).await
    }

    /// So many hosts, for any two releases.
    pub async fn path(system: System, releases: (&str, &str), size: u8) -> Option<Self> {
        let mut site = Self::clusters(system, releases, &[size]).await?;
        let load = Workload::start(&site.endpoints(), &Access::default(), &Load::light()).expect("started");
        load.more(8).await.expect("under way");
        site.load = Some(load);
        Some(site)
    }

    /// Clusters of these sizes, whose members have the same names. They have no clients.
    pub async fn clusters(system: System, (from, to): (&str, &str), sizes: &[u8]) -> Option<Self> {
        let (from, to) = (build_or_skip(system, from)?, build_or_skip(system, to)?);
        let (network, hosts) = hosts_or_skip(sizes.iter().sum())?;
        let ends = sizes.iter().scan(0, |end, size| {
            let start = *end;
            *end += usize::from(*size);
            Some(start..*end)
        });
        let clusters: Vec<_> = ends.collect();
        let home = tempfile::Builder::new().prefix("baton-").tempdir().expect("a folder");
        for (host, member) in clusters.iter().flat_map(|cluster| {
            let hosts = &hosts[cluster.clone()];
            hosts.iter().enumerate().map(move |(index, host)| (host, member(system, hosts, index)))
        }) {
            fs::create_dir_all(&member.dir).expect("made");
            member.install(&from).expect("installed");
            host.install(&to.executable(), artifact(&to)).expect("installed");
            let start = format!("exec \"$@\" >>{HOME}/log 2>&1");
            let binary = binary(system);
            let argv = ["setsid", "--fork", "sh", "-c", &start, "sh", &binary].into_iter().map(str::to_owned);
            host.must(&argv.chain(member.flags).collect::<Vec<_>>()).expect("started");
        }
        let endpoints: Vec<_> = hosts.iter().map(url).collect();
        until_they_serve(&endpoints, &from).await;
        Some(Self { system, from, to, hosts, clusters, home, load: None, unit: None, _network: network })
    }

    /// Where clients find every member.
    pub fn endpoints(&self) -> Vec<String> {
        self.hosts.iter().map(url).collect()
    }

    /// What the template of the hosts' playbooks wants to know of all.
    pub fn facts(&self) -> Value {
        let next = self.from.release.cluster_version().minor + 1;
        let (kind, end) = match self.to.release < self.from.release {
            true => ("Downgrade", format!("{}.{next}", self.from.release.cluster_version().major)),
            false => ("Upgrade", self.to.release.to_string()),
        };
        json!({
            "member_binary": binary(self.system), "log": format!("{HOME}/log"), "source": artifact(&self.to),
            "kind": kind, "from": format!(">={}, <{end}", self.from.release), "to": self.to.release.to_string(),
            "unit": self.unit,
        })
    }

    /// What it wants to know of a host, by its place in `hosts`: of its cluster, and its own member.
    pub fn host_facts(&self, index: usize) -> Value {
        let cluster = self.clusters.iter().find(|cluster| cluster.contains(&index)).expect("every host is in one");
        let hosts = &self.hosts[cluster.clone()];
        let members: Vec<_> = (0..hosts.len()).map(|index| member(self.system, hosts, index)).collect();
        let flags: serde_json::Map<_, _> =
            members.iter().map(|member| (member.name.clone(), member.flags.clone().into())).collect();
        json!({
            "ansible_host": self.hosts[index].address(), "baton_members": [members[index - cluster.start].name],
            "endpoints": hosts.iter().map(url).collect::<Vec<_>>(), "flags": flags,
        })
    }

    /// What each member says of its release.
    pub async fn releases(&self) -> Vec<String> {
        let mut releases = Vec::new();
        for url in self.endpoints() {
            releases.push(versions(&url).await.expect("it answers").server);
        }
        releases
    }

    /// Whether so many members run the new release, the others the old one.
    pub async fn is_upgraded(&self, wanted: &[bool]) {
        let release = |is_new: &bool| if *is_new { &self.to } else { &self.from }.release.to_string();
        assert_eq!(self.releases().await, wanted.iter().map(release).collect::<Vec<_>>());
    }

    /// Puts the agent on every host, for plays that do not bring it.
    pub fn with_agents(self) -> Self {
        let agent = agent::executable().expect("it is built");
        self.hosts.iter().for_each(|host| host.install(&agent, "/usr/local/bin/agent").expect("copied"));
        self
    }

    /// Makes each member a unit of its host's systemd, that is started again whenever it ends.
    pub async fn with_units(mut self) -> Self {
        for cluster in &self.clusters {
            let hosts = &self.hosts[cluster.clone()];
            for (index, host) in hosts.iter().enumerate() {
                let flags = member(self.system, hosts, index).flags.join(" ");
                let start =
                    format!("Type=notify\nExecStart={} {flags}\nRestart=always\nRestartSec=1", binary(self.system));
                let text = format!("[Service]\n{start}\n[Install]\nWantedBy=multi-user.target\n");
                host.write_unit(UNIT, &text).expect("a unit");
                host.must(&["pkill", "-x", self.system.name()]).expect("it ends");
            }
            for host in hosts {
                host.must(&["systemctl", "enable", "--now", "--no-block", UNIT]).expect("a unit that is enabled");
            }
        }
        self.unit = Some(UNIT);
        until_they_serve(&self.endpoints(), &self.from).await;
        self
    }

    /// Puts this program where the new release waits.
    pub fn deliver(&self, program: &Path) {
        self.hosts.iter().for_each(|host| host.install(program, artifact(&self.to)).expect("copied"));
    }

    /// Ends every member at once, and the clients' work before that.
    pub async fn stop_all(&mut self) {
        let load = self.load.take().expect("they are at work");
        load.finish().expect("no client died");
        for host in &self.hosts {
            host.must(&["pkill", "-x", self.system.name()]).expect("it ends");
        }
    }

    /// Starts a cluster of one member more on the first host, and gives its URL.
    pub async fn start_another_cluster(&self) -> String {
        let (host, peer) = (&self.hosts[0], format!("http://{}:3380", self.hosts[0].address()));
        let url = format!("http://{}:3379", host.address());
        let flags = format!(
            "--name=other --data-dir={HOME}/other --listen-client-urls={url} --advertise-client-urls={url} \
             --listen-peer-urls={peer} --initial-advertise-peer-urls={peer} --initial-cluster=other={peer}"
        );
        let program = format!("{HOME}/other-{}", self.system.name());
        host.install(&self.from.executable(), &program).expect("installed");
        host.must(&["setsid", "--fork", "sh", "-c", &format!("exec {program} {flags} >{HOME}/other-log 2>&1")])
            .expect("started");
        until_they_serve(std::slice::from_ref(&url), &self.from).await;
        url
    }

    /// The process of each member, by its number there.
    pub fn pids(&self) -> Vec<String> {
        let name = self.system.name();
        self.hosts.iter().map(|host| host.must(&["pgrep", "-x", name]).expect("it runs")).collect()
    }

    /// Ends the clients: nothing of what they were told may be untrue.
    pub async fn nothing_is_lost(mut self) {
        let endpoints = self.endpoints();
        let load = self.load.take().expect("they are at work");
        load.more(8).await.expect("it goes on");
        let outcome = load.finish().expect("no client died");
        let verified = outcome.verify(&endpoints, &Access::default()).await.expect("it answers");
        assert!(verified.lost.is_empty() && verified.history.is_ok(), "{verified:?}");
    }
}

fn url(host: &Host) -> String {
    format!("http://{}:2379", host.address())
}

fn binary(system: System) -> String {
    format!("{HOME}/bin/{}", system.name())
}

/// Where the new release waits on every host.
fn artifact(to: &Build) -> String {
    format!("/srv/releases/{}", to.system.name())
}

fn member(system: System, hosts: &[Host], index: usize) -> Member {
    let host = &hosts[index];
    let peer = |host: &Host| format!("http://{}:2380", host.address());
    let cluster: Vec<_> =
        hosts.iter().enumerate().map(|(index, host)| format!("m{}={}", index + 1, peer(host))).collect();
    let name = format!("m{}", index + 1);
    let flags = vec![
        format!("--name={name}"),
        format!("--data-dir={HOME}/data"),
        format!("--listen-client-urls={}", url(host)),
        format!("--advertise-client-urls={}", url(host)),
        format!("--listen-peer-urls={}", peer(host)),
        format!("--initial-advertise-peer-urls={}", peer(host)),
        format!("--initial-cluster={}", cluster.join(",")),
        "--initial-cluster-state=new".into(),
    ];
    Member { name, system, dir: host.path(HOME), client_url: url(host), client_port: 2379, peer_port: 2380, flags }
}

async fn versions(url: &str) -> Result<Versions, String> {
    let client = Client::new(url, &Access::default()).map_err(|error| error.to_string())?;
    let asked = tokio::time::timeout(Duration::from_secs(1), client.versions()).await;
    asked.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

async fn until_they_serve(endpoints: &[String], build: &Build) {
    let wanted = build.release.cluster_version().to_string();
    for url in endpoints {
        wait::until("a member to serve", GENEROUS, || async {
            match versions(url).await?.cluster {
                version if version.starts_with(&wanted) => Ok(()),
                version => Err(format!("its cluster version is {version}")),
            }
        })
        .await
        .expect("it serves");
    }
}

/// The template of every host's playbook.
pub fn template() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ansible/upgrade.yaml.j2").into()
}
