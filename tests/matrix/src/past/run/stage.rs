//! The cluster of a plan: who is a member, who runs what, and who is away. Starting, stopping, and the rolling upgrade.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use lab::{
    client::{Access, Client},
    cluster::{Cluster, Layout, Member, Spec},
    ports::Ports,
    system::Build,
    wait,
};
use proto::Release;
use rustix::process::Signal;
use tokio::task::block_in_place;

use super::{Answer, Bench, Broken, Builds, Raised, Symptom, asked, watch::Watch, writes::Written};
use crate::{
    past::{Habits, Plan, flags},
    plan::{Host, tree},
};

/// How long a member may take until it serves.
const LIMIT: Duration = Duration::from_secs(45);
/// How long one may take to end before it is killed.
const STOP: Duration = Duration::from_secs(15);
/// For so long it may answer that it lets nobody in.
const LOCKED_OUT: Duration = Duration::from_secs(12);
/// For so long nobody writes to a cluster that is waited for.
const QUIET: Duration = Duration::from_secs(3);
/// A member that is not found so often in a row has ended.
const ABSENT: usize = 20;
/// What a program of Go says when it gives up, plainly or in JSON.
const LAST_WORDS: [&str; 6] =
    ["panic: ", "\"level\":\"panic\"", "\"level\":\"fatal\"", "fatal error: ", "[signal ", " C | "];
/// Of a log: what is looked at for its last words.
const LOG_TAIL: usize = 1 << 18;

pub(super) struct Stage {
    pub(super) cluster: Cluster,
    pub(super) builds: Builds,
    pub(super) habits: Habits,
    /// What every member runs, but for those that have hopped before the others.
    pub(super) release: Release,
    /// The flags of each member that are the same at every release.
    pub(super) flags: BTreeMap<Host, Vec<String>>,
    pub(super) away: BTreeSet<Host>,
    pub(super) watches: BTreeMap<Host, Watch>,
    /// Who watches are, when they are opened again.
    access: Arc<Mutex<Access>>,
    /// What newcomers listen on, for as long as the plan runs.
    pub(super) ports: Vec<Ports>,
    pub(super) written: Written,
    /// Of each user that was added, how often it was granted more.
    pub(super) users: Vec<usize>,
    pub(super) has_root: bool,
    pub(super) restored: usize,
    /// Whether somebody is to be killed in this step while clients write.
    pub(super) kill_is_coming: Arc<AtomicBool>,
    /// Who is asked whether it would go.
    pub(super) agent: Option<PathBuf>,
    pub(super) answers: Vec<Answer>,
}

impl Stage {
    /// Lays the cluster of a plan out in this folder, and starts nothing.
    pub(super) fn laid_out(plan: &Plan, bench: &Bench, folder: &Path) -> Result<Self, Broken> {
        let release = plan.ground.way.first().ok_or("a way without a release")?.clone();
        let build = bench.builds.get(&release).ok_or_else(|| format!("etcd {release} is not there"))?;
        let dir = Some(folder.into());
        let spec = Spec { size: plan.ground.size, dir, tls: plan.habits.tls, ..Spec::new(build.clone()) };
        let mut cluster = Cluster::laid_out(&spec)?;
        let mut flags = BTreeMap::new();
        for member in &mut cluster.layout.members {
            flags.extend(tree::host(&member.name).map(|host| (host, member.flags.clone())));
            member.flags.extend(flags::of(&plan.habits, &release));
        }
        let access = Arc::new(Mutex::new(cluster.layout.access()));
        Ok(Self {
            cluster,
            builds: bench.builds.clone(),
            habits: plan.habits.clone(),
            release,
            flags,
            away: BTreeSet::new(),
            watches: BTreeMap::new(),
            access,
            ports: Vec::new(),
            written: Written::of(plan.seed),
            users: Vec::new(),
            has_root: false,
            restored: 0,
            kill_is_coming: Arc::default(),
            agent: bench.agent.clone(),
            answers: Vec::new(),
        })
    }

