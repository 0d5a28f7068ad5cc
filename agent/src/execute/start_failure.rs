//! Why a member did not come up, in words: how its process ended, who has its address, and what it said last.

use std::{sync::Arc, time::Duration};

use proto::MemberId;

use super::{Execution, port_owner::who_listens};
use crate::{host::blocking::blocking, visible::line};

/// How long it may take to find out who has the address of a member that ended.
const WHO_LISTENS: Duration = Duration::from_secs(2);

impl Execution<'_> {
    /// With the end of its log, and the host where that lies: the reason goes into the run, and whoever reads it on another host
    /// would have to come here for the cause.
    pub(super) async fn with_last_words(&self, member: MemberId, why: Arc<str>) -> Arc<str> {
        let why = self.own_certificate_fault(member).map_or(why.clone(), |fault| format!("{fault}; {why}").into());
        let Some(node) = self.node(member) else { return why };
        let why = match node.start_failure() {
            Some(failure) if failure != why => format!("{why}; its start had failed: {}", line(&failure)).into(),
            _ => why,
        };
        let Some(runtime) = &node.runtime else { return why };
        format!("{why}; on {}, {}", self.me.host_name, line(&runtime.last_words().await)).into()
    }

    pub(super) async fn how_it_ended(&self, member: MemberId) -> Arc<str> {
        let runtime = self.node(member).and_then(|node| node.runtime.as_ref());
        let ending = match runtime {
            Some(runtime) => runtime.ending().await,
            None => None,
        };
        let ended = ending.map_or_else(|| "its process ended".into(), |ending| format!("its process ended: {ending}"));
        let Some(url) = self.cluster.observer.access().directory().address_of(member) else { return ended.into() };
        // The member waits meanwhile to be put back, and name servers may be silent.
        match tokio::time::timeout(WHO_LISTENS, blocking(move || who_listens(&url))).await {
            Ok(Some(other)) => format!("{ended}; {other}").into(),
            _ => ended.into(),
        }
    }
}
