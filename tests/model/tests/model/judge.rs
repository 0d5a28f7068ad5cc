//! What must never happen, held against what happens: at each look that ends in a stop, at each stop and
//! start, at each write, and when the cluster version rises.

use super::{
    names::{id_of, node_of},
    way::place,
    world::{By, World},
};
use agent::{
    journal::{
        progress,
        restart::{Binary, Direction, Entry, Stage},
    },
    keys::{
        KeyName, RunState,
        txn::{Is, Op, Txn},
    },
    machine::act::Act,
    plan::Verb,
};

use proto::MemberId;

/// What must never happen, and did.
pub type Violation = &'static str;

pub const TWO_DOWN: Violation = "two members down by our hand";
pub const UNDER_MARK: Violation = "taken down under a failure mark";
pub const OTHER_SICK: Violation = "taken down though another was seen not ready";
pub const LEADER: Violation = "the leader was stopped";
pub const PAST_HOLD: Violation = "the run went past its hold";
pub const STRANDED: Violation = "the version rose with an old binary in place";
pub const OLD_AFTER_RISE: Violation = "an old binary was started after the version rose";
pub const UNFIT: Violation = "a member was to go down though its data was not fit for the lower release";
pub const PAST_THE_LAST: Violation = "a member went back though none was left on the higher release";
pub const ENABLED_FOR_NOTHING: Violation = "a downgrade was enabled though no run stands";
pub const BELOW_DONE: Violation = "a member was taken back below a hop that is done";
pub const BEFORE_ITS_HOP: Violation = "a hop was begun before all had ended the one before";
pub const BEHIND: Violation = "an agent wrote the run of another hop than it is about";
pub const NOT_ASKED: Violation = "a run was approved or turned back by what was typed for another hop";
pub const PAUSED: Violation = "a member was to go down though the run was seen paused";
pub const NO_BACKUP: Violation = "something was changed before the backup that was asked for";
pub const STUCK: Violation = "from here nobody can reach the end";

fn is_marked(state: &RunState) -> bool {
    matches!(state, RunState::Failed { .. })
}

pub fn check(holds: bool, otherwise: Violation) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(otherwise) }
}

impl World {
    /// The stage of a step in which its member is taken down; going back after a failure is not that.
    fn takes_down(&self, host: usize) -> bool {
        let in_hand = self.process(host).restart();
        in_hand.is_some_and(|in_hand| in_hand.stage == Stage::Stopping(in_hand.step.direction))
    }

    /// A stop that was decided by this look: of a member that goes, or of one that runs and is to be put back.
    pub fn judge_check(&self, host: usize) -> Result<(), Violation> {
        let seen = self.view();
        let member = match (&self.process(host).act, self.process(host).restart()) {
            (Act::Confirm(member), _) if self.takes_down(host) => *member,
            (Act::Journal(progress::Entry::Restart(Entry::Stopping(Direction::Back))), Some(in_hand)) => {
                return self.judge_put_back(in_hand.step.member);
            }
            _ => return Ok(()),
        };
        let is_paused = self.keys.run.as_ref().is_some_and(|run| run.value.pause.is_some());
        check(!is_paused || self.scenario.faults.split_looks, PAUSED)?;
        let others = || seen.voters().filter(|other| other.id != member);
        let standing = others().filter(|other| other.is_ready()).count();
        let all_stand = standing == others().count();
        let is_alone = self.nodes.len() == 1;
        check(all_stand || !seen.is_ready(member), OTHER_SICK)?;
        check(standing > self.nodes.len() / 2 || self.nodes.len() < 3, "fewer than a majority would stand")?;
        check(!seen.is_leader(member) || is_alone, LEADER)
    }

    /// One that runs may be what keeps the quorum; one that has ended is nobody's loss.
    fn judge_put_back(&self, member: MemberId) -> Result<(), Violation> {
        let seen = self.view();
        let runs = self.nodes[node_of(member)].process.is_some();
        check(!runs || seen.voters().all(|other| other.id == member || other.is_ready()), OTHER_SICK)
    }

    /// The stop itself, some time after that look.
    pub fn judge_stop(&self, host: usize, node: usize) -> Result<(), Violation> {
        let in_hand = self.process(host).restart().ok_or("stopped without a journal")?;
        check(self.hosts[host].journal == self.process(host).agent.in_hand(), "stopped before the journal said so")?;
        if !self.takes_down(host) {
            return Ok(());
        }
        let is_another = |other: &usize| *other != node;
        check(!(0..self.nodes.len()).filter(is_another).any(|other| self.nodes[other].by_our_hand), TWO_DOWN)?;
        check(self.marked.is_none_or(|marked| node_of(marked) == node), UNDER_MARK)?;
        let hop = self.hop_on(host);
        let is_new = |other: usize| self.nodes[other].binary == place(hop, Binary::New);
        let is_last = (0..self.nodes.len()).filter(is_another).all(is_new);
        let is_held =
            self.scenario.holds(hop) && is_last && !self.approved && in_hand.step.direction == Direction::Forward;
        check(!is_held, PAST_HOLD)?;
        check(in_hand.step.direction == Direction::Back || self.has_its_backup(), NO_BACKUP)?;
        match in_hand.step.direction {
            _ if !self.scenario.leads_down() => Ok(()),
            Direction::Forward => check(self.is_fit(node), UNFIT),
            Direction::Back => check(!is_last, PAST_THE_LAST),
        }
    }

