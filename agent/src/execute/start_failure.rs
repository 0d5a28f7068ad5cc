//! Why a member did not come up, in words: how its process ended, who has its address, and what it said last.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proto::MemberId;

use super::{Execution, bring_up::open_node, identity, line::Past, node::OwnNode, port_owner::who_listens};
use crate::{
    host::{blocking::blocking, files::state_dir::Layout, runtime::Runtime},
    playbook::Playbook,
    visible::line,
};

/// How long it may take to find out who has the address of a member that ended.
const WHO_LISTENS: Duration = Duration::from_secs(2);

impl Execution<'_> {
    /// With the end of its log, and the host where that lies: the reason goes into the run, and whoever reads it on another host
    /// would have to come here for the cause.
    pub(super) async fn with_last_words(&self, member: MemberId, why: Arc<str>) -> Arc<str> {
        let why = self.own_certificate_fault(member).map_or(why.clone(), |fault| format!("{fault}; {why}").into());
        let Some(node) = self.node(member) else { return why };
        let failure = node.start_failure();
        // Then nothing was run: what its log has is of an earlier process.
        let was_run = failure.is_none() || !matches!(node.runtime, Some(Runtime::Process(_)));
        let why = match failure {
            Some(failure) if failure != why => format!("{why}; its start had failed: {}", line(&failure)).into(),
            _ => why,
        };
        if was_run { node.with_last_words(&why, &self.me.host_name).await.into() } else { why }
    }

    pub(super) async fn how_it_ended(&self, member: MemberId) -> Arc<str> {
        let ended = match self.node(member) {
            Some(node) => node.how_it_ended().await,
            None => ENDED.to_owned(),
        };
        let Some(url) = self.cluster.observer.access().directory().address_of(member) else { return ended.into() };
        // The member waits meanwhile to be put back, and name servers may be silent.
        match tokio::time::timeout(WHO_LISTENS, blocking(move || who_listens(&url))).await {
            Ok(Some(other)) => format!("{ended}; {other}").into(),
            _ => ended.into(),
        }
    }
}

const ENDED: &str = "its process ended";

impl OwnNode {
    async fn how_it_ended(&self) -> String {
        let ending = match &self.runtime {
            Some(runtime) => runtime.ending().await,
            None => None,
        };
        ending.map_or_else(|| ENDED.to_owned(), |ending| format!("{ENDED}: {ending}"))
    }

    async fn with_last_words(&self, why: &str, host: &str) -> String {
        let Some(runtime) = &self.runtime else { return why.to_owned() };
        let words = runtime.last_words().await;
        let words = line(&words);
        // The failure of a unit's start may have said it.
        if why.contains(&*words) { why.to_owned() } else { format!("{why}; on {host}, {words}") }
    }
}

/// Of this host's members that were started, those that have ended again, each behind a `;`. Nobody answers for the cluster, and
/// this is all that there is to see of the cause.
pub(super) async fn ended_again(
    playbook: &Playbook,
    known: &BTreeMap<String, MemberId>,
    state: &Layout,
    past: &Past,
) -> String {
    let (mut said, host) = (String::new(), identity::host_name());
    for node in &playbook.nodes {
        let member = known.get(&node.name).copied().unwrap_or_default();
        let Ok(own) = open_node(node, member, state, past).await else { continue };
        if own.status().await.is_ok_and(|status| !status.is_running()) && !own.has_nothing_to_start().await {
            let why = own.with_last_words(&own.how_it_ended().await, &host).await;
            said += &format!("; {}: {why}", node.name);
        }
    }
    said
}
