//! `kind: Replace`, by the agents of both hosts, which are started at once.

use std::{collections::BTreeMap, time::Instant};

use tests::{Error, agent::Agent, events, newcomers::place, playbook::Upgrade, rollout::LIMIT, witness::now_in_ms};

use crate::{
    figures::{self, Done, Figures},
    scene::Scene,
};

/// What is told of in the table, by the names that an events file has.
const MARKS: [(&str, &str); 8] = [
    ("begun", "begun"),
    ("newcomer_added", "added"),
    ("member_started", "started"),
    ("member_promoted", "promoted"),
    ("handed_over", "handed over"),
    ("member_removed", "removed"),
    ("data_put_aside", "stopped, its data put aside"),
    ("settling", "nothing left but to settle"),
];

pub async fn replace(scene: &Scene) -> Result<Figures, Error> {
    let names = format!("replace: {{ member: {}, by: {} }}", scene.leaver.name, scene.newcomer.name);
    let change =
        Upgrade { members: Some(("Replace", names)), node: place, ..Upgrade::new(scene.layout(), &scene.build) };
    let hosts = [&scene.newcomer, &scene.leaver];
    let playbooks = hosts.map(|member| change.write_host(scene.layout(), &[member]));
    figures::of(scene, async |_| {
        let (began, since) = (Instant::now(), now_in_ms());
        let mut agents = Vec::new();
        for playbook in playbooks {
            agents.push(Agent::start("run", &playbook?, &[])?);
        }
        let mut at = BTreeMap::new();
        for agent in agents {
            let ended = agent.ended(LIMIT).await?;
            if ended.exit != Some(0) {
                return Err(format!("an agent did not end well: {ended}").into());
            }
            for event in ended.events {
                let when = events::millis(&event.time)?.saturating_sub(since) as f64;
                at.entry(event.event).and_modify(|first: &mut f64| *first = first.min(when)).or_insert(when);
            }
        }
        let took_s = began.elapsed().as_secs_f64();
        let marks = MARKS.iter().filter_map(|(event, what)| Some((*what, *at.get(*event)?)));
        Ok(Done { took_s, marks: marks.collect() })
    })
    .await
}
