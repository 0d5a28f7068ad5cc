//! What a change of members asks of this host and of the cluster: its places, the calls, and the start of a newcomer.
//!
//! Source: agent/MEMBERS.md.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use proto::{MemberId, Revision};

use super::{Execution, as_event, error::ActError, node::OwnNode, process_member::says};
use crate::{
    event::RunEvent,
    host::{
        blocking::blocking,
        files::{
            durable,
            whose::{has_entries, put_aside},
        },
        runtime::Found,
    },
    keys::{Keys, membership::RoleChange},
    machine::act::Event,
    observe::role::Changed,
    plan::membership::{
        RoleStep,
        survey::{Data, Place, Survey},
    },
    playbook,
    words::with_causes,
};

/// How often the members are listed in one look, where others write meanwhile.
const SURVEYS: usize = 4;
/// How long a newcomer is looked at that was just started: what it was given wrongly ends it at once.
const ENDS_AT_ONCE: Duration = Duration::from_secs(1);
/// Between two tries to learn what a call has come to.
const ASKED_AGAIN: Duration = Duration::from_millis(500);
/// Between a refusal and the next try.
const REFUSED: Duration = Duration::from_secs(5);
/// How long a former member that was told of its removal may take to end by itself, and between two looks whether it has.
const ENDS_BY_ITSELF: Duration = Duration::from_secs(10);
const ENDED_YET: Duration = Duration::from_millis(50);

