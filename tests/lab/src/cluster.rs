//! A cluster of real members on 127.0.0.1, each laid out the way a host would have it.
//!
//! ```text
//! D/cluster.json                                  what was started, for whoever comes later
//! D/<member>/bin/node -> releases/…/node          the symlink that an upgrade switches
//! D/<member>/bin/releases/<release>-<sha256>/node
//! D/<member>/{data,node.log,baton,upgrade.yaml}
//! ```
//!
//! Where the members are etcd's, it says `etcd` wherever `node` stands here.
//!
//! Nothing is remembered about processes: whoever runs an executable of D/<member>/bin *is* the member,
//! whether this crate started it or an agent.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use proto::{ClusterVersion, Release};
use serde::{Deserialize, Serialize};

pub use crate::member::{Member, sha256};
use crate::{
    Error,
    certificates::Certificates,
    client::{Access, Client, Versions},
    member::name,
    ports::Ports,
    process,
    system::{Build, System},
    wait,
};

#[derive(Clone, Debug)]
pub struct Spec {
    /// The release that every member starts with.
    pub build: Build,
    pub size: usize,
    /// Where it lives; a temporary folder, removed at the end, where there is none.
    pub dir: Option<PathBuf>,
    /// Member *i*, from 0, has client port P+2i and peer port P+2i+1; leased ports where there is none.
    pub base_port: Option<u16>,
    /// Whether clients and peers use TLS and show certificates.
    pub tls: bool,
    /// Where members find each other, if not where they listen: a port each.
    pub doors: Option<Vec<u16>>,
    /// More flags for every member.
    pub flags: Vec<String>,
}

impl Spec {
    /// Three members of this release; in the plain, unless `$BATON_TLS` says that all clusters of this process use TLS.
    pub fn new(build: Build) -> Self {
        let tls = env::var_os("BATON_TLS").is_some();
        Self { build, size: 3, dir: None, base_port: None, tls, doors: None, flags: Vec::new() }
    }
}

/// What is on disk: enough to find a cluster again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Layout {
    /// The folder of everything.
    pub dir: PathBuf,
    pub system: System,
    /// The release it was started with.
    pub release: Release,
    /// The members, in order of their ports.
    pub members: Vec<Member>,
    /// The certificates, with TLS.
    pub certificates: Option<Certificates>,
    /// Who clients are, once a scenario has switched auth on.
    #[serde(default)]
    pub user: Option<(String, String)>,
}

/// A running cluster; its processes end with this value, unless [`Cluster::leave_running`] is called.
#[derive(Debug)]
pub struct Cluster {
    pub layout: Layout,
    _ports: Option<Ports>,
    ends: bool,
    _temporary: Option<tempfile::TempDir>,
}

impl Cluster {
    /// Lays a cluster out, starts it and waits until every member serves.
    ///
    /// # Errors
    /// The folder has a cluster already, a member does not start, or it is not healthy in time.
    pub async fn up(spec: &Spec) -> Result<Self, Error> {
        let cluster = Self::laid_out(spec)?;
        cluster.begin().await?;
        Ok(cluster)
    }

    /// Starts a cluster that is [laid out](Cluster::laid_out) and waits until every member serves.
    ///
    /// # Errors
    /// A member does not start, or it is not healthy in time.
    pub async fn begin(&self) -> Result<(), Error> {
        for member in &self.layout.members {
            member.start()?;
        }
        self.ready().await?;
        self.settled(self.layout.release.cluster_version()).await
    }

