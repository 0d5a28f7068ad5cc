//! The cluster of a plan, and what is known of it: who runs what by now, and what was written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use lab::{
    Error,
    client::Client,
    cluster::{Cluster, Layout, Member, Spec},
    mounted::Mounted,
    network::Network,
    newcomer::place,
    playbook::{Upgrade, quoted},
    ports::Ports,
    system::{Build, System},
};
use proto::ClusterVersion;

use super::{Bench, leases::Leases, record::Record, written::Written};
use crate::{
    past::kept::Known,
    plan::{Host, Plan, Trouble, tree},
    verdict::MemberRow,
};

/// What a member's file system of its own holds, in bytes; the file it is in takes what is used.
const DISK: u64 = 1 << 30;
/// For agents: what a person would wait for minutes is given up sooner, and nobody waits long for company.
const STRATEGY: [&str; 6] = [
    "soak: 0s",
    "join_window: 1s",
    "health: { timeout: 60s }",
    "convergence: { timeout: 60s }",
    "stall_timeout: 150s",
    "allow_downtime: true",
];

pub(super) struct Stage {
    pub(super) from: Build,
    pub(super) to: Build,
    pub(super) cluster: Cluster,
    /// The program that agents are.
    pub(super) agent: PathBuf,
    /// Whose etcdctl is typed during each step.
    pub(super) tools: Vec<Build>,
    /// The playbook of each host, of the release or of the members that are to change.
    pub(super) playbooks: BTreeMap<Host, PathBuf>,
    /// The members that are at the new release by now.
    pub(super) is_forward: BTreeSet<Host>,
    /// Who is on its way: laid out, and no member yet.
    pub(super) newcomers: BTreeMap<Host, Member>,
    /// What newcomers listen on, for as long as the plan runs.
    pub(super) ports: Vec<Ports>,
    /// The file systems that can lose power, by their member.
    pub(super) disks: BTreeMap<Host, Mounted>,
    /// Where members are called by each other, where links are to fail.
    doors: Option<Ports>,
    /// Between the members that are there from the beginning, where links are to fail.
    pub(super) network: Option<Network>,
    /// All that was acknowledged, of which samples are read back.
    pub(super) written: Written,
    pub(super) leases: Leases,
}

impl Stage {
    /// Lays the cluster of a plan out in this folder, and starts nothing.
    pub(super) fn laid_out(
        plan: &Plan,
        (from, to): (&Build, &Build),
        past: Option<(Cluster, Known)>,
        bench: &Bench,
        folder: &Path,
        record: &Record,
    ) -> Result<Self, Error> {
        let size = plan.cell.size;
        let doors = is_through_a_network(plan).then(|| Ports::lease(size)).transpose()?;
        let numbers = doors.as_ref().map(|doors| doors.numbers.clone());
        let (cluster, known) = match past {
            Some(raised) => raised,
            None => {
                let (tls, dir) = (plan.cell.tls, Some(folder.into()));
                let spec = Spec { size, tls, dir, doors: numbers, ..Spec::new(from.clone()) };
                (Cluster::laid_out(&spec)?, Known::new())
            }
        };
        let disks = disks(plan, &cluster.layout, record)?;
        let mut stage = Self {
            from: from.clone(),
            to: to.clone(),
            cluster,
            agent: bench.agent.clone(),
            tools: if from.system == System::Etcd { bench.tools.clone() } else { Vec::new() },
            playbooks: BTreeMap::new(),
            is_forward: BTreeSet::new(),
            newcomers: BTreeMap::new(),
            ports: Vec::new(),
            disks,
            doors,
            network: None,
            written: Written::on(known),
            leases: Leases::default(),
        };
        stage.write_playbooks(None)?;
        Ok(stage)
    }