    pub(super) async fn start(&mut self) -> Result<(), Broken> {
        block_in_place(|| self.layout().members.iter().try_for_each(|member| member.start().map(drop)))?;
        for host in self.hosts() {
            self.serves(host).await?;
        }
        self.settled().await?;
        let newest = self.client(self.hosts()[0])?.newest().await?;
        for host in self.hosts() {
            self.watch(host, newest.0)?;
        }
        Ok(())
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.cluster.layout
    }

    pub(super) fn build(&self) -> Result<&Build, Broken> {
        Ok(self.builds.get(&self.release).ok_or_else(|| format!("etcd {} is not there", self.release))?)
    }

    /// The hosts of all members, in their order.
    pub(super) fn hosts(&self) -> Vec<Host> {
        self.layout().members.iter().filter_map(|member| tree::host(&member.name)).collect()
    }

    /// Those that are not away.
    pub(super) fn standing(&self) -> Vec<Host> {
        self.hosts().into_iter().filter(|host| !self.away.contains(host)).collect()
    }

    pub(super) fn member(&self, host: Host) -> Result<&Member, Broken> {
        let is_its = |member: &&Member| tree::host(&member.name) == Some(host);
        Ok(self.layout().members.iter().find(is_its).ok_or_else(|| format!("no {}", tree::member(host)))?)
    }

    pub(super) fn client(&self, host: Host) -> Result<Client, Broken> {
        Ok(self.layout().client(self.member(host)?)?)
    }

    /// Clients of those that are not away.
    pub(super) fn clients(&self) -> Result<Vec<Client>, Broken> {
        self.standing().into_iter().map(|host| self.client(host)).collect()
    }

    /// Begins to watch through a member, or goes on.
    pub(super) fn watch(&mut self, host: Host, newest: i64) -> Result<(), Broken> {
        let (url, access) = (self.member(host)?.client_url.clone(), Arc::clone(&self.access));
        self.watches.entry(host).or_insert_with(|| Watch::after(newest)).follow(url, access);
        Ok(())
    }

    /// Who clients are from now on; a watch that is open stays open.
    pub(super) fn log_in(&mut self, user: Option<(String, String)>) {
        self.cluster.layout.user = user;
        *self.access.lock().unwrap_or_else(PoisonError::into_inner) = self.layout().access();
    }

    /// Stops a member as its service manager does.
    pub(super) fn stop(&mut self, host: Host) -> Result<(), Broken> {
        // A member does not end before its watches, unless some seconds have passed.
        self.watches.get_mut(&host).into_iter().for_each(Watch::pause);
        let Some(process) = self.member(host)?.process() else { return Ok(()) };
        block_in_place(|| {
            process.signal(Signal::TERM)?;
            if process.ended(STOP).is_err() {
                process.signal(Signal::KILL)?;
                process.ended(STOP)?;
            }
            Ok(())
        })
    }

    pub(super) async fn begin(&mut self, host: Host) -> Result<(), Broken> {
        block_in_place(|| self.member(host)?.start().map_err(Broken::from))?;
        self.serves(host).await?;
        self.watch(host, 0)
    }

    pub(super) async fn restart(&mut self, host: Host) -> Result<(), Broken> {
        self.stop(host)?;
        self.begin(host).await
    }