    pub fn judge_start(&self, node: usize) -> Result<(), Violation> {
        let binary = self.nodes[node].binary;
        self.judge_place(binary)?;
        if self.scenario.leads_down() {
            return check(binary == 0 || self.is_fit(node), UNFIT);
        }
        check(self.scenario.version(binary) >= self.version, OLD_AFTER_RISE)
    }

    pub fn judge_downgrade(&self, host: usize, enable: bool) -> Result<(), Violation> {
        let is_wanted = self.keys.run.as_ref().is_some_and(|run| run.value.going().is_some());
        check(!enable || is_wanted || self.calls_late(host), ENABLED_FOR_NOTHING)?;
        check(!enable || self.calls_late(host) || self.has_its_backup(), NO_BACKUP)
    }

    fn has_its_backup(&self) -> bool {
        let stands = self.keys.run.as_ref().map(|run| &run.value);
        !self.scenario.backs_up
            || stands.is_none_or(|run| run.is_going_back() || (self.backed_up && run.backup.is_some()))
    }

    pub fn judge_rise(&self) -> Result<(), Violation> {
        let is_lower = |place| self.scenario.version(place) < self.version;
        let is_stranded = self.nodes.iter().any(|n| is_lower(n.binary) || n.process.is_some_and(is_lower));
        check(!is_stranded, STRANDED)
    }

    /// Keeps what the keys should mean beside what they say.
    pub fn follow(&mut self, txn: &Txn, by: By) {
        let deletes_record = txn.ops.iter().any(|op| matches!(op, Op::Delete(KeyName::Step)));
        if let Some(member) = by.failed.filter(|_| deletes_record) {
            self.marked = Some(member);
        }
        let puts = txn.ops.iter().find_map(|op| if let Op::PutRun(run) = op { Some(run) } else { None });
        let Some(run) = puts else { return };
        self.backed_up &= self.keys.run.as_ref().is_some_and(|was| was.value.id == run.id);
        self.broken = self.broken.or(self.judge_run(run, by).err());
        self.follow_hop(run);
        self.follow_approval(&run.state, self.keys.run.as_ref().is_none_or(|was| was.value.id != run.id), by);
        if let RunState::Failed { member, .. } = run.state {
            self.marked = Some(member);
        } else if self.marked.is_some() && self.may_lift(txn, &run.state, by) {
            self.marked = None;
        }
    }

    /// Its owner lifts a mark; so do a person's `rollback`, `resume` and `--replace`, who must have seen it:
    /// they compare the run.
    fn may_lift(&self, txn: &Txn, to: &RunState, by: By) -> bool {
        let compares = |key| txn.compares.iter().any(|c| c.key == key && !matches!(c.is, Is::Created(_)));
        let turns_back = by.verb == Some(Verb::Rollback) && *to == RunState::RollingBack;
        let by_hand = by.verb.is_none() || by.verb == Some(Verb::Resume) || turns_back;
        let by_owner = by
            .owner
            .zip(self.marked)
            .is_some_and(|(one, marked)| self.scenario.owners[node_of(one)] == self.scenario.owners[node_of(marked)]);
        by_owner || (by_hand && compares(KeyName::Run) && compares(KeyName::Step))
    }

    /// What was said of one run is not said of the next, nor of the same one turned round.
    fn follow_approval(&mut self, state: &RunState, is_another: bool, by: By) {
        match state {
            RunState::Approved if by.verb == Some(Verb::Finalize) => self.approved = true,
            RunState::RollingBack => self.approved = false,
            _ if is_another => self.approved = false,
            _ => {}
        }
    }

    /// What must be known of a Txn that this host's agent sends.
    pub fn by(&self, host: usize) -> By {
        let process = self.process(host);
        let failed = process.restart().filter(|in_hand| {
            in_hand.step.direction == Direction::Forward && in_hand.stage == Stage::Done(Direction::Back)
        });
        By {
            verb: Some(process.verb),
            failed: failed.map(|in_hand| in_hand.step.member),
            owner: self.scenario.owned_by(host).next().map(id_of),
            hop: Some(process.hop),
            meant: process.meant,
        }
    }
}

/// Whether the run that these keys hold is marked.
pub fn marked_in(state: Option<&RunState>) -> bool {
    state.is_some_and(is_marked)
}