impl Execution<'_> {
    /// The list and this host's places, where members are changed. The list is of a moment in which run and step were as `keys` says
    /// then: what is read in between is asked for again, and is newer than the view.
    pub(super) async fn survey(&mut self, keys: &mut Option<Keys>) -> Option<Survey> {
        if !self.me.intent.change.changes_members() {
            return None;
        }
        for _ in 0..SURVEYS {
            let before = keys.as_ref().map(of_run_and_step)?;
            let listed = match self.cluster.observer.peer_urls().await {
                Ok(listed) => listed,
                Err(error) => {
                    tracing::info!(error = %with_causes(&error), "the members were not listed");
                    return None;
                }
            };
            let after = self.keys().await?;
            if of_run_and_step(&after) == before {
                let mut places = Vec::new();
                for at in 0..self.host.nodes.len() {
                    places.push(self.place(at).await);
                }
                return Some(Survey { listed, places });
            }
            *keys = Some(after);
        }
        None
    }

    async fn place(&mut self, at: usize) -> Place {
        let own = &self.host.nodes[at];
        let data = own.data().await;
        let runs = match own.status().await {
            Ok(status) => status.is_running(),
            // What cannot be asked is not taken for stopped.
            Err(_) => true,
        };
        Place { peer_urls: own.node.peer_urls.clone(), data, runs }
    }

    pub(super) async fn archive(&mut self, at: usize) -> Event {
        as_event(self.put_data_aside(at).await)
    }

    async fn put_data_aside(&mut self, at: usize) -> Result<(), ActError> {
        let own = self.own(at)?;
        if own.status().await?.is_running() {
            return Err("its process runs, and has its data open".into());
        }
        let folders = own.data_folders()?;
        let member = match own.data().await {
            Data::Of { member, .. } => Some(member),
            Data::None | Data::Unnamed => return Ok(()),
            // The plan knows whose it is: that of a member that did not come to its first log, or has lost it.
            Data::NoLog | Data::Unknown(_) => None,
        };
        let name = own.node.name.clone();
        for folder in folders {
            let put = move || has_entries(&folder).then(|| put_aside(&folder, member)).transpose();
            if let Some(aside) = blocking(put).await.map_err(|error| with_causes(&error))? {
                self.tell(RunEvent::DataPutAside { node: &name, path: &aside.to_string_lossy() });
            }
        }
        Ok(())
    }

    pub(super) async fn add_member(&mut self, at: usize) -> Event {
        let urls = match self.own(at) {
            Ok(own) => own.node.peer_urls.clone(),
            Err(why) => return Event::Failed(why.to_string().into()),
        };
        let Some(leader) = self.leading() else { return Event::Done };
        let name = self.host.nodes[at].node.name.clone();
        match self.cluster.observer.add_learner(leader, urls).await {
            Changed::Done => {
                self.tell(RunEvent::NewcomerAdded { node: &name });
                Event::Done
            }
            Changed::Refused(why) => self.not_now(why).await,
            Changed::Unknown(why) => self.not_known(&why).await,
        }
    }

    pub(super) async fn change_role(&mut self, step: RoleStep) -> Event {
        let Some(leader) = self.leading() else { return Event::Done };
        let RoleStep { member, change } = step;
        if change == RoleChange::Leave {
            self.host.removed.push(member);
        }
        if change == RoleChange::Promote
            && let Some(why) = self.is_not_reached(member).await
        {
            return self.not_now(why).await;
        }
        let observer = &self.cluster.observer;
        let sent = match change {
            RoleChange::Promote => observer.promote(leader, member).await,
            RoleChange::Leave => observer.remove(leader, member).await,
        };
        match sent {
            Changed::Done => {
                self.tell(match change {
                    RoleChange::Promote => RunEvent::Promoted { member },
                    RoleChange::Leave => RunEvent::Removed { member },
                });
                Event::Done
            }
            Changed::Refused(why) => self.not_now(why).await,
            Changed::Unknown(why) => self.not_known(&why).await,
        }
    }

    /// A learner that called the leader itself is sent its entries all the same, but as a voter it must be reached, and nobody is added
    /// while it is not.
    async fn is_not_reached(&self, member: MemberId) -> Option<String> {
        let listed = self.cluster.observer.peer_urls().await.ok()?;
        let urls = listed.get(&member).filter(|urls| !urls.is_empty())?;
        let others: Vec<_> =
            listed.iter().filter(|(id, _)| **id != member).flat_map(|(_, urls)| urls.clone()).collect();
        let mut last = None;
        for url in urls {
            match self.cluster.observer.peer_port(url, &others).await {
                Ok(()) => return None,
                Err(amiss) => last = Some(format!("its peer URL is {url}, and as this host sees it, {amiss}")),
            }
        }
        last.map(|why| {
            format!(
                "{why}; open the way there, or take it back with `agent abandon`, correct `peer_urls` and its --listen-peer-urls, and run \
                 again"
            )
        })
    }

    /// The machine asks again at once; what is refused now is mostly refused for some time.
    async fn not_now(&self, why: String) -> Event {
        self.pause(REFUSED).await;
        Event::Failed(why.into())
    }

    /// What came of it the next look shows.
    async fn not_known(&self, why: &str) -> Event {
        tracing::info!(%why, "a change of members was not answered");
        tokio::time::sleep(ASKED_AGAIN).await;
        Event::Done
    }

    fn leading(&self) -> Option<MemberId> {
        self.seen.last_view.as_ref()?.leader().map(|leader| leader.id)
    }

    /// etcd wants exactly the members that another one lists, each with its name: so the list is made right before the start.
    pub(super) async fn start_new(&mut self, at: usize, member: MemberId) -> Event {
        as_event(self.begin(at, member).await)
    }

    async fn begin(&mut self, at: usize, member: MemberId) -> Result<(), ActError> {
        let has_data = matches!(self.own(at)?.data().await, Data::Of { .. });
        if !has_data {
            let listed = self.cluster.observer.peer_urls().await.map_err(|error| with_causes(&error))?;
            let view = self.seen.last_view.as_ref().ok_or("no member was seen")?;
            let names = |id: MemberId| view.member(id).map(|one| one.name.clone()).filter(|name| !name.is_empty());
            let own = self.own(at)?.node.name.clone();
            let text = initial_cluster(&listed, |id| if id == member { Some(own.as_str().into()) } else { names(id) });
            self.host.nodes[at].set_initial_cluster(text)?;
        }
        let node = &mut self.host.nodes[at];
        node.member = member;
        let started = node.begin().await?;
        started.warnings.iter().for_each(|warning| self.warn(warning));
        self.tell(RunEvent::Started { member });
        let deadline = Instant::now() + ENDS_AT_ONCE;
        while Instant::now() < deadline && !matches!(self.own(at)?.data().await, Data::Of { .. }) {
            if !self.own(at)?.status().await?.is_running() {
                let why = self.with_last_words(member, "its process ended at once".into()).await;
                return Err(why.to_string().into());
            }
            tokio::time::sleep(ASKED_AGAIN / 5).await;
        }
        self.own(at)?.began_as(member).await
    }

    /// A former member ends by itself once it is told; where it does not, it is ended.
    pub(super) async fn retire(&mut self, at: usize) -> Event {
        as_event(self.retire_and_archive(at).await)
    }

    async fn retire_and_archive(&mut self, at: usize) -> Result<(), ActError> {
        let deadline = Instant::now() + ENDS_BY_ITSELF;
        while self.own(at)?.status().await?.is_running() && Instant::now() < deadline {
            tokio::time::sleep(ENDED_YET).await;
        }
        let node = &mut self.host.nodes[at];
        node.member = MemberId::default();
        let status = node.status().await?;
        if status.is_running() {
            self.must_be_nobodys(at).await?;
            let node = &mut self.host.nodes[at];
            let found = match status.process().map(|process| process.identity) {
                Some(named) => Found::Shown(crate::host::runtime::Judged { named, node: named }),
                None => Found::Unknown,
            };
            if let super::process::Stopped::Another(why) = node.stop(found).await? {
                return Err(why);
            }
            node.believe_looks();
        }
        self.put_data_aside(at).await
    }

    /// Refuses to end a process that says that it is a member: the directory may be an old one, and the process another's.
    async fn must_be_nobodys(&self, at: usize) -> Result<(), ActError> {
        let status = self.own(at)?.status().await?;
        let Some(process) = status.process().map(|process| process.identity) else { return Ok(()) };
        let listed = self.cluster.observer.peer_urls().await.map_err(|error| with_causes(&error))?;
        match says(process, &self.cluster.observer).await.into_iter().find(|member| listed.contains_key(member)) {
            Some(member) => Err(format!(
                "its process says that it is member {member}, which is listed; correct its runtime or `data_dir`"
            )
            .into()),
            None => Ok(()),
        }
    }

    fn own(&self, at: usize) -> Result<&OwnNode, ActError> {
        self.host.nodes.get(at).ok_or_else(|| "this host has no such seat".into())
    }
}

