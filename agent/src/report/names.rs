//! Names for people: members and hosts by id, as last seen.

use std::{collections::BTreeMap, sync::Arc};

use proto::MemberId;

use crate::{
    keys::{Keys, host_id::HostId},
    observe::view::ClusterView,
    visible,
};

/// Who is called what. Grows with every look; what was known once stays known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    members: BTreeMap<MemberId, Arc<str>>,
    hosts: BTreeMap<HostId, Arc<str>>,
    host_of: BTreeMap<MemberId, Arc<str>>,
}

impl Names {
    /// The names of these members.
    pub fn of(view: &ClusterView) -> Self {
        let mut names = Self::default();
        names.learn_members(view);
        names
    }

    /// Takes over the members' names.
    pub fn learn_members(&mut self, view: &ClusterView) {
        let named = view.members.iter().filter(|member| !member.name.is_empty());
        self.members.extend(named.map(|member| (member.id, printable(&member.name))));
    }

    /// Takes over names that somebody else knows.
    pub fn learn(&mut self, members: &BTreeMap<String, MemberId>) {
        self.members.extend(members.iter().map(|(name, member)| (*member, printable(name))));
    }

    /// Takes over the hosts' names, and which host has which member.
    pub fn learn_hosts(&mut self, keys: &Keys) {
        for (host, agent) in &keys.agents {
            self.learn_host(*host, &agent.value.host_name, agent.value.seats.members());
        }
        for record in keys.step.iter().chain(keys.abandoned.values()) {
            self.learn_host(record.value.host, &record.value.host_name, [record.value.member]);
        }
        if let Some(baton) = &keys.baton {
            self.learn_host(baton.value.host, &baton.value.host_name, []);
        }
    }

    /// Takes over one host's name, and its members.
    pub fn learn_host(&mut self, host: HostId, name: &str, members: impl IntoIterator<Item = MemberId>) {
        let name = printable(name);
        self.host_of.extend(members.into_iter().map(|member| (member, name.clone())));
        self.hosts.insert(host, name);
    }

    /// A member's name alone; its id where it has none.
    pub fn short(&self, member: MemberId) -> String {
        self.members.get(&member).map_or_else(|| member.to_string(), |name| name.to_string())
    }

    pub fn member(&self, member: MemberId) -> String {
        self.members.get(&member).map_or_else(|| format!("member {member}"), |name| format!("{name} ({member})"))
    }

    pub fn list(&self, members: &[MemberId]) -> String {
        members.iter().map(|member| self.short(*member)).collect::<Vec<_>>().join(", ")
    }

    /// A host's name; its id where it is not known.
    pub fn host(&self, host: HostId) -> String {
        self.hosts.get(&host).map_or_else(|| host.to_string(), |name| name.to_string())
    }

    /// The name of the host that a member runs on, where an agent there said so.
    pub fn host_of(&self, member: MemberId) -> Option<&str> {
        self.host_of.get(&member).map(|name| &**name)
    }

    /// The same, as a place in a sentence.
    pub fn place(&self, member: MemberId) -> String {
        self.host_of(member).map_or_else(|| format!("the host of {}", self.short(member)), str::to_owned)
    }

    /// The member of this name, or of this hexadecimal id. A name comes first: it may look like an id.
    pub fn find(&self, text: &str) -> Option<MemberId> {
        let named = self.members.iter().find(|(_, name)| &***name == text).map(|(id, _)| *id);
        named.or_else(|| text.parse().ok().filter(|id| self.members.contains_key(id)))
    }
}

/// A text from elsewhere, made one line fit for a terminal.
pub(crate) fn printable(text: &str) -> Arc<str> {
    visible::line(text).into()
}
