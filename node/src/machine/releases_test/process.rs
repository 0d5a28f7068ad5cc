//! One process of a member: what it is, and what it has.

use super::*;

pub(super) struct Process {
    pub(super) release: Release,
    pub(super) machine: Machine,
    pub(super) own: Own,
    /// The last entry that it has applied, and was looked at after.
    pub(super) at: usize,
}

impl Process {
    pub(super) fn of(id: u64, release: &str, starts: u64, overrides: Overrides) -> Self {
        let release: Release = release.parse().unwrap();
        let own = Own {
            id: MemberId(id),
            starts: Starts(starts),
            start_id: None,
            incarnation: None,
            name: format!("m{id}"),
            client_urls: vec![format!("http://{id}")],
            overrides,
        };
        let proposals = Proposals::new(own.id, own.starts);
        let machine = Machine::new(release.clone(), Registry::of(&release), proposals);
        Self { machine, release, own, at: 0 }
    }

    /// The state as it is stored here.
    pub(super) fn stored(&self) -> Vec<u8> {
        let state = self.machine.frozen();
        state.snapshot(state.form(self.machine.registry())).flatten().collect()
    }

    pub(super) fn load(&mut self, stored: &[u8], at: usize) -> Result<(), StateError> {
        let mut restore = Restore::by(&self.release);
        restore.push(stored)?;
        *self.machine.write() = restore.finish()?;
        self.at = at;
        Ok(())
    }

    pub(super) fn on(&self) -> [bool; 4] {
        NAMES.map(|name| self.machine.read(|state| state.cluster.is_enabled(name, self.machine.registry())))
    }

    pub(super) fn cluster(&self) -> Cluster {
        self.machine.read(|state| state.cluster.clone())
    }

    pub(super) fn version(&self) -> Option<ClusterVersion> {
        self.machine.read(|state| state.cluster.version)
    }
}
