//! The way down, as an operator goes it: a downgrade is enabled, members whose storage is ready are started with the lower release,
//! and perhaps it is called off on the way.

use node::cluster::{Cluster, downgrade::LOWEST};
use proto::{
    ClusterVersion,
    etcdserverpb::{DowngradeRequest, downgrade_request::DowngradeAction, maintenance_client::MaintenanceClient},
};

use crate::{
    machine::{Machine, Role},
    network::HostId,
    plan::Fault,
    world::{RESTART, World},
};

/// How the cluster was when it was looked at last, and what was asked of it.
#[derive(Default)]
pub struct Downgrades {
    version: Option<ClusterVersion>,
    target: Option<ClusterVersion>,
    /// Somebody has asked to call one off: who goes down by what it knew before may be too late, and has to come up again.
    pub(crate) is_called_off: bool,
}

impl World {
    fn there(&self) -> impl Iterator<Item = &Machine> {
        self.machines.values().filter(|machine| machine.role != Role::Removed)
    }

    fn ask_for_downgrade(&mut self, action: DowngradeAction, target: Option<ClusterVersion>) -> bool {
        let version = target.map(|target| target.to_string()).unwrap_or_default();
        let request = DowngradeRequest { action: action as i32, version };
        self.ask(move |channel| {
            let request = request.clone();
            async move { MaintenanceClient::new(channel).downgrade(request).await.map(drop) }
        })
    }

    /// Not in the middle of an upgrade: no release is two minors above the cluster.
    pub(crate) fn downgrade(&mut self) -> bool {
        let Some(version) = self.cluster().and_then(|cluster| cluster.version) else { return false };
        if version <= LOWEST || self.there().any(|machine| machine.release().cluster_version() != version) {
            return false;
        }
        let target = ClusterVersion { minor: version.minor - 1, ..version };
        self.ask_for_downgrade(DowngradeAction::Enable, Some(target))
    }

    pub(crate) fn call_off(&mut self) -> bool {
        if self.cluster().is_none_or(|cluster| cluster.downgrade.is_none()) {
            return false;
        }
        self.downgrades.is_called_off = true;
        self.ask_for_downgrade(DowngradeAction::Cancel, None)
    }

    /// Starts those with the lower release that are to go down, once they say themselves that what they have stored is fit for that
    /// (N-8): at once, and however they end. Then they must start.
    pub(crate) fn go_down(&mut self) {
        let is_ready = |machine: &Machine| {
            let member = machine.member().filter(|_| machine.goes_down)?;
            let snapshot = member.snapshot_index();
            let (target, stored) = member.read(|s| (s.cluster.downgrade, s.cluster.storage_version(snapshot)));
            target.filter(|target| stored == Some(*target) && target.minor < machine.minor)
        };
        let ready = |(host, machine): (&HostId, &Machine)| Some((*host, is_ready(machine)?));
        let ready: Vec<_> = self.machines.iter().filter_map(ready).collect();
        for (host, target) in ready {
            let starts_at = self.now + 3_000_000;
            let how = self.chance.below(3);
            let Some(machine) = self.machines.get_mut(&host) else { continue };
            match how {
                0 => machine.stop(),
                1 => machine.kill(),
                _ => _ = self.lose_power(host, starts_at),
            }
            let Some(machine) = self.machines.get_mut(&host) else { continue };
            (machine.minor, machine.patch) = (target.minor, 0);
            (machine.goes_down, machine.has_gone_down) = (false, true);
            machine.starts_at = Some(starts_at);
            self.count(Fault::GoDown { host });
        }
    }

    /// Counts what has come of it.
    pub(crate) fn follow_downgrades(&mut self, cluster: &Cluster) {
        let Downgrades { version, target, .. } = self.downgrades;
        if cluster.version < version {
            self.count(Fault::Downgrade);
        }
        let is_over = |target: ClusterVersion| self.there().all(|machine| machine.minor <= target.minor);
        if target.is_some_and(|target| cluster.downgrade.is_none() && !is_over(target)) {
            self.count(Fault::CallOff);
        }
        self.come_up(cluster);
        if target != cluster.downgrade {
            // The next one may ask.
            self.asks_until = self.now;
        }
        (self.downgrades.version, self.downgrades.target) = (cluster.version, cluster.downgrade);
    }

    /// Who has gone down before it was called off waits, and takes no part (J-05), until it is started with the release that it had.
    fn come_up(&mut self, cluster: &Cluster) {
        let Some(version) = cluster.version.filter(|_| self.downgrades.is_called_off && cluster.downgrade.is_none())
        else {
            return;
        };
        let starts_at = self.now + RESTART;
        for machine in self.machines.values_mut().filter(|machine| machine.has_gone_down && machine.is_up()) {
            machine.has_gone_down = false;
            if machine.minor < version.minor {
                machine.kill();
                (machine.minor, machine.patch) = (version.minor, 0);
                machine.starts_at = Some(starts_at);
            }
        }
    }

    /// In the end none may be under way: one that not all have followed is called off.
    pub(crate) fn end_downgrade(&mut self) {
        let target = self.cluster().and_then(|cluster| cluster.downgrade);
        if target.is_some_and(|target| self.there().any(|machine| machine.minor > target.minor)) {
            self.call_off();
        }
    }
}
