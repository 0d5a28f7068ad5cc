//! What happens from outside while a run is under way: a member is killed, leadership moves.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tests::{
    agent::Agent,
    playbook::Upgrade,
    scene::{LIMIT, Scene},
    skip::etcd_or_skip,
    wait,
};

/// A run with a soak, so that there is time in the middle of the first step; and whose member went first.
async fn in_the_middle() -> Option<(Scene, Vec<Agent>, String, usize)> {
    let (old, new) = (etcd_or_skip("3.4")?, etcd_or_skip("3.5")?);
    let scene = Scene::set(&old, new.release.cluster_version()).await.expect("up");
    let mut upgrade = Upgrade::new(scene.layout(), &new);
    upgrade.strategy = vec!["soak: 4s".into(), "gather: 10s".into()];
    let playbooks = upgrade.write(scene.layout()).expect("playbooks");
    let agents: Vec<_> =
        playbooks.iter().map(|playbook| Agent::start("run", playbook, &[]).expect("started")).collect();
    let new = new.release.to_string();
    let first = wait::until("a member to run the new release", LIMIT, || async {
        let releases = scene.releases().await.map_err(|error| error.to_string())?;
        releases.iter().position(|release| *release == new).ok_or_else(|| format!("{releases:?}"))
    });
    let first = first.await.expect("one goes first");
    Some((scene, agents, new, first))
}

async fn all_done(scene: Scene, agents: Vec<Agent>, new: &str, down: usize) {
    for agent in agents {
        let ended = agent.ended(LIMIT).await.expect("ends");
        ended.must_be(0, "done");
    }
    assert_eq!(scene.releases().await.expect("they serve"), vec![new.to_owned(); 3]);
    scene.has_settled().await.expect("the version rises");
    scene.end(down).await.expect("nothing lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_killed_in_anothers_step_is_started_by_its_own_agent() {
    let Some((scene, agents, new, first)) = in_the_middle().await else { return };
    let crashed = &scene.layout().members[(first + 1) % 3];
    let old = crashed.release().expect("it says");
    crashed.end(Signal::KILL).expect("killed");
    wait::until("the member to be started again", LIMIT, || async {
        crashed.is_running().then_some(()).ok_or_else(|| "it is down".to_owned())
    })
    .await
    .expect("its own agent waits, and looks after it");
    assert_eq!(crashed.release().expect("it says"), old, "started as it was, long before its turn");
    all_done(scene, agents, &new, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_that_keeps_moving_ends_no_run() {
    let Some((scene, agents, new, first)) = in_the_middle().await else { return };
    // Whoever leads, it moves on to the next, through every step of the run.
    let mut moved = 0;
    let mut target = first;
    let deadline = Instant::now() + LIMIT;
    while moved < 40 && Instant::now() < deadline {
        if scene.releases().await.is_ok_and(|releases| releases.iter().all(|release| *release == new)) {
            break;
        }
        target = (target + 1) % 3;
        let (Ok(leader), Ok(id)) = (scene.leader().await, scene.id(target).await) else { continue };
        let client = scene.client(leader).expect("a client");
        moved += usize::from(client.move_leader(id).await.is_ok());
        // Between two moves, as an impatient operator might.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(moved > 2, "leadership moved {moved} times");
    all_done(scene, agents, &new, 1).await;
}
