//! What comes of a move: to agents' processes, to members, to what operators typed.

use std::sync::Arc;

use super::{
    errand::Errand,
    judge::Violation,
    moves::{Move, Outcome},
    names::{id_of, node_of, process_id},
    way::Place,
    world::{By, Late, Process, Rise, World},
};
use agent::{
    keys::{Pause, RunId, RunState, txn::Txn},
    machine::{
        act::{Act, Event},
        agent::Agent,
    },
    plan::{Guard, Verb},
};
use proto::MemberId;

const OPERATOR: By = By { verb: None, failed: None, owner: None, hop: None, meant: 0 };

impl World {
    pub fn make(&self, what: Move) -> Result<World, Violation> {
        let mut world = self.clone();
        world.charge(what);
        match what {
            Move::Act(host, outcome) => world.act(host.into(), outcome)?,
            Move::Start(host, verb) | Move::Type(host, verb) => {
                let hop = world.hop_found(host.into());
                world.start(host.into(), verb, hop)?;
            }
            Move::StartAt(host, verb, hop) => world.start(host.into(), verb, hop)?,
            Move::Land(late) => {
                let Late { txn, by } = world.late.remove(late.into());
                world.commit(&txn, by).ok();
            }
            Move::Elect(node) | Move::LeaderMoves(node) => world.leader = node.into(),
            Move::Rise => {
                world.rise = Rise::Low;
                world.version.minor += 1;
                world.nodes.iter_mut().for_each(|node| node.is_fit = false);
                world.judge_rise()?;
            }
            Move::Lower => (world.rise, world.version) = (Rise::Low, world.scenario.version(1)),
            Move::Fit(node) => world.nodes[usize::from(node)].is_fit = true,
            Move::EndLowering => world.is_going_down = false,
            Move::LandCall => world.land_call(),
            Move::Lapse(lease) => world.lapse(world.lapsing()[usize::from(lease)]),
            Move::Recover(node) => world.nodes[usize::from(node)].recover(),
            Move::End(node) => {
                let node = &mut world.nodes[usize::from(node)];
                node.end();
                node.has_followed = true;
            }
            Move::Kill(host) => world.host(host.into()).process = None,
            Move::KillInStop(host) => {
                let host = usize::from(host);
                if let Act::Stop(member) = world.process(host).act {
                    world.judge_stop(host, node_of(member))?;
                    world.tell(node_of(member));
                }
                world.host(host).process = None;
            }
            Move::LoseDirectory(host) => {
                let host = world.host(host.into());
                (host.process, host.journal) = (None, None);
                host.lost += 1;
            }
            Move::Crash(node) => world.nodes[usize::from(node)].end(),
            Move::Freeze(host) => world.end_leases_of(world.process(host.into()).id),
            Move::Interrupt(host) => drop(world.process_mut(host.into()).agent.on(Event::Interrupted)),
            Move::Abandon => world.abandon(),
            Move::Replace => world.replace(),
            Move::Pause => world.pause(true),
            Move::Unpause => world.pause(false),
            Move::CommandEnds(host) => world.command_ends(host.into(), Errand::Idle),
            Move::CommandEndsLate(host) => world.command_ends(host.into(), Errand::Queued),
            Move::CommandStops(host) => world.command_stops(host.into())?,
            Move::HostGoes(host) => world.host_goes(host.into())?,
            Move::PowerLost(host) => world.reboot(host.into(), false),
            Move::ComesUp(node) => world.comes_up(node.into())?,
        }
        world.broken.map_or(Ok(()), Err)?;
        world.judge_errands()?;
        world.poll();
        Ok(world)
    }