    /// Writes every host's playbook: to the new release, or of a change of members (its kind, and its line).
    pub(super) fn write_playbooks(&mut self, members: Option<(&'static str, String)>) -> Result<(), Error> {
        let mut change = Upgrade::new(self.layout(), &self.to);
        let downtime = if self.size() < 3 { STRATEGY.len() } else { STRATEGY.len() - 1 };
        change.strategy = STRATEGY[..downtime].iter().map(ToString::to_string).collect();
        (change.members, change.node) = (members, place);
        change.cluster = self.auth()?.into_iter().collect();
        let all = self.hosts().into_iter().chain(self.newcomers.keys().copied());
        let write = |host| Ok::<_, Error>((host, change.write_host(self.layout(), &[self.member(host)])?));
        self.playbooks = all.map(write).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// As whom agents log in, where the cluster wants to know: a line of playbooks.
    fn auth(&self) -> Result<Option<String>, Error> {
        let Some((user, password)) = &self.layout().user else { return Ok(None) };
        let file = self.layout().dir.join("password");
        fs::write(&file, password)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        Ok(Some(format!("auth: {{ user: {}, password_file: {} }}", quoted(user), quoted(&file.to_string_lossy()))))
    }

    pub(super) async fn start(&mut self, leader: Host) -> Result<(), Error> {
        if let Some(doors) = &self.doors {
            let ports = self.layout().members.iter().map(|member| member.peer_port);
            let ways: Vec<_> = doors.numbers.iter().copied().zip(ports).collect();
            self.network = Some(Network::start_with_newcomers(self.layout(), &ways).await?);
        }
        self.cluster.begin().await?;
        if self.size() > 1 {
            self.layout().make_leader(self.member(leader)).await?;
        }
        let clients = self.clients()?;
        self.written.fill(&clients).await
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.cluster.layout
    }

    pub(super) fn size(&self) -> usize {
        self.layout().members.len()
    }

    /// The hosts of the members, in the members' order.
    pub(super) fn hosts(&self) -> Vec<Host> {
        self.layout().members.iter().filter_map(|member| tree::host(&member.name)).collect()
    }

    /// Plans know no other hosts than those of members and newcomers.
    pub(super) fn member(&self, host: Host) -> &Member {
        let is_its = |member: &&Member| tree::host(&member.name) == Some(host);
        let listed = self.layout().members.iter().find(is_its);
        self.newcomers.get(&host).or(listed).unwrap_or(&self.layout().members[0])
    }

    pub(super) fn clients(&self) -> Result<Vec<Client>, Error> {
        self.layout().members.iter().map(|member| self.layout().client(member)).collect()
    }

    /// The release that this member runs when nothing is under way.
    pub(super) fn release(&self, host: Host) -> &Build {
        if self.is_forward.contains(&host) { &self.to } else { &self.from }
    }

    /// Which cluster version all members hold when nothing is under way: the lowest of what they run, and that of the
    /// target as soon as a downgrade to it has begun.
    pub(super) fn cluster_version(&self) -> ClusterVersion {
        let (old, new) = (self.from.release.cluster_version(), self.to.release.cluster_version());
        let forward = self.is_forward.len();
        let has_changed = if new < old { forward > 0 } else { forward == self.size() };
        if has_changed { new } else { old }
    }

    /// How members stand, as far as they say.
    pub(super) async fn standing(&self) -> Vec<MemberRow> {
        let mut standing = Vec::new();
        for member in &self.layout().members {
            let said = match self.layout().client(member) {
                Ok(client) => client.versions().await.ok(),
                Err(_) => None,
            };
            let (runs, cluster_version) = said.map(|said| (said.server, said.cluster)).unzip();
            let binary = member.release().ok().map(|release| release.to_string());
            standing.push(MemberRow { member: member.name.clone(), binary, runs, cluster_version });
        }
        standing
    }
}

/// Whether members are to be cut off from each other, or far.
fn is_through_a_network(plan: &Plan) -> bool {
    let mut faults = plan.steps.iter().flat_map(|step| &step.faults);
    faults.any(|fault| matches!(fault.trouble, Trouble::MemberCutOff { .. } | Trouble::LinkSlow { .. }))
}

/// A file system of its own for the data of each member whose host loses power; where none can be mounted the fault is
/// not injected, and the plan goes on.
fn disks(plan: &Plan, layout: &Layout, record: &Record) -> Result<BTreeMap<Host, Mounted>, Error> {
    let mut disks = BTreeMap::new();
    for step in &plan.steps {
        for fault in &step.faults {
            let Trouble::PowerCut { member } = fault.trouble else { continue };
            if disks.contains_key(&member) {
                continue;
            }
            let dir = &layout.members[member].dir;
            let mounted = Mounted::ext4(&dir.join("disk"), &dir.join("disk.img"), DISK);
            let mounted = mounted.and_then(|disk| {
                // Not the file system itself: what a member's folder has beside its data would be refused.
                match dir.join("data").is_dir() {
                    true => {
                        lab::folder::copy(&dir.join("data"), &dir.join("disk/data"))?;
                        fs::remove_dir_all(dir.join("data"))?;
                    }
                    false => fs::create_dir(dir.join("disk/data"))?,
                }
                std::os::unix::fs::symlink("disk/data", dir.join("data"))?;
                disk.sync()?;
                Ok(disk)
            });
            match mounted {
                Ok(disk) => drop(disks.insert(member, disk)),
                Err(error) => record.missed(step, fault, error.to_string()),
            }
        }
    }
    Ok(disks)
}
