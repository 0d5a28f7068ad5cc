//! What is to be run: a matrix, and the cells that it comes to.

use std::{collections::BTreeMap, fmt};

use lab::{chance::Chance, system::System};
use proto::Release;

use agent::playbook::Artifact;

use crate::past::ancestry::Ancestry;

/// A matrix, as its file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// What it is called in reports.
    pub name: String,
    /// What is tested, of either system.
    pub systems: Vec<Tested>,
    /// How many members clusters have.
    pub sizes: Vec<usize>,
    /// Whether members and clients speak TLS, and each shows a certificate.
    pub tls: Vec<bool>,
    pub faults: Vec<Column>,
    /// How many plans of each cell, each from a seed of its own.
    pub plans: u64,
    pub seed: u64,
}

/// One system's releases and the ways between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    pub system: System,
    /// Where each release comes from.
    pub releases: BTreeMap<Release, Artifact>,
    pub paths: Vec<Path>,
    /// What clusters have behind them, each besides none. A path that begins where one ends is gone with it, too.
    pub pasts: Vec<Ancestry>,
    /// Whose etcdctl is typed during each step.
    pub etcdctl: Vec<Release>,
}

/// From one release to another, a minor apart at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// What members run at first.
    pub from: Release,
    /// What they run in the end.
    pub to: Release,
}

/// One kind of trouble, or all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    None,
    /// Agents are killed when they sync their journal.
    AgentKilled,
    AgentLate,
    /// Leadership is moved by somebody else.
    LeaderMoved,
    /// Members are killed, and started again by whoever looks after them.
    MemberKilled,
    /// Members stand still for a while.
    MemberPaused,
    /// Members are restarted by hand, when it is not their turn.
    MemberRestarted,
    /// Hosts lose what their members' file system had not on disk.
    PowerCut,
    /// Every host restarts its member by way of `agent guard`.
    HostsGuarded,
    /// Members are killed as they sync.
    MemberKilledAtSync,
    /// Members' disks take longer to sync.
    DiskSlow,
    /// Members neither hear the others nor are heard by them.
    MemberCutOff,
    /// What members tell each other arrives late.
    LinkSlow,
    /// History is compacted and members are defragmented all the time.
    Maintenance,
    /// An alarm stands for a while.
    AlarmRaised,
    /// Members come and go between the steps; nothing goes wrong.
    MembersChange,
    Mixed,
}

impl Column {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 17] = [
        Self::None,
        Self::AgentKilled,
        Self::AgentLate,
        Self::LeaderMoved,
        Self::MemberKilled,
        Self::MemberPaused,
        Self::MemberRestarted,
        Self::PowerCut,
        Self::HostsGuarded,
        Self::MemberKilledAtSync,
        Self::DiskSlow,
        Self::MemberCutOff,
        Self::LinkSlow,
        Self::Maintenance,
        Self::AlarmRaised,
        Self::MembersChange,
        Self::Mixed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::AgentKilled => "agent_killed",
            Self::AgentLate => "agent_late",
            Self::LeaderMoved => "leader_moved",
            Self::MemberKilled => "member_killed",
            Self::MemberPaused => "member_paused",
            Self::MemberRestarted => "member_restarted",
            Self::PowerCut => "power_cut",
            Self::HostsGuarded => "hosts_guarded",
            Self::MemberKilledAtSync => "member_killed_at_sync",
            Self::DiskSlow => "disk_slow",
            Self::MemberCutOff => "member_cut_off",
            Self::LinkSlow => "link_slow",
            Self::Maintenance => "maintenance",
            Self::AlarmRaised => "alarm_raised",
            Self::MembersChange => "members_change",
            Self::Mixed => "mixed",
        }
    }

    /// Whether it is of links between members. They are laid when a cluster is, so that one with a past has none.
    pub fn is_of_links(self) -> bool {
        matches!(self, Self::MemberCutOff | Self::LinkSlow)
    }

    /// Whether anything goes wrong in its plans.
    pub fn has_faults(self) -> bool {
        !matches!(self, Self::None | Self::MembersChange)
    }
}

