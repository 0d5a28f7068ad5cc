//! What befalls members: they are started with other releases, come and go, and are put at a lower version offline.

use super::*;

impl World {
    /// Whoever runs it next: another release where it can be, another flag.
    pub(super) fn restart(&mut self) {
        let id = self.one();
        let old = &self.processes[&id];
        let (at, starts) = (old.at, old.own.starts.0 + 1);
        let now = RELEASES.iter().position(|release| old.release == release.parse().unwrap()).unwrap();
        let to = RELEASES[(now + self.chance.below(3)).saturating_sub(1).min(RELEASES.len() - 1)];
        let overrides = match self.chance.below(3) {
            0 => Overrides::default(),
            flag => Overrides([(NAMES[self.chance.below(3)].to_owned(), flag == 1)].into()),
        };
        let mut new = Process::of(id, to, starts, overrides);
        let may_read = self.marks[at].version.is_none_or(|version| version <= new.release.cluster_version());
        match new.load(&self.marks[at].stored, at) {
            Ok(()) => assert!(may_read, "{to} reads what is stored for a higher version"),
            Err(StateError::Storage { .. }) => return assert!(!may_read, "{to} does not read what it can"),
            Err(error) => panic!("{error}"),
        }
        // Who is too low for what it has not applied yet stops there.
        if self.is_supported(&new.release) {
            self.processes.insert(id, new);
            self.compare(id, at);
        }
    }

    /// At most one minor lies between a release and the cluster's version (KEP-4647, "Version Skew Strategy").
    fn is_supported(&self, release: &Release) -> bool {
        self.first.version().is_none_or(|version| release.cluster_version().minor <= version.minor + 1)
    }

    pub(super) fn change_members(&mut self) {
        let (count, learners) = (self.processes.len(), self.processes.len() - self.voters.len());
        match self.chance.below(3) {
            0 if count < 5 && learners == 0 => {
                let (id, votes) = (self.next_id, self.chance.one_in(2));
                self.next_id += 1;
                let release = RELEASES[self.chance.below(RELEASES.len())];
                let mut new = Process::of(id, release, 1, Overrides::default());
                let at = self.log.len();
                if new.load(&self.marks[at].stored, at).is_err() || !self.is_supported(&new.release) {
                    return;
                }
                self.processes.insert(id, new);
                self.voters.extend(votes.then_some(id));
            }
            1 => {
                let Some(learner) = self.processes.keys().find(|id| !self.voters.contains(id)) else { return };
                let lags = self.processes.keys().map(|id| (MemberId(*id), 0)).collect();
                let rules = Rules { is_strict: false, max_learners: 1, registry: newest() };
                if self.first.cluster().changed(&Change::Promote(MemberId(*learner)), rules, &lags).is_err() {
                    return;
                }
                self.voters.insert(*learner);
            }
            2 if self.voters.len() > 1 => {
                let gone = self.one();
                self.processes.remove(&gone);
                self.voters.remove(&gone);
                if self.voters.is_empty() {
                    self.voters.extend(self.processes.keys());
                }
            }
            _ => return,
        }
        let addresses = self.processes.keys().map(|id| (*id, format!("http://p{id}"))).collect();
        self.commit(Content::Members(Members { voters: self.voters.clone(), addresses }));
    }

    /// All are stopped, each where it is, and put at a lower version there, where `node migrate` allows it; then they go on.
    pub(super) fn lower(&mut self) {
        let Some(now) = self.first.version().filter(|now| *now > LOWEST) else { return };
        let target = ClusterVersion { minor: now.minor - 1, ..now };
        let own = newest_release().cluster_version();
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            let process = &self.processes[&id];
            let against = |content| {
                let version = process.version().unwrap_or(LOWEST);
                version < target || tail::against(content, own, version, target).is_some()
            };
            if self.log[process.at..].iter().any(against) {
                self.catch_up(id);
            }
        }
        let before = self.first.cluster();
        self.first.machine.lower_to(target);
        self.marks.pop();
        self.mark(&before);
        self.seen.lowered += 1;
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            let old = &self.processes[&id];
            old.machine.lower_to(target);
            let (stored, at, starts) = (old.stored(), old.at, old.own.starts.0 + 1);
            let is_supported = |release: &&&str| self.is_supported(&release.parse().unwrap());
            let highest = RELEASES.iter().rev().find(is_supported).unwrap().parse().unwrap();
            let release = old.release.clone().min(highest).to_string();
            let mut new = Process::of(id, &release, starts, old.own.overrides.clone());
            new.load(&stored, at).unwrap();
            // What it replays now was applied by others at the version before.
            let rest: Vec<_> = (at..self.log.len()).map(|at| (at as u64 + 1, self.log[at].clone())).collect();
            self.seen.lowered_behind += usize::from(!rest.is_empty());
            new.machine.apply(&rest).unwrap();
            self.processes.insert(id, new);
            self.compare(id, self.log.len());
        }
    }

    /// It has stopped, as the cluster has risen without it: it is started with a release that goes.
    pub(super) fn restart_stopped(&mut self, id: u64) {
        let old = &self.processes[&id];
        let highest = self.marks[old.at..].iter().filter_map(|mark| mark.version).max();
        let is_fit = |release: &&&str| {
            let release: Release = release.parse().unwrap();
            highest.is_none_or(|version| version <= release.cluster_version())
        };
        let fit = RELEASES.iter().find(is_fit).unwrap();
        let mut new = Process::of(id, fit, old.own.starts.0 + 1, old.own.overrides.clone());
        new.load(&self.marks[old.at].stored, old.at).unwrap();
        self.processes.insert(id, new);
    }
}
