//! What runs on the hosts: a member each, as a service of its systemd; and the agent, with a playbook for it.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use tests::{
    Error, agent,
    client::{Access, Client},
    machine::Host,
    system::Build,
    wait::{self, GENEROUS},
};

/// Where the playbook is on each host.
pub const PLAYBOOK: &str = "/etc/baton/upgrade.yaml";

/// Hosts that are up, and what their members are.
pub struct Fleet<'h> {
    pub hosts: &'h [Host],
    /// What the members start with.
    pub from: Build,
    /// What the playbooks lead to.
    pub to: Build,
}

impl Fleet<'_> {
    /// Starts a member on every host, and waits until all serve.
    pub async fn start(&self) -> Result<(), Error> {
        for host in self.hosts {
            self.install(host)?;
        }
        for host in self.hosts {
            // A member is ready only with the others.
            host.must(&["systemctl", "enable", "--now", "--no-block", &self.unit()])?;
        }
        for host in self.hosts {
            self.serves(host).await.map_err(|error| format!("{error}: {}", self.last_words(host)))?;
        }
        Ok(())
    }

    fn install(&self, host: &Host) -> Result<(), Error> {
        let name = self.name();
        let place = Path::new("releases").join(self.from.release.to_string()).join(name);
        host.install(&self.from.executable(), self.home().join(&place))?;
        symlink(place, host.path(self.home().join("current")))?;
        host.install(&self.to.executable(), self.artifact())?;
        host.install(&agent::executable()?, "/usr/local/bin/agent")?;
        let etcdctl = self.from.bin.join("etcdctl");
        if etcdctl.exists() {
            host.install(&etcdctl, "/usr/local/bin/etcdctl")?;
        }
        let names = self.hosts.iter().map(|host| format!("{} {}\n", host.address(), host.name)).collect::<String>();
        host.write("/etc/hosts", format!("127.0.0.1 localhost\n{names}"))?;
        host.write(PLAYBOOK, self.playbook(host))?;
        host.write_unit(&self.unit(), &self.unit_file(host))
    }

    fn unit_file(&self, host: &Host) -> String {
        let name = self.name();
        let peer = |host: &Host| format!("http://{}:2380", host.address());
        let peers: Vec<_> = self.hosts.iter().map(|host| format!("{}={}", member(host), peer(host))).collect();
        let flags = [
            format!("--name={}", member(host)),
            format!("--data-dir=/var/lib/{name}"),
            format!("--listen-client-urls={},http://127.0.0.1:2379", url(host)),
            format!("--advertise-client-urls={}", url(host)),
            format!("--listen-peer-urls={}", peer(host)),
            format!("--initial-advertise-peer-urls={}", peer(host)),
            format!("--initial-cluster={}", peers.join(",")),
        ];
        format!(
            "[Service]\nType=notify\nExecStart={} {}\nRestart=always\nRestartSec=2\n\
             # Ready only with a quorum, which others may have to bring.\nTimeoutStartSec=infinity\n\
             [Install]\nWantedBy=multi-user.target\n",
            self.home().join("current").display(),
            flags.join(" \\\n  "),
        )
    }

    fn playbook(&self, host: &Host) -> String {
        let version = self.from.release.cluster_version();
        let endpoints: Vec<_> = self.hosts.iter().map(url).collect();
        // Without one of one or two there is no quorum.
        let downtime = if self.hosts.len() < 3 { "  allow_downtime: true\n" } else { "" };
        format!(
            "apiVersion: baton/v1\nkind: {kind}\ncluster:\n  name: hosts\n  endpoints: {endpoints:?}\n\
             from: \">={from}, <{major}.{next}\"\nto: {to}\nartifact:\n  source: {artifact}\nnodes:\n  - name: {member}\n    \
             binary: {home}/current\n    runtime: {{ kind: systemd, unit: {unit} }}\nstrategy:\n  soak: 2s\n{downtime}",
            kind = if self.to.release < self.from.release { "Downgrade" } else { "Upgrade" },
            from = self.from.release,
            major = version.major,
            next = version.minor + 1,
            to = self.to.release,
            artifact = self.artifact(),
            member = member(host),
            home = self.home().display(),
            unit = self.unit(),
        )
    }

    /// A member serves when it answers a read and knows the cluster version.
    async fn serves(&self, host: &Host) -> Result<(), Error> {
        let client = Client::new(&url(host), &Access::default())?;
        let wanted = self.from.release.cluster_version();
        let what = format!("{} to serve", member(host));
        let served = wait::until(&what, GENEROUS, || async {
            let look = async {
                client.get("ready").await?;
                client.versions().await
            };
            let said = tokio::time::timeout(Duration::from_secs(1), look).await.map_err(|error| error.to_string())?;
            match said.map_err(|error| error.to_string())?.cluster {
                version if version.parse() == Ok(wanted) => Ok(()),
                version => Err(format!("its cluster version is {version}")),
            }
        });
        Ok(served.await?)
    }

    fn last_words(&self, host: &Host) -> String {
        let said = host.run(&["journalctl", "-u", &self.unit(), "-n", "3", "--no-pager", "-o", "cat"]);
        said.map(|said| said.stdout.trim().replace('\n', " / ")).unwrap_or_default()
    }

    fn name(&self) -> &'static str {
        self.from.system.name()
    }

    /// The members' unit.
    pub fn unit(&self) -> String {
        format!("{}.service", self.name())
    }

    /// Where a member's releases are, and the symlink to the one that runs.
    fn home(&self) -> PathBuf {
        Path::new("/opt").join(self.name())
    }

    /// Where the release to go to waits.
    fn artifact(&self) -> String {
        format!("/srv/releases/{}/{}", self.to.release, self.name())
    }
}

/// The member of a host: h1 has m1.
pub fn member(host: &Host) -> String {
    host.name.replace('h', "m")
}

/// Where clients find a host's member.
pub fn url(host: &Host) -> String {
    format!("http://{}:2379", host.address())
}