/// By when each was written last.
fn of_run_and_step(keys: &Keys) -> (Option<Revision>, Option<Revision>) {
    (keys.run.as_ref().map(|run| run.modified), keys.step.as_ref().map(|step| step.modified))
}

/// `name=url` of each, in order of id; one without a name gets one that nobody has: etcd compares the URLs alone.
fn initial_cluster(listed: &crate::observe::peers::PeerUrls, name: impl Fn(MemberId) -> Option<Arc<str>>) -> String {
    let one = |(id, urls): (&MemberId, &BTreeSet<String>)| {
        let name = name(*id).unwrap_or_else(|| format!("unnamed-{id}").into());
        urls.iter().map(|url| format!("{name}={url}")).collect::<Vec<_>>()
    };
    listed.iter().flat_map(one).collect::<Vec<_>>().join(",")
}

impl OwnNode {
    /// One that was not told who the members are begins a cluster of its own.
    async fn began_as(&self, wanted: MemberId) -> Result<(), ActError> {
        match self.data().await {
            Data::Of { cluster, member } if member != wanted => {
                let (name, nodes) = (&self.node.name, self.nodes.display());
                Err(format!(
                    "its process began as member {member} of cluster {cluster}, and not as {wanted}: it was not given the members \
                     that there are; in its arguments that is `--initial-cluster={{{{initial_cluster}}}}` and \
                     `--initial-cluster-state=existing`, in a unit of systemd `EnvironmentFile={nodes}/{name}.env`"
                )
                .into())
            }
            _ => Ok(()),
        }
    }

    /// Keeps what `{{initial_cluster}}` stands for from now on; a process is known by the arguments that it was started with.
    fn set_initial_cluster(&mut self, text: String) -> Result<(), ActError> {
        let paths = [
            (initial_cluster_file(&self.nodes, &self.node.name), text.clone()),
            (
                self.nodes.join(format!("{}.env", self.node.name)),
                format!("ETCD_INITIAL_CLUSTER={text}\nETCD_INITIAL_CLUSTER_STATE=existing\n"),
            ),
        ];
        std::fs::create_dir_all(&self.nodes).map_err(|error| with_causes(&error))?;
        for (path, content) in paths {
            durable::write(&path, content.as_bytes(), &durable::Access::PRIVATE)
                .map_err(|error| with_causes(&error))?;
        }
        self.node.initial_cluster = text;
        Ok(())
    }
}

fn initial_cluster_file(nodes: &std::path::Path, name: &str) -> PathBuf {
    nodes.join(format!("{name}.initial-cluster"))
}

/// What `{{initial_cluster}}` stood for at the node's first start by an agent, if there was one.
pub(super) fn with_initial_cluster(node: &playbook::Node, nodes: &std::path::Path) -> playbook::Node {
    let text = std::fs::read_to_string(initial_cluster_file(nodes, &node.name)).unwrap_or_default();
    playbook::Node { initial_cluster: text, ..node.clone() }
}
