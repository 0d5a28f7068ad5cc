//! What may happen in a world, and what it comes to once nothing happens any more.

use crate::{
    cluster::membership::{Change, Rules},
    state::Restore,
};

use super::{properties::quorums_meet, *};

impl World {
    /// Nothing changes any more, and the leader goes on: what it comes to.
    pub(super) fn settled(&self) -> Found<Self> {
        let mut world = Self { silent: None, ..self.clone() };
        while let Some(pending) = world.pending.pop() {
            world.apply_or_drop(pending)?;
        }
        let version = world.version();
        for process in world.processes.values_mut() {
            // Whoever has stopped is started with a release that goes.
            if version.is_some_and(|version| version > process.release().cluster_version()) {
                let fits = |release: &&str| version <= Some(release_of(release).cluster_version());
                let release = ["3.8.0", "3.9.0"].into_iter().find(fits).unwrap();
                (process.release, process.starts) = (release, process.starts + 1);
            }
        }
        for _ in 0..60 {
            if let Some(entry) = world.due().into_iter().next() {
                world.apply(entry)?;
                continue;
            }
            let (cluster, version) = (&world.state.cluster, world.version());
            hold(version.is_some(), || "no version, and nothing is due".into())?;
            if !cluster.has_gates() {
                return hold(cluster.gate == Gate::Undecided, || "a gate below 3.6".into()).map(|()| world);
            }
            let voters = world.processes.iter().filter(|(id, _)| !cluster.members[&MemberId(**id)].is_learner);
            let wants = |(_, p): (&u64, &Process)| p.registry().proposal(version.unwrap_or(LOWEST), &p.overrides());
            let all: Vec<Features> = voters.map(wants).collect();
            let wanted = all.iter().flat_map(Features::names);
            let is_on = |name: &str| all.iter().all(|wants| wants.get(name) == Some(true));
            let wanted = Gate::Decided(wanted.map(|name| (name.to_owned(), is_on(name))).collect());
            return hold(cluster.gate == wanted, || format!("it rests at {:?}, not at {wanted:?}", cluster.gate))
                .map(|()| world);
        }
        Err("it comes to no rest".into())
    }

    /// What is stored for the cluster's version every release that can have it writes alike, and reads whole.
    pub(super) fn stored(&self) -> Found<()> {
        let mut forms = BTreeSet::new();
        for (_, process) in self.running() {
            let form = self.state.form(&process.registry());
            forms.insert((form.storage, form.compresses));
            let mut restore = Restore::by(&process.release());
            for piece in self.state.snapshot(form) {
                restore.push(&piece).map_err(|error| error.to_string())?;
            }
            let read = restore.finish().map_err(|error| error.to_string())?;
            hold(read == self.state, || "stored and read, it is another state".into())?;
        }
        hold(forms.len() <= 1, || format!("two releases store one state in two forms: {forms:?}"))
    }

    /// Who was started before its cluster rose is stopped; an entry of a member that is gone says nothing.
    fn apply_or_drop(&mut self, pending: Pending) -> Found<()> {
        if let Pending::Members(to) = &pending {
            let voters: BTreeSet<_> = self.state.cluster.voters().map(|(id, _)| id).collect();
            let meet = quorums_meet(&voters, &to.voters);
            hold(meet, || format!("{voters:?} and {:?} may have quorums that do not meet", to.voters))?;
            self.processes.retain(|id, _| to.peer_urls.contains_key(&MemberId(*id)));
        }
        self.apply(pending)
    }

    fn change(&self, change: &Change) -> Option<Self> {
        let is_changing = self.pending.iter().any(|pending| matches!(pending, Pending::Members(_)));
        if is_changing && self.wrong != Some(Wrong::ChangesOverlap) {
            return None;
        }
        let rules = Rules { is_strict: false, max_learners: 1, registry: Registry::of(&"3.8.0".parse().unwrap()) };
        let lags = self.processes.keys().map(|id| (MemberId(*id), 0)).collect();
        let to = self.state.cluster.changed(change, rules, &lags).ok()?;
        let mut next = self.clone();
        next.left.members = self.left.members.checked_sub(1)?;
        next.pending.push(Pending::Members(to));
        Some(next)
    }

