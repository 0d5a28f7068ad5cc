//! Members of this host that do not run: which they are, and their start where nothing else can be decided any more.

use proto::MemberId;

use super::{Execution, node::OwnNode, prepare};
use crate::{journal::progress, observe::view::ClusterView};

impl Execution<'_> {
    /// Starts what this host has down, before anything that needs the cluster.
    pub async fn bring_up(&mut self) {
        self.repair_before_abort().await;
        let in_hand = self.host.past.in_hand.map(|in_hand| in_hand.member());
        for member in self.down().await.into_iter().filter(|member| Some(*member) != in_hand) {
            if let Err(error) = self.start(member).await {
                self.warn(&format!("{} could not be started: {error}", self.name_of(member)));
            }
        }
    }

    /// Nothing more can be decided or written down, so whatever this host has down is started again: on the
    /// binary that the last durable entry says.
    pub(super) async fn repair_before_abort(&mut self) {
        let Some(in_hand) = self.host.past.restart() else { return };
        let member = in_hand.step.member;
        // One that cannot be told from another may be down: its start finds out.
        let is_unclear = match self.node(member) {
            Some(node) if in_hand.may_have_stopped() => node.status().await.is_err(),
            _ => false,
        };
        let is_down = is_unclear || self.down().await.contains(&member);
        if !is_down {
            return;
        }
        let repaired = match self.switch(member, in_hand.binary()) {
            Ok(()) => self.start(member).await,
            Err(error) => Err(error),
        };
        if let Err(error) = repaired {
            self.warn(&format!("{} could not be started again: {error}", self.name_of(member)));
        }
    }

    /// Members of this host whose process does not run. One that cannot be asked is not taken for stopped.
    pub(super) async fn down(&mut self) -> Vec<MemberId> {
        let (down, unclear) = self.processes().await;
        self.warn_once(&unclear);
        down
    }

    /// Whether it is not to be brought up as a member is: it is none, none that votes, or about to be none.
    fn is_newcomer(&self, node: &OwnNode) -> bool {
        let found = self.seen.last_view.as_ref().filter(|_| node.node.may_join);
        let votes = |view: &ClusterView| view.voters().any(|voter| voter.id == node.member);
        let goes = self.progress.is_about_to_leave(node.member) || self.host.removed.contains(&node.member);
        node.member == MemberId::default() || (node.node.may_join && goes) || found.is_some_and(|view| !votes(view))
    }

    /// The same, and what is to be warned of.
    pub(super) async fn processes(&self) -> (Vec<MemberId>, Vec<String>) {
        let mut down = Vec::new();
        let mut unclear = Vec::new();
        let stopped = self.host.past.in_hand.filter(progress::InHand::may_have_stopped).map(|in_hand| in_hand.member());
        for node in &self.host.nodes {
            // A newcomer that is no member yet, or one whose data is gone, is started by the plan alone.
            if self.is_newcomer(node) || node.has_nothing_to_start().await {
                continue;
            }
            match node.status().await {
                // Whoever answers for it now, its step has stopped it.
                Ok(status) if !status.is_running() && node.may_be_stopped && stopped == Some(node.member) => {
                    down.push(node.member);
                }
                // One that answers is up, whatever process it is: preflight says what is wrong.
                Ok(status) if !status.is_running() => match prepare::is_unseen(node, &self.cluster.observer).await {
                    Ok(true) => unclear.push(format!("{} answers, but its process is not found", node.node.name)),
                    _ => down.push(node.member),
                },
                Ok(_) => {}
                Err(error) => unclear.push(format!("{}: {error}", node.node.name)),
            }
        }
        (down, unclear)
    }
}