/// One plan to be made and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub system: System,
    pub path: Path,
    pub size: usize,
    pub tls: bool,
    /// What the cluster has behind it when its plan begins; `None` where it begins anew.
    pub past: Option<Ancestry>,
    pub column: Column,
    pub seed: u64,
}

impl Matrix {
    /// Every cell, in the order of a report.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for tested in &self.systems {
            for path in &tested.paths {
                let sizes = self.sizes.iter().flat_map(|size| self.tls.iter().map(|tls| (*size, *tls)));
                let begins_here = |past: &&Ancestry| *past.end() == path.from;
                let pasts = tested.pasts.iter().filter(begins_here).cloned().map(Some);
                let pasts: Vec<_> = [None].into_iter().chain(pasts).collect();
                for ((size, tls), past) in sizes.flat_map(|size| pasts.iter().map(move |past| (size, past))) {
                    let can_be = |column: &&Column| past.is_none() || !column.is_of_links();
                    for column in self.faults.iter().filter(can_be) {
                        for seed in self.seed..self.seed.saturating_add(self.plans) {
                            let (system, path, past) = (tested.system, path.clone(), past.clone());
                            cells.push(Cell { system, path, size, tls, past, column: *column, seed });
                        }
                    }
                }
            }
        }
        cells
    }

    /// So many of the cells that are wanted, round and round, each from the next seed.
    pub fn sample(&self, count: usize, is_wanted: impl Fn(&Cell) -> bool) -> Vec<Cell> {
        let one = Self { plans: 1, ..self.clone() };
        let wanted: Vec<Cell> = one.cells().into_iter().filter(is_wanted).collect();
        let seeded = |(cell, seed): (&Cell, u64)| Cell { seed, ..cell.clone() };
        wanted.iter().cycle().zip(self.seed..=u64::MAX).take(count).map(seeded).collect()
    }

    /// The cell of this whole name, whatever its seed.
    pub fn cell(&self, id: &str) -> Option<Cell> {
        let (_, seed) = id.rsplit_once('/')?;
        let seed = seed.parse().ok()?;
        let one = Self { seed, plans: 1, ..self.clone() };
        one.cells().into_iter().find(|cell| cell.id() == id)
    }
}

impl Cell {
    /// What `--only` takes: `etcd/3.5.30-3.6.14/3/mixed/7`, or `…/3-tls/…`, or `…/3-lived-in/…` where it has a past of this name.
    pub fn id(&self) -> String {
        let Self { system, path, size, tls, past, column, seed } = self;
        let tls = if *tls { "-tls" } else { "" };
        let past = past.iter().map(|past| format!("-{}", past.name)).collect::<String>();
        format!("{system}/{}-{}/{size}{tls}{past}/{}/{seed}", path.from, path.to, column.name())
    }

    /// What it is, but for its faults and its seed: a row of a report.
    pub fn row(&self) -> String {
        let members = if self.size == 1 { "1 member".into() } else { format!("{} members", self.size) };
        let past = self.past.iter().map(|past| format!(", past: {}", past.name)).collect::<String>();
        format!("{} {}, {members}{}{past}", self.system, self.path, if self.tls { ", TLS" } else { "" })
    }

    /// The chance that makes its plan: of its seed, and of all else that it is, so that no two cells get the same.
    pub fn chance(&self) -> Chance {
        // FNV-1a, which will be the same tomorrow.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Chance::of(self.id().bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }
}

impl Path {
    /// Whether it leads down a minor.
    pub fn is_down(&self) -> bool {
        self.to.cluster_version() < self.from.cluster_version()
    }

    /// Whether there is a point of no return on it.
    pub fn changes_minor(&self) -> bool {
        self.to.cluster_version() != self.from.cluster_version()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, faults: {}, seed {}", self.row(), self.column.name(), self.seed)
    }
}