    /// Everything that may happen now.
    pub(super) fn next(&self, small: &Small) -> Found<Vec<Self>> {
        let mut all = Vec::new();
        for at in 0..self.pending.len() {
            let mut next = self.clone();
            let entry = next.pending.remove(at);
            let is_of_cluster = matches!(entry, Pending::Cluster(_));
            // Lost; a list of members never is: whoever leads next has it, or never had it.
            all.extend(is_of_cluster.then(|| next.clone()));
            next.apply_or_drop(entry)?;
            if self.left.doubles > 0 && is_of_cluster {
                let mut again = next.clone();
                again.left.doubles -= 1;
                again.pending.push(self.pending[at].clone());
                all.push(again);
            }
            all.push(next);
        }
        for entry in self.due().into_iter().filter(|entry| self.pending.len() < 2 && !self.pending.contains(entry)) {
            let mut next = self.clone();
            next.pending.push(entry);
            all.push(next);
        }
        all.extend(self.restarts(small));
        if self.left.members > 0 {
            all.extend(self.changes(small));
        }
        all.extend(self.silences());
        all.extend(self.writes());
        if let (Some(version), true) = (self.version(), self.left.downgrades > 0) {
            let down = ClusterVersion { minor: version.minor - 1, ..version };
            let to = Some(down).filter(|_| self.state.cluster.downgrade.is_none());
            let mut next = self.clone();
            next.left.downgrades -= 1;
            next.apply(Pending::Cluster(ClusterEntry::Downgrade { to }))?;
            all.push(next);
        }
        Ok(all)
    }

    fn restarts(&self, small: &Small) -> Vec<Self> {
        let mut all = Vec::new();
        if self.left.restarts > 0 {
            for (id, old) in &self.processes {
                for (release, flag) in small.others.iter().flat_map(|r| [None, Some(false)].map(|flag| (*r, flag))) {
                    let new = Process { release, starts: old.starts + 1, flag };
                    // At most one minor lies between a release and the version (KEP-4647, "Version Skew Strategy").
                    let runs = new.release().cluster_version();
                    let fits = |v: ClusterVersion| v <= runs && runs.minor <= v.minor + 1;
                    if self.version().is_none_or(fits) {
                        let mut next = self.clone();
                        next.left.restarts -= 1;
                        next.processes.insert(*id, new);
                        all.push(next);
                    }
                }
            }
        }
        all
    }

    fn changes(&self, small: &Small) -> Vec<Self> {
        let mut all = Vec::new();
        let id = 9;
        for is_learner in [false, true] {
            let change = Change::Add { id: MemberId(id), peer_urls: vec!["http://p9".into()], is_learner };
            let flags = [None, Some(false)].map(|flag| Process { release: small.others[0], starts: 1, flag });
            for process in flags {
                all.extend(self.change(&change).map(|mut next| {
                    next.processes.insert(id, process);
                    next
                }));
            }
        }
        all.extend(self.change(&Change::Promote(MemberId(id))));
        all.extend(self.processes.keys().filter_map(|id| self.change(&Change::Remove(MemberId(*id)))));
        all
    }

    /// A member is heard no more, or again.
    fn silences(&self) -> Vec<Self> {
        let heard = self.silent.map(|_| Self { silent: None, ..self.clone() });
        let left = self.left.silences.checked_sub(1).filter(|_| self.silent.is_none());
        let silences = left.map(|silences| {
            let silent =
                move |id: &u64| Self { silent: Some(*id), left: Left { silences, ..self.left }, ..self.clone() };
            self.processes.keys().map(silent)
        });
        silences.into_iter().flatten().chain(heard).collect()
    }

    /// A client's write comes; what it needs is on so far, or it would be refused at once.
    fn writes(&self) -> Vec<Self> {
        let Some(writes) = self.left.writes.checked_sub(1) else { return Vec::new() };
        let is_on =
            |write: &Write| self.running().any(|(_, p)| self.state.cluster.is_enabled(write.feature(), &p.registry()));
        let comes = |write| {
            let mut next = Self { left: Left { writes, ..self.left }, ..self.clone() };
            next.pending.push(Pending::Write(write));
            next
        };
        Write::LASTING.into_iter().filter(is_on).map(comes).collect()
    }
}
