//! Two clusters in one inventory, whose members have the same names.

use serde_json::json;
use tests::system::System;

use crate::{play::Stage, site::Site};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: three minutes; plays over one cluster run by default"]
async fn two_clusters_with_the_same_member_names_are_done_by_one_play() {
    let Some(site) = Site::clusters(System::Node, System::Node.main_job(), &[2, 2]).await else { return };
    let site = site.with_agents();
    let Some(stage) = Stage::new(&site) else { return };
    stage.invite(|number, facts| {
        facts["baton_cluster"] = json!(if number <= 2 { "east" } else { "west" });
        facts["allow_downtime"] = json!(true);
    });
    let complete = ["-e", "baton_require_complete=true"];

    // One host after the other: what a batch remembers must not hide the inventory's clusters from the next one.
    let played = stage.play(&[&complete[..], &["-e", "serial=1"]].concat()).await;
    played.must_succeed();
    for (host, cluster) in [(1, "partial"), (2, "done"), (3, "partial"), (4, "done")] {
        let run = played.run_on(host);
        assert_eq!((&run["cluster"], &run["changed"]), (&cluster.into(), &true.into()), "{run}");
    }
    site.is_upgraded(&[true; 4]).await;

    // All at once, and west's last host is left out. Nor is that east is done enough for west.
    let played = stage.play(&[&complete[..], &["-e", "kind=Restart", "--limit", "h1,h2,h3"]].concat()).await;
    assert_eq!(played.code, Some(2), "{}", played.text);
    let complaints = played.complaints();
    assert!(matches!(complaints[..], [said] if said.starts_with("the cluster west is partial: ")), "{complaints:?}");
    for (host, agents, is_failed) in [(1, 2, false), (2, 2, false), (3, 1, true)] {
        let run = played.run_on(host);
        let expected = &run["invocation"]["module_args"]["expect_agents"];
        assert_eq!((expected, &run["changed"]), (&agents.into(), &true.into()), "{run}");
        assert_eq!(played.verdicts_on(host).contains(&"failed"), is_failed, "{}", played.text);
    }
}
