//! Hosts whose members come and go: newcomers beside a cluster, and the playbooks of a change of members.

use std::{fs, path::PathBuf};

pub use crate::newcomer::place;
use proto::etcdserverpb::{MemberAddRequest, MemberPromoteRequest, MemberRemoveRequest, cluster_client::ClusterClient};
use serde_json::Value;

use crate::{
    agent::Agent,
    case::{Case, sure},
    client::Client,
    cluster::Member,
    playbook::Upgrade,
    ports::Ports,
    raft_status,
    rollout::LIMIT,
    wait,
};

/// Newcomers that are laid out, with ports that stay theirs.
pub struct Newcomers {
    pub members: Vec<Member>,
    _ports: Ports,
}

/// A change of members, as every host's playbook has it.
pub struct Change {
    upgrade: Upgrade,
}

impl Case {
    /// So many newcomers, named as members after those that are there would be.
    pub fn newcomers(&self, count: usize) -> Newcomers {
        let ports = sure(Ports::lease(2 * count));
        let first = self.layout().members.len();
        let lay_out =
            |(at, pair): (usize, &[u16])| sure(self.layout().newcomer(&self.from, first + at, (pair[0], pair[1])));
        let members = ports.numbers.chunks_exact(2).enumerate().map(lay_out).collect();
        Newcomers { members, _ports: ports }
    }

    /// To these voters.
    pub fn scale(&self, members: &[&str]) -> Change {
        self.change(("Scale", format!("members: [{}]", members.join(", "))))
    }

    /// This member for that one.
    pub fn replace(&self, member: &str, by: &str) -> Change {
        self.change(("Replace", format!("replace: {{ member: {member}, by: {by} }}")))
    }

    fn change(&self, members: (&'static str, String)) -> Change {
        let strategy = vec!["soak: 0s".into(), "join_window: 3s".into()];
        Change { upgrade: Upgrade { members: Some(members), node: place, strategy, ..self.upgrade.clone() } }
    }

    /// Who is listed: name, and whether it votes, in order of name.
    pub async fn listed(&self, by: &Client) -> Vec<(String, bool)> {
        let listed = by.members().await.expect("a list");
        let mut members: Vec<_> = listed.into_iter().map(|member| (member.name, !member.is_learner)).collect();
        members.sort();
        members
    }

    /// Adds a newcomer as a voter and starts it, as a person would who knows of no run; as it runs then.
    pub async fn add_by_hand(&self, newcomer: &Member) -> Member {
        let member = self.added_by_hand(newcomer, false).await;
        let own = sure(self.layout().client(&member));
        let serves = wait::until("it to serve", LIMIT, || async { own.get("served").await.map_err(|s| s.to_string()) });
        sure(serves.await);
        member
    }

    /// The same by way of a learner, which is promoted.
    pub async fn promote_by_hand(&self, newcomer: &Member) -> Member {
        let member = self.added_by_hand(newcomer, true).await;
        let client = self.client(0);
        let promoted = wait::until("it to be promoted", LIMIT, || async {
            let listed = client.members().await.map_err(|status| status.to_string())?;
            let id = listed.iter().find(|one| one.name == member.name).map(|one| one.id).ok_or("it has no name yet")?;
            let promoted = ClusterClient::new(client.channel()).member_promote(MemberPromoteRequest { id }).await;
            promoted.map_err(|status| status.to_string())
        });
        sure(promoted.await);
        member
    }

    /// Adds a newcomer by hand and starts it, and does not wait for it.
    pub async fn added_by_hand(&self, newcomer: &Member, is_learner: bool) -> Member {
        let client = self.client(0);
        let request = MemberAddRequest { peer_urls: vec![newcomer.peer_url()], is_learner };
        // etcd adds nobody until all members have known each other for a while.
        let added = wait::until("a member to be added", LIMIT, || async {
            let added = ClusterClient::new(client.channel()).member_add(request.clone()).await;
            added.map_err(|status| status.to_string())
        });
        let listed = sure(added.await).into_inner().members;
        let named = |one: &proto::etcdserverpb::Member| {
            let name = if one.name.is_empty() { &newcomer.name } else { &one.name };
            one.peer_urls.iter().map(|url| format!("{name}={url}")).collect::<Vec<_>>()
        };
        let list = listed.iter().flat_map(named).collect::<Vec<_>>().join(",");
        let mut member = newcomer.clone();
        member.flags.iter_mut().for_each(|flag| *flag = flag.replace("{{initial_cluster}}", &list));
        sure(member.start());
        member
    }

    /// Removes the member of this name, as a person would.
    pub async fn remove_by_hand(&self, name: &str) {
        let client = self.client(0);
        let listed = sure(client.members().await);
        let id = listed.iter().find(|member| member.name == name).map(|member| member.id).expect("it is listed");
        // Neither is one removed until then.
        let removed = wait::until("a member to be removed", LIMIT, || async {
            let removed = ClusterClient::new(client.channel()).member_remove(MemberRemoveRequest { id }).await;
            removed.map_err(|status| status.to_string())
        });
        sure(removed.await);
    }

    /// What is left of steps and newcomers: nothing, once a change is over.
    pub async fn leftovers(&self) -> Vec<String> {
        let keys = sure(raft_status::keys(self.layout()).await);
        let joins = keys.get("run").and_then(|run| run["membership"]["joins"].as_array()).map_or(0, Vec::len);
        let others = keys.keys().filter(|key| key.as_str() != "run").cloned();
        others.chain((joins > 0).then(|| format!("{joins} newcomers in the run"))).collect()
    }
}

/// A member's data directory.
pub fn data(member: &Member) -> PathBuf {
    member.data()
}

/// What was put aside of a member's data.
pub fn aside(member: &Member) -> Vec<PathBuf> {
    let entries = fs::read_dir(&member.dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.to_string_lossy().contains("data.archived-")).collect()
}

impl Change {
    /// With more lines under `strategy`.
    #[must_use]
    pub fn strategy(mut self, lines: &[&str]) -> Self {
        self.upgrade.strategy.extend(lines.iter().map(ToString::to_string));
        self
    }

    /// With time for agents that start slowly, where none is left out.
    #[must_use]
    pub fn everybody_comes(mut self) -> Self {
        self.upgrade.everybody_comes();
        self
    }

    /// Writes the playbook of the host that has these members.
    pub fn write(&self, case: &Case, members: &[&Member]) -> PathBuf {
        sure(self.upgrade.write_host(case.layout(), members))
    }

    /// Starts `agent run` on this member's host.
    pub fn start(&self, case: &Case, member: &Member) -> Agent {
        self.start_with(case, member, "run", &[])
    }

    /// Starts `agent VERB` there, with more arguments.
    pub fn start_with(&self, case: &Case, member: &Member, verb: &str, more: &[&str]) -> Agent {
        sure(Agent::start(verb, &self.write(case, &[member]), more))
    }

    /// Starts it on each of these members' hosts.
    pub fn start_all<'m>(&self, case: &Case, members: impl IntoIterator<Item = &'m Member>) -> Vec<Agent> {
        members.into_iter().map(|member| self.start(case, member)).collect()
    }
}

/// Waits until an agent has told of an event of this name.
pub async fn until_told(agent: &Agent, event: &str) {
    let told = wait::until(event, LIMIT, || async {
        let is_told = agent.events().is_ok_and(|events| events.iter().any(|one| one.event == event));
        is_told.then_some(()).ok_or_else(|| agent.log())
    });
    sure(told.await);
}

/// One of the shared keys' parts, for messages.
pub fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "none".to_owned(), Value::to_string)
}