    fn charge(&mut self, what: Move) {
        use Outcome::*;
        let without_quorum = !self.has_quorum();
        let left = &mut self.left;
        let spent = match what {
            // Without quorum no answer is no fault of its own.
            Move::Act(_, UnknownNo) if without_quorum => return,
            Move::Act(_, UnknownNo | UnknownYes | UnknownLate) => &mut left.unknown,
            Move::Act(_, GaveUp | GaveUpLate | Expired) => &mut left.give_up,
            Move::Act(_, Sick | Dies | Slow) => &mut left.sick,
            Move::Act(_, FailsDone) => &mut left.stuck,
            Move::Act(_, NotLet) => &mut left.refuse,
            Move::Act(host, Fails) => match self.hosts[usize::from(host)].process.as_ref().map(|p| &p.act) {
                Some(Act::Stop(_) | Act::Switch { .. }) => &mut left.stuck,
                _ => &mut left.refuse,
            },
            Move::Kill(_) | Move::KillInStop(_) => &mut left.kill,
            Move::LoseDirectory(_) => &mut left.lose_directory,
            Move::Crash(_) => &mut left.crash,
            Move::Freeze(_) => &mut left.freeze,
            Move::LeaderMoves(_) => &mut left.move_leader,
            Move::Interrupt(_) => &mut left.interrupt,
            Move::Abandon => &mut left.abandon,
            Move::Start(_, Verb::Guard(Guard::Command)) | Move::Type(_, Verb::Guard(Guard::Command)) => &mut left.guard,
            Move::Type(_, Verb::Guard(_)) => &mut left.ask,
            Move::PowerLost(_) => &mut left.power,
            Move::Type(_, Verb::Resume) => &mut left.resume,
            Move::Type(..) => &mut left.rollback,
            Move::Replace => &mut left.replace,
            Move::Pause => &mut left.pause,
            _ => return,
        };
        *spent = spent.saturating_sub(1);
    }

    // ---- processes ----

    fn start(&mut self, host: usize, verb: Verb, hop: Place) -> Result<(), Violation> {
        let id = process_id(host, self.fresh());
        let meant = self.hop_meant(verb, hop);
        let intent = self.intents[usize::from(hop)].clone();
        let me = self.scenario.me(host, self.id_of_host(host), verb, intent);
        let mut agent = Agent::new(me, self.scenario.rules, id);
        let started = Event::Started { in_hand: self.hosts[host].journal, down: self.down_on(host) };
        let act = agent.on(started).expect("the first event is always answered");
        let (read, kept, is_registered, has_let) = (None, None, false, false);
        self.host(host).process =
            Some(Process { id, verb, hop, meant, agent, act, read, kept, is_registered, has_let });
        self.judge_asking(host)?;
        self.pass_over(host)
    }

    pub fn down_on(&self, host: usize) -> Vec<MemberId> {
        self.scenario.owned_by(host).filter(|node| self.nodes[*node].process.is_none()).map(id_of).collect()
    }

    // ---- operators: what they send was decided by what they saw, and may come late ----

    fn abandon(&mut self) {
        if let Some(record) = &self.keys.step {
            let txn = Txn::abandon(record, &self.scenario.rules);
            self.late.push(Late { txn, by: OPERATOR });
        }
    }

    fn pause(&mut self, begins: bool) {
        let Some(seen) = self.keys.run.clone() else { return };
        let pause = begins.then(|| Arc::new(Pause { by: "".into(), at: "".into(), why: None }));
        let txn = Txn::pause(&seen, pause);
        match begins {
            true => self.late.push(Late { txn, by: OPERATOR }),
            false => drop(self.commit(&txn, OPERATOR)),
        }
    }

    fn replace(&mut self) {
        let Some(seen) = self.keys.run.clone() else { return };
        let mut run = seen.value.in_state(RunState::Rolling);
        (run.id, run.backup) = (RunId(self.fresh()), None);
        let others = (0..self.hosts.len()).map(|host| self.id_of_host(host)).collect::<Vec<_>>();
        let txn = Txn::replace(&seen, run, others.into_iter(), (0..self.nodes.len()).map(id_of));
        self.late.push(Late { txn, by: OPERATOR });
    }
}