    /// Starts the members of a cluster that is laid out already, those that are down, and waits until
    /// every member serves.
    ///
    /// # Errors
    /// A member does not start, or it is not healthy in time.
    pub async fn again(layout: Layout) -> Result<Self, Error> {
        for member in layout.members.iter().filter(|member| !member.is_running()) {
            member.start()?;
        }
        // Not all of its processes are ours to end.
        let cluster = Self { layout, _ports: None, ends: false, _temporary: None };
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Lays a cluster out and starts nothing, for a scenario that changes a member first.
    ///
    /// # Errors
    /// The folder has a cluster already, or there is no room for it.
    pub fn laid_out(spec: &Spec) -> Result<Self, Error> {
        let temporary = spec.dir.is_none().then(|| tempfile::Builder::new().prefix("baton-").tempdir()).transpose()?;
        let dir = match (&spec.dir, &temporary) {
            (Some(dir), _) => dir.clone(),
            (None, Some(temporary)) => temporary.path().into(),
            (None, None) => return Err("no folder".into()),
        };
        let leased = spec.base_port.is_none().then(|| Ports::lease(2 * spec.size)).transpose()?;
        let ports = match (&leased, spec.base_port) {
            (Some(leased), _) => leased.numbers.clone(),
            (None, first) => (first.unwrap_or_default()..).take(2 * spec.size).collect(),
        };
        let layout = Layout::create(spec, &dir, &ports)?;
        Ok(Self { layout, _ports: leased, ends: true, _temporary: temporary })
    }

    /// A cluster that was laid out before and does not run, which holds these ports from now on; nothing is started.
    pub fn at_rest(layout: Layout, ports: Ports) -> Self {
        Self { layout, _ports: Some(ports), ends: true, _temporary: None }
    }

    /// Waits until every member answers a linearizable read.
    ///
    /// # Errors
    /// One does not within [`wait::GENEROUS`].
    pub async fn ready(&self) -> Result<(), Error> {
        for member in &self.layout.members {
            let client = self.layout.client(member)?;
            wait::until(&format!("{} to serve", member.name), wait::GENEROUS, || async {
                if !member.is_running() {
                    return Err(format!("it does not run: {}", member.last_words()));
                }
                tokio::time::timeout(Duration::from_secs(1), client.get("baton-is-it-ready"))
                    .await
                    .map_err(|_| "a read timed out".to_owned())?
                    .map_err(|status| status.to_string())
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until every member reports this cluster version.
    ///
    /// # Errors
    /// One does not within [`wait::GENEROUS`].
    pub async fn settled(&self, wanted: ClusterVersion) -> Result<(), Error> {
        for member in &self.layout.members {
            let client = self.layout.client(member)?;
            let what = format!("{} to be at cluster version {wanted}", member.name);
            wait::until(&what, wait::GENEROUS, || async {
                if !member.is_running() {
                    return Err(format!("it does not run: {}", member.last_words()));
                }
                let cluster = client.versions().await.map_err(|error| error.to_string())?.cluster;
                match cluster.parse::<ClusterVersion>() {
                    Ok(version) if version == wanted => Ok(()),
                    _ => Err(format!("it says {cluster}")),
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Lets the members live on after this value.
    pub fn leave_running(mut self) -> Layout {
        self.ends = false;
        self.layout.clone()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.ends {
            self.layout.kill_all();
        }
    }
}

impl Layout {
    fn create(spec: &Spec, dir: &Path, ports: &[u16]) -> Result<Self, Error> {
        fs::create_dir_all(dir)?;
        let dir = dir.canonicalize()?;
        if dir.join(FILE).exists() {
            return Err(format!("{} has a cluster already", dir.display()).into());
        }
        let certificates = spec.tls.then(|| Certificates::create(&dir.join("tls"))).transpose()?;
        let scheme = if spec.tls { "https" } else { "http" };
        let doors = spec.doors.clone().unwrap_or_else(|| ports.chunks_exact(2).map(|pair| pair[1]).collect());
        let peer_urls: Vec<_> = doors.iter().map(|door| format!("{scheme}://127.0.0.1:{door}")).collect();
        let peers: Vec<_> = peer_urls.iter().enumerate().map(|(index, url)| format!("{}={url}", name(index))).collect();
        let mut members = Vec::new();
        for (index, pair) in ports.chunks_exact(2).enumerate() {
            let mut member = Member::new(spec.build.system, &dir, index, (pair[0], pair[1]), scheme);
            member.flags.push(format!("--initial-advertise-peer-urls={}", peer_urls[index]));
            member.flags.push(format!("--initial-cluster={}", peers.join(",")));
            member.flags.extend(certificates.iter().flat_map(tls_flags));
            member.flags.extend_from_slice(&spec.flags);
            fs::create_dir_all(&member.dir)?;
            member.install(&spec.build)?;
            members.push(member);
        }
        let Build { system, release, .. } = spec.build.clone();
        let layout = Self { dir: dir.clone(), system, release, members, certificates, user: None };
        layout.save()?;
        Ok(layout)
    }

    /// Writes down where the cluster is, for whoever comes later.
    ///
    /// # Errors
    /// Its folder cannot be written.
    pub fn save(&self) -> Result<(), Error> {
        Ok(fs::write(self.dir.join(FILE), serde_json::to_vec_pretty(self)?)?)
    }

    /// The same cluster in another folder, which is made: every file, and every name that has the old folder in it. Its members
    /// must be at rest. Their ports stay as they are, since members know each other by them.
    ///
    /// # Errors
    /// The folder is there already, or cannot be written.
    pub fn copied(&self, to: &Path) -> Result<Self, Error> {
        crate::folder::copy(&self.dir, to)?;
        let (old, new) = (self.dir.display().to_string(), to.canonicalize()?.display().to_string());
        let mut value = serde_json::to_value(self)?;
        moved(&mut value, &old, &new);
        let layout: Self = serde_json::from_value(value)?;
        layout.save()?;
        Ok(layout)
    }

    /// The cluster that was laid out in this folder.
    ///
    /// # Errors
    /// There is none.
    pub fn load(dir: &Path) -> Result<Self, Error> {
        let file = dir.join(FILE);
        let bytes = fs::read(&file).map_err(|error| format!("no cluster here: {}: {error}", file.display()))?;
        Ok(serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", file.display()))?)
    }

    /// Where clients find every member.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.client_url.clone()).collect()
    }

    /// What a client needs to be let in.
    pub fn access(&self) -> Access {
        Access { certificates: self.certificates.clone(), user: self.user.clone() }
    }

    /// A client of one member.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub fn client(&self, member: &Member) -> Result<Client, Error> {
        Client::new(&member.client_url, &self.access())
    }

    /// What each member says of its release and the cluster's.
    ///
    /// # Errors
    /// One does not answer.
    pub async fn versions(&self) -> Result<Vec<Versions>, Error> {
        let mut versions = Vec::new();
        for member in &self.members {
            versions.push(self.client(member)?.versions().await?);
        }
        Ok(versions)
    }

    /// Makes this member the leader.
    ///
    /// # Errors
    /// It does not lead within [`wait::GENEROUS`].
    pub async fn make_leader(&self, wanted: &Member) -> Result<(), Error> {
        let id = self.client(wanted)?.status().await?.header.unwrap_or_default().member_id;
        let what = format!("{} to lead", wanted.name);
        wait::until(&what, wait::GENEROUS, || async {
            let leader = self.leader().await.map_err(|error| error.to_string())?;
            if leader.name == wanted.name {
                return Ok(());
            }
            let client = self.client(leader).map_err(|error| error.to_string())?;
            match tokio::time::timeout(Duration::from_secs(5), client.move_leader(id)).await {
                Ok(Ok(())) => Err(format!("{} leads", leader.name)),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
        Ok(())
    }

    /// The member that says it leads.
    ///
    /// # Errors
    /// None does within [`wait::GENEROUS`].
    pub async fn leader(&self) -> Result<&Member, Error> {
        let found = wait::until("a member to lead", wait::GENEROUS, || async {
            for member in &self.members {
                let client = self.client(member).map_err(|error| error.to_string())?;
                let Ok(Ok(status)) = tokio::time::timeout(Duration::from_secs(1), client.status()).await else {
                    continue;
                };
                if status.leader == status.header.unwrap_or_default().member_id {
                    return Ok(member);
                }
            }
            Err("nobody says so".into())
        });
        Ok(found.await?)
    }

    /// Ends every process of every member, agents' too if they lie there.
    pub fn kill_all(&self) {
        process::kill_all_under(&self.dir);
    }
}

const FILE: &str = "cluster.json";

/// Puts one folder's name in place of another's, in every text.
fn moved(value: &mut serde_json::Value, old: &str, new: &str) {
    match value {
        serde_json::Value::String(text) => *text = text.replace(old, new),
        serde_json::Value::Array(all) => all.iter_mut().for_each(|one| moved(one, old, new)),
        serde_json::Value::Object(all) => all.values_mut().for_each(|one| moved(one, old, new)),
        _ => {}
    }
}

pub(crate) fn tls_flags(files: &Certificates) -> Vec<String> {
    let flags = ["", "peer-"].map(|side| {
        [
            format!("--{side}cert-file={}", files.server.cert.display()),
            format!("--{side}key-file={}", files.server.key.display()),
            format!("--{side}trusted-ca-file={}", files.ca.display()),
            format!("--{side}client-cert-auth=true"),
        ]
    });
    flags.into_iter().flatten().collect()
}
