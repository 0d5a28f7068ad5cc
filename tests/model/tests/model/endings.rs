//! Whether an agent that ends was right to: nobody goes home who should wait, and what is said of a member
//! is so. Source: agent/PROTOCOL.md, "Who goes when", R-8, R-9.

use super::{
    judge::{Violation, check, marked_in},
    names::{id_of, node_of},
    scenario::Kind,
    way::{means_one_hop, place},
    world::World,
};
use agent::{
    journal::restart::Binary,
    keys::{Keys, Run, RunState},
    machine::act::{Act, Ending, Left},
    plan::{Finish, Verb, refusal::Refusal},
};
use proto::MemberId;

impl World {
    /// An end that was decided by the look that read these keys.
    pub fn judge_ending(&self, host: usize, keys: Option<&Keys>, is_window_over: bool) -> Result<(), Violation> {
        let process = self.process(host);
        let ending = match &process.act {
            Act::Exit(ending) => Some(ending),
            _ => process.agent.ending(),
        };
        let Some(keys) = keys else {
            // Who cannot read the keys may only say so.
            let blames_keys = !matches!(ending, Some(Ending::Finished(_)));
            return check(blames_keys, "ended well without having read the keys");
        };
        match ending {
            Some(Ending::Finished(finish)) => self.judge_finish(host, finish, keys, is_window_over),
            Some(Ending::Refused(refusal)) => self.judge_refusal(host, refusal, keys, is_window_over),
            _ => Ok(()),
        }
    }

    fn judge_finish(&self, host: usize, finish: &Finish, keys: &Keys, is_window_over: bool) -> Result<(), Violation> {
        let mut own = self.scenario.owned_by(host);
        match finish {
            Finish::Partial { left } => {
                let names_one_at_work = left.is_empty() || left.iter().any(|member| keys.has_participant(*member));
                check(!names_one_at_work && is_window_over, "said that a member has no agent that has one")?;
                let is_at_work = (0..self.nodes.len())
                    .any(|node| keys.has_participant(id_of(node)) && self.has_work_left(host, node, keys));
                check(!is_at_work, "ended in part while another agent was at work")?;
                check(own.all(|node| self.nodes[node].is_up()), "ended in part with a member of its own not ready")
            }
            Finish::NothingToDo if self.is_guard(host) => {
                let mut records = keys.step.iter().chain(keys.abandoned.values());
                let is_own = records.any(|record| self.owns(host, record.value.member));
                check(!is_own, "said there was nothing to finish")
            }
            Finish::NothingToDo => {
                let process = self.process(host);
                let hop = if means_one_hop(process.verb) { process.hop } else { self.scenario.last() - 1 };
                check(
                    self.all_run(place(hop, Binary::New)) || !self.scenario.changes_minor(hop),
                    "said there was nothing to do",
                )
            }
            Finish::Done(_) => {
                let is_done = keys.run.as_ref().is_some_and(|run| matches!(run.value.state, RunState::Done { .. }));
                check(is_done || self.is_past(self.hop_on(host), keys), "ended a run that was not done")
            }
            Finish::Unseated { .. } => Err("a rollout spoke of seats"),
            Finish::Closed { .. } => Err("a rollout spoke of windows, and no host has one"),
            Finish::Held { member } => {
                let hop = self.hop_on(host);
                let is_old = self.nodes[node_of(*member)].binary == hop;
                check(self.scenario.holds(hop) && is_old, "held without reason")
            }
            Finish::Approved { left } => {
                check(!left.iter().all(|member| self.owns(host, *member)), "left the last step to nobody")
            }
        }
    }

    fn judge_refusal(
        &self,
        host: usize,
        refusal: &Refusal,
        keys: &Keys,
        is_window_over: bool,
    ) -> Result<(), Violation> {
        // A guard has no time in which others are to come.
        let is_over = is_window_over || matches!(self.process(host).verb, Verb::Guard(_));
        let comes_no_more = |member: MemberId| is_over && !keys.has_participant(member) && !self.owns(host, member);
        match refusal {
            Refusal::NotReady { member } => {
                let is_down = !self.nodes[node_of(*member)].is_up();
                check(is_down && comes_no_more(*member), "gave a member up too soon")
            }
            Refusal::Failed { member, .. } => {
                let state = keys.run.as_ref().map(|run| &run.value.state);
                let comes_no_more = |member| self.is_guard(host) || comes_no_more(member);
                check(marked_in(state) && comes_no_more(*member), "did not wait for the owner of a failed step")
            }
            Refusal::Abandoned { record } => check(comes_no_more(record.member), "did not wait for a lost owner"),
            Refusal::NoLeader => check(!self.has_quorum(), "missed a leader"),
            Refusal::GoingBack => check(keys.run.as_ref().is_some_and(|r| r.value.is_going_back()), "refused a run"),
            Refusal::TwinHost { .. } => check(self.scenario.has_twins, "took itself for another"),
            Refusal::NoWayBack | Refusal::NotHeld | Refusal::NothingToRollBack | Refusal::NothingToResume => Ok(()),
            Refusal::BelowQuorum { .. } if self.is_guard(host) => self.judge_below(host),
            // Nothing in the model gives a reason for any other.
            Refusal::BelowQuorum { .. } => check(self.nodes.len() != 3, "refused for quorum with three members"),
            _ => Err("refused without reason"),
        }
    }

    /// Whether something is left to do to this member, as whoever read these keys could see.
    fn has_work_left(&self, host: usize, node: usize, keys: &Keys) -> bool {
        let run = keys.run.as_ref().map(|run| &run.value);
        let wanted = if run.is_some_and(Run::is_going_back) { Binary::Old } else { Binary::New };
        let wanted = self.place_on(host, wanted);
        let is_there = match self.scenario.kind {
            Kind::Restart => run.is_some_and(|run| run.done.contains(&id_of(node))),
            _ => self.nodes[node].process == Some(wanted),
        };
        !is_there || !self.is_ready(node)
    }

    pub fn owns(&self, host: usize, member: MemberId) -> bool {
        self.scenario.owned_by(host).any(|node| id_of(node) == member)
    }

    /// What a failed step says of its member.
    pub fn judge_exit(&self, host: usize, ending: &Ending) -> Result<(), Violation> {
        let [old, new] = [Binary::Old, Binary::New].map(|binary| self.place_on(host, binary));
        let (member, left) = match ending {
            Ending::Guarded { .. } => return self.judge_guarded(host),
            Ending::Step { member, left, .. } => (member, left),
            _ => return Ok(()),
        };
        let node = self.nodes[node_of(*member)];
        let has_record = self.keys.step.as_ref().is_some_and(|down| down.value.member == *member);
        let stands = has_record || self.keys.abandoned.contains_key(member) || self.scenario.faults.abandon > 0;
        match left {
            Left::PutBack => check(node.binary == old, "said a member was put back that was not"),
            Left::AsItWas => check(node.process.is_none_or(|runs| runs == node.binary), "left a switch half done"),
            Left::AsItIs => check(stands, "left a member that failed without a record"),
            Left::NewBinaryKept => check(stands && node.binary == new, "said the new binary was kept"),
        }
    }
}
