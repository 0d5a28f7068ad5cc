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
            format!("{what:?} {:?}", world.hosts[usize::from(host)].process.as_ref().map(|process| &process.act))
        }
        Move::Lapse(lease) => format!("{what:?} {:?}", world.lapsing().get(usize::from(lease))),
        _ => format!("{what:?}"),
    }
}

fn state(world: &World) -> Vec<String> {
    let hosts = world.hosts.iter().enumerate().map(|(host, at)| {
        let asked = at.process.as_ref().map(|process| (process.hop, &process.act));
        format!("host {host}: journal {:?}, asked {asked:?}", at.journal)
    });
    let nodes =
        world.nodes.iter().enumerate().map(|(node, at)| {
            format!("node {node}: {} installed, {:?} runs, sick {}", at.binary, at.process, at.is_sick)
        });
    let cluster =
        format!("leader {} version {:?} rise {:?}, reached {}", world.leader, world.version, world.rise, world.reached);
    hosts.chain(nodes).chain([cluster, format!("{:?}", world.keys)]).collect()
}
