//! A host that Ansible does not reach, and a release that does not run.

use tests::{
    sick::{self, Illness},
    system::System,
};

use crate::{play::Stage, site::Site};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: a host that is cut off; agents without Ansible show the same"]
async fn a_host_out_of_reach_is_left_as_it_is_and_goes_later() {
    let Some(site) = Site::up(System::Etcd, 3).await else { return };
    let site = site.with_agents();
    let Some(stage) = Stage::new(&site) else { return };
    site.hosts[1].must(&["systemctl", "stop", "ssh"]).unwrap();
    let played = stage.play(&[]).await;
    assert_eq!(played.code, Some(4), "{}", played.text);
    assert_eq!(played.verdicts_on(2).last(), Some(&"unreachable"), "{}", played.text);
    for host in [1, 3] {
        let run = played.run_on(host);
        assert_eq!((&run["cluster"], &run["changed"]), (&"partial".into(), &true.into()), "{run}");
        let said = run["msg"].as_str().unwrap();
        assert!(said.starts_with("this host's part is done; left without an agent: ") && said.contains("m2"), "{run}");
    }
    site.is_upgraded(&[true, false, true]).await;

    // Meanwhile somebody writes a playbook with another range of releases: all hosts at once put its run in the place of
    // the one that stands, once they are told to.
    site.hosts[1].must(&["systemctl", "start", "ssh"]).unwrap();
    let (from, to) = (&site.from.release, site.to.release.cluster_version());
    let from = format!("from='>={from}, <{}.{}'", to.major, to.minor);
    let refused = stage.play(&["-e", &from]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.text);
    assert!(refused.complaints().iter().all(|said| said.contains("reason other_run")), "{}", refused.text);
    assert!(!refused.has_run(), "{}", refused.text);
    let replaces = ["-e", &from, "-e", "baton_replace=true"];
    let planned = stage.play(&[&replaces[..], &["--check"]].concat()).await;
    planned.must_succeed();
    assert_eq!([1, 2, 3].map(|host| planned.run_on(host)["changed"] == true), [false, true, false], "{}", planned.text);
    let again = stage.play(&[&replaces[..], &["-e", "baton_require_complete=true"]].concat()).await;
    again.must_succeed();
    // Whoever replaced the run has changed something, too: its key.
    assert_eq!(again.run_on(2)["changed"], true, "{}", again.text);
    site.is_upgraded(&[true; 3]).await;
    site.nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_does_not_run_is_put_back_and_said() {
    let Some(site) = Site::up(System::Node, 3).await else { return };
    let site = site.with_agents();
    let Some(stage) = Stage::new(&site) else { return };
    let program = env!("CARGO_BIN_EXE_sick-member").as_ref();
    let sick = sick::make(program, &site.to, Illness::Exits, &site.home.path().join("sick")).unwrap();
    site.deliver(&sick);
    let played = stage.play(&[]).await;
    assert_eq!(played.code, Some(2), "{}", played.text);
    let reasons: Vec<_> = (1..=3).map(|host| played.run_on(host)["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "put_back").count(), 1, "{reasons:?}");
    assert_eq!(reasons.iter().filter(|reason| **reason == "run_failed").count(), 2, "{reasons:?}");
    let failed = 1 + reasons.iter().position(|reason| *reason == "put_back").unwrap();
    let run = played.run_on(failed);
    assert_eq!((&run["exit"], &run["changed"]), (&1.into(), &true.into()), "{run}");
    assert!(played.verdicts_on(failed).contains(&"failed"), "{}", played.text);
    assert!(run["next"].as_str().unwrap().starts_with("agent run /etc/baton/upgrade.yaml"), "{run}");
    let said = run["msg"].as_str().unwrap();
    for part in [&format!("m{failed}"), "(exit 1, reason put_back)", "next: agent run"] {
        assert!(said.contains(part), "`{part}` in: {said}");
    }
    site.is_upgraded(&[false; 3]).await;

    site.deliver(&site.to.executable());
    // Until the owner's agent comes the others go no further; a loaded machine starts it late.
    stage.play(&["-e", "baton_require_complete=true", "-e", "join_window=60s"]).await.must_succeed();
    site.is_upgraded(&[true; 3]).await;
    site.nothing_is_lost().await;
}
