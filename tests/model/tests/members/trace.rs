//! A violation's moves again, for a person to read.

use super::{moves::Move, scenario::Scenario, world::World};

/// The moves, with what each agent was asked to do, and how the world stands after them.
pub fn replay(scenario: &Scenario, moves: &[Move]) -> String {
    let mut world = World::new(scenario);
    let mut lines = Vec::new();
    for what in moves {
        lines.push(line(&world, *what));
        match world.make(*what) {
            Ok(next) => world = next,
            Err(_) => break,
        }
    }
    lines.extend(state(&world));
    lines.join("\n  ")
}

fn line(world: &World, what: Move) -> String {
    match what {
        Move::Act(host, _) => {
            let act = world.hosts[usize::from(host)].process.as_ref().map(|process| &process.act);
            let text = format!("{act:?}");
            format!("{what:?} {}", text.chars().take(900).collect::<String>())
        }
        Move::Lapse(lease) => format!("{what:?} {:?}", world.lapsing().get(usize::from(lease))),
        Move::Arrive(call) => format!("{what:?} {:?}", world.calls.get(usize::from(call))),
        _ => format!("{what:?}"),
    }
}

fn state(world: &World) -> Vec<String> {
    let hosts = world.hosts.iter().enumerate().map(|(host, at)| {
        let asked = at.process.as_ref().map(|process| &process.act);
        format!("host {host}: dead {}, data {:?}, runs {}, asked {asked:?}", at.is_dead, at.data, at.runs)
    });
    let listed = world.listed.iter().map(|one| format!("{one:?}"));
    let rest = [format!("leader {:?}, calls {:?}", world.leader, world.calls), format!("{:?}", world.keys)];
    hosts.chain(listed).chain(rest).collect()
}
