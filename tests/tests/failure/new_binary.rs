//! A new binary that does not come up: its member is put back, the run is marked, every host holds; and the
//! same command goes on once the artifact is corrected.

use std::path::Path;

use tests::{
    ended::Ended,
    playbook::Upgrade,
    scene::Scene,
    sick::{self, Illness},
    skip::etcd_or_skip,
};

const SICK: &str = env!("CARGO_BIN_EXE_sick-etcd");

async fn fails_and_goes_on(illness: Illness, strategy: &[&str]) {
    let (Some(old), Some(new)) = (etcd_or_skip("3.4"), etcd_or_skip("3.5")) else { return };
    let scene = Scene::set(&old, new.release.cluster_version()).await.expect("up");
    let mut upgrade = Upgrade::new(scene.layout(), &new);
    upgrade.strategy.extend(strategy.iter().map(|line| (*line).to_owned()));
    let good = upgrade.source.clone();
    upgrade.source =
        sick::make(Path::new(SICK), &new, illness, &scene.layout().dir.join("sick")).expect("an executable");

    let before = scene.pids();
    let playbooks = upgrade.write(scene.layout()).expect("playbooks");
    let ended = scene.all("run", &playbooks).await.expect("ends");
    let reasons: Vec<_> = ended.iter().map(Ended::reason).collect();
    assert!(ended.iter().all(|agent| agent.exit == Some(1)), "{ended:#?}");
    assert_eq!(reasons.iter().filter(|reason| **reason == "put_back").count(), 1, "{ended:#?}");
    assert_eq!(reasons.iter().filter(|reason| **reason == "run_failed").count(), 2, "{ended:#?}");
    let owner = reasons.iter().position(|reason| *reason == "put_back").expect("one");
    let name = &scene.layout().members[owner].name;
    for other in (0..3).filter(|index| *index != owner) {
        let said = ended[other].result.as_ref().expect("a result")["message"].to_string();
        assert!(said.contains(&format!("the step of {name}")) && said.contains("failed"), "{said}");
        assert_eq!(scene.pids()[other], before[other], "{name} alone was touched");
    }
    assert_eq!(scene.releases().await.expect("they serve"), vec![old.release.to_string(); 3]);
    assert_eq!(scene.cluster_versions().await.expect("they serve"), ["3.4.0"; 3]);
    let run = scene.key("run").await.expect("a run");
    assert_eq!(run["state"]["failed"]["member"], format!("{:x}", scene.id(owner).await.expect("its id")), "{run}");
    assert!(scene.key("down").await.expect("readable").is_null(), "the member is back, and its record gone");

    let late = (owner + 1) % 3;
    let held = scene.one("run", &playbooks[late]).await.expect("ends");
    // A late starter holds, too.
    held.must_be(1, "run_failed");

    upgrade.source = good;
    let playbooks = upgrade.write(scene.layout()).expect("playbooks");
    let ended = scene.all("run", &playbooks).await.expect("ends");
    assert!(ended.iter().all(|agent| (agent.exit, agent.reason()) == (Some(0), "done")), "{ended:#?}");
    assert_eq!(scene.releases().await.expect("they serve"), vec![new.release.to_string(); 3]);
    scene.has_settled().await.expect("the version rises");
    scene.end(1).await.expect("nothing lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_exits_at_once_is_put_back() {
    fails_and_goes_on(Illness::Exits, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hangs_is_put_back_when_its_time_is_over() {
    fails_and_goes_on(Illness::Hangs, &["health: { timeout: 3s }"]).await;
}
