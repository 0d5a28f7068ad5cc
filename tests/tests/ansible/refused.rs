//! What is refused before any member is touched, in one sentence.

use serde_json::json;
use tests::system::System;

use crate::{
    play::{Played, Stage},
    site::Site,
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: three minutes; plays that go through run by default"]
async fn a_mistaken_inventory_is_refused_before_anything_is_touched() {
    let Some(site) = Site::up(System::Node, 3).await else { return };
    let site = site.with_agents();
    let Some(stage) = Stage::new(&site) else { return };
    let before = site.pids();

    stage.invite(|number, facts| {
        if number == 3 {
            facts["baton_members"] = json!(["m1"]);
        }
    });
    let played = stage.play(&["-e", "serial=1"]).await;
    refuses(&played, "h1 and h3 both own the member m1: name it on its own host alone; nothing was touched");
    assert!(!site.hosts[0].path("/etc/baton").exists());

    stage.invite(|number, facts| {
        facts["baton_cluster"] = json!("east");
        if number == 3 {
            facts["baton_members"] = json!(["m1"]);
        }
    });
    let played = stage.play(&[]).await;
    refuses(
        &played,
        "h1 and h3 both own the member m1 in cluster east: name it on its own host alone; nothing was touched",
    );

    // The inventory is right, and the template is not.
    stage.invite(|number, facts| {
        if number == 3 {
            facts["owned"] = json!(["m1"]);
        }
    });
    let played = stage.play(&[]).await;
    refuses(
        &played,
        "h1 and h3 both own the member m1 of orders: name it on its own host alone; no member was touched",
    );

    let other = site.start_another_cluster().await;
    stage.invite(|number, facts| {
        if number == 2 {
            facts["endpoints"] = json!([other]);
            // Another cluster may have a member of that name.
            facts["baton_cluster"] = json!("east");
            facts["baton_members"] = json!(["m1"]);
            facts["owned"] = json!(["m2"]);
        }
    });
    let played = stage.play(&[]).await;
    refuses(&played, "the cluster has no member `m2`; its members are other (exit 2, reason no_such_member)");

    // The others cannot help a host that looks in the wrong place.
    let nowhere = format!("http://{}:9", site.hosts[1].address());
    stage.invite(|number, facts| {
        if number == 2 {
            facts["endpoints"] = json!([nowhere]);
        }
    });
    let played = stage.play(&["--limit", "h2", "-e", "baton_passes=2"]).await;
    assert_eq!((played.code, played.runs_on(2)), (Some(2), 2), "{}", played.text);
    let complaints = played.complaints();
    assert!(matches!(complaints.last(), Some(said) if said.contains("reason unreachable")), "{complaints:?}");

    assert_eq!(site.pids(), before);
    site.is_upgraded(&[false; 3]).await;
    site.nothing_is_lost().await;
}

/// It ends with one sentence, and no agent was asked to do anything.
#[track_caller]
fn refuses(played: &Played, sentence: &str) {
    assert_eq!(played.code, Some(2), "{}", played.text);
    let complaints = played.complaints();
    assert!(matches!(complaints[..], [said] if said.contains(sentence)), "{complaints:?}");
    assert!(!played.has_run(), "{}", played.text);
}