    /// Waits until a member answers a linearizable read.
    pub(super) async fn serves(&self, host: Host) -> Result<(), Broken> {
        let (client, member) = (self.client(host)?, self.member(host)?);
        let others: Vec<_> = self.standing().into_iter().filter(|other| *other != host).collect();
        let (began, mut absent, mut entries) = (std::time::Instant::now(), 0, 0);
        loop {
            // One that was sent a snapshot may believe itself far behind until there is another entry (etcd 3.5).
            if began.elapsed() > QUIET * (entries + 1)
                && let Some(other) = others.get(entries as usize % others.len().max(1))
            {
                entries += 1;
                let put = self.client(*other)?;
                let _ = tokio::time::timeout(QUIET, put.put("served", "yes")).await;
            }
            // One that was just started is not there at once.
            absent = if member.is_running() { 0 } else { absent + 1 };
            if absent == ABSENT {
                return Err(Broken::new(Symptom::DoesNotServe, format!("{} has ended", member.name)));
            }
            let said = match tokio::time::timeout(Duration::from_secs(2), client.get("served")).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(status)) => status.message().to_owned(),
                Err(_) => "a read timed out".into(),
            };
            let is_locked_out = ["auth", "user name", "permission"].iter().any(|word| said.contains(word));
            let text = || format!("{} does not serve: {said}", member.name);
            match began.elapsed() {
                long if is_locked_out && long > LOCKED_OUT => return Err(Broken::new(Symptom::Auth, text())),
                long if long > LIMIT => return Err(Broken::new(Symptom::DoesNotServe, text())),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Waits until every member holds the cluster version of the release.
    async fn settled(&self) -> Result<(), Broken> {
        let wanted = format!("{}.0", self.release.cluster_version());
        for host in self.hosts() {
            let client = self.client(host)?;
            let what = format!("{} to be at cluster version {wanted}", tree::member(host));
            let settled = wait::until(&what, LIMIT, || async {
                let said = client.versions().await.map_err(|error| error.to_string())?.cluster;
                if said == wanted { Ok(()) } else { Err(format!("it is at {said}")) }
            });
            settled.await.map_err(|late| Broken::new(Symptom::DoesNotServe, late.to_string()))?;
        }
        Ok(())
    }

    /// The upgrade, as a script does it that waits for each member.
    pub(super) async fn hop(&mut self, to: &Release, order: &[Host], writes: u64) -> Result<(), Broken> {
        asked::ask(self, to, false).await?;
        let build = self.builds.get(to).ok_or_else(|| format!("etcd {to} is not there"))?.clone();
        for host in order {
            self.stop(*host)?;
            let flags = self.flags.get(host).into_iter().flatten().cloned();
            let flags = flags.chain(flags::of(&self.habits, to)).collect();
            let members = &mut self.cluster.layout.members;
            let member = members.iter_mut().find(|member| tree::host(&member.name) == Some(*host));
            let member = member.ok_or_else(|| format!("no {}", tree::member(*host)))?;
            member.flags = flags;
            block_in_place(|| member.install(&build))?;
            self.begin(*host).await?;
            super::writes::write(self, crate::past::Mix::Puts, writes).await?;
        }
        self.release = to.clone();
        self.settled().await
    }

    /// Ends every member, as its service manager does. From now on each is started with its own flags, and those of the cluster's
    /// habits that the release that it runs takes.
    pub(super) fn at_rest(mut self) -> Result<Raised, Broken> {
        let hosts = self.hosts();
        hosts.iter().try_for_each(|host| self.stop(*host))?;
        let habits: Vec<_> = flags::lasting(&self.habits, &self.release);
        for member in &mut self.cluster.layout.members {
            let own = tree::host(&member.name).and_then(|host| self.flags.get(&host));
            member.flags = own.into_iter().flatten().chain(&habits).cloned().collect();
        }
        self.cluster.layout.release = self.release.clone();
        self.cluster.layout.save()?;
        let Written { known, unknown, .. } = self.written;
        let known = known.into_iter().filter(|(key, _)| !unknown.contains(key)).collect();
        Ok(Raised { cluster: self.cluster, known })
    }

    /// A member that is not away, and does not run.
    pub(super) fn who_has_ended(&self) -> Option<String> {
        let ended =
            self.standing().into_iter().find(|host| self.member(*host).is_ok_and(|member| !member.is_running()));
        ended.map(tree::member)
    }

    /// The lines of members' logs with which a program ends that gives up.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for member in &self.layout().members {
            let log = fs::read(member.log()).unwrap_or_default();
            let text = String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_TAIL)..]).into_owned();
            let last = text.lines().filter(|line| LAST_WORDS.iter().any(|words| line.contains(words))).rev().take(3);
            lines.extend(last.map(|line| format!("{}: {}", member.name, line.chars().take(400).collect::<String>())));
        }
        lines
    }
}
