//! One look for the verbs that only look: members and keys, asked side by side.

use std::sync::Arc;

use proto::ClusterVersion;

use crate::{
    event::trouble::Trouble,
    keys::Keys,
    observe::{Observer, permission::Permission, view::ClusterView},
    plan::membership::survey::{Place, Survey},
    playbook::{Cluster, Playbook},
    report::names::Names,
    store::{NotRead, Snapshot, Store, stored},
};

#[derive(Debug)]
pub struct Prober {
    observer: Observer,
    pub store: Store,
}

#[derive(Debug)]
pub struct ClusterSnapshot {
    pub view: ClusterView,
    /// The keys as they are stored, or why they could not be read: without quorum they cannot.
    pub raw: Result<Snapshot, NotRead>,
    pub names: Names,
}

/// What the leader says of a downgrade when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downgrade {
    /// There is none, or the members say it themselves.
    None,
    To(ClusterVersion),
    /// It does not say, as to a user without the role root.
    NotReported,
}

impl Prober {
    /// What looks at the members.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Reads the files that the playbook names; connects to nobody yet.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn open(cluster: &Cluster) -> Result<Self, Trouble> {
        let observer = Observer::connect(cluster)?;
        let store = Store::new(&observer, Arc::default());
        Ok(Self { observer, store })
    }

    /// Looks.
    ///
    /// # Errors
    /// Nothing can be said about the cluster as a whole.
    pub async fn look(&self) -> Result<ClusterSnapshot, Trouble> {
        // No key is asked for where it is not clear yet which cluster this is.
        self.observer.meet().await?;
        // A cluster that cannot be looked at ends the wait for its keys.
        let look = async { self.observer.look().await.map_err(Trouble::from) };
        let (view, raw) = tokio::try_join!(look, async { Ok(self.store.read().await) })?;
        let names = Names::of(&view);
        Ok(ClusterSnapshot { view, raw, names })
    }

    /// Who is listed, as a quorum says, beside this host's places; none where run or step were changed meanwhile.
    ///
    /// # Errors
    /// No member has a quorum, or the keys cannot be read.
    pub async fn survey(&self, keys: &Keys, places: Vec<Place>) -> Result<Option<Survey>, Trouble> {
        let listed = self.observer.peer_urls().await?;
        let after = read(&self.store.read().await)?;
        let written =
            |keys: &Keys| (keys.run.as_ref().map(|run| run.modified), keys.step.as_ref().map(|step| step.modified));
        Ok((written(keys) == written(&after)).then_some(Survey { listed, places }))
    }

    /// A downgrade that no member tells of by itself, as none before etcd 3.6 does.
    pub async fn downgrade(&self, view: &ClusterView) -> Downgrade {
        const TELLS: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
        let leader = view.leader().and_then(|leader| Some((leader, leader.report()?)));
        let Some((leader, report)) = leader.filter(|(_, report)| report.release.cluster_version() < TELLS) else {
            return Downgrade::None;
        };
        let Some(version) = report.cluster_version else { return Downgrade::None };
        match self.observer.is_going_down(leader.id, version).await {
            Some(true) => Downgrade::To(version),
            Some(false) => Downgrade::None,
            None => Downgrade::NotReported,
        }
    }

    /// Why the keys were not read, where that is for want of a role.
    pub async fn unread(&self, why: Trouble, viewer: Option<String>) -> Trouble {
        match viewer {
            Some(user) if self.observer.reads_keys().await == Some(Permission::Denied) => {
                Trouble::KeysForbidden { user }
            }
            _ => why,
        }
    }

    /// The playbook's user, where the cluster lets it look and not carry the playbook out: it lacks the role root.
    ///
    /// # Errors
    /// The user is refused, or nobody answers.
    pub async fn viewer(&self, playbook: &Playbook) -> Result<Option<String>, Trouble> {
        match &playbook.cluster.auth {
            Some(auth) if !self.observer.is_administrator().await? => Ok(Some(auth.user.clone())),
            _ => Ok(None),
        }
    }
}

impl ClusterSnapshot {
    /// The keys; learns the hosts' names from them.
    ///
    /// # Errors
    /// They could not be read, or not be understood.
    pub fn keys(&mut self) -> Result<Keys, Trouble> {
        let keys = read(&self.raw)?;
        self.names.learn_hosts(&keys);
        Ok(keys)
    }
}

pub(super) fn read(raw: &Result<Snapshot, NotRead>) -> Result<Keys, Trouble> {
    let raw = raw.as_ref().map_err(|not_read| match not_read {
        NotRead::Unknown(unknown) => Trouble::unanswered(format!("the keys: {unknown}")),
        NotRead::Oversize(oversize) => Trouble::KeysTooLarge(oversize.to_string()),
    })?;
    Ok(stored::keys(raw)?)
}
