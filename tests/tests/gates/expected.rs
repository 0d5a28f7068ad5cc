//! `gates.expect`, met and not met.

use serde_json::{Value, json};
use tests::ended::{Ended, all_must_be};

use crate::nodes::{GATE, Nodes, executable, row};

/// The agents must not wait that long: tests give them less.
const PATIENT: &str = "convergence: { timeout: 10m }, soak: 0s";

fn upgrade(to: &str) -> String {
    let source = executable("3.6").display().to_string();
    format!("kind: Upgrade\nfrom: \">=3.5.0, <3.6\"\nto: {to}\nartifact: {{ source: {source} }}")
}

fn expecting(is_on: bool, strategy: &str) -> String {
    format!("strategy: {{ {PATIENT}{strategy} }}\ngates: {{ expect: {{ {GATE}: {is_on} }} }}")
}

fn gates(ended: &Ended) -> &serde_json::Value {
    &ended.result.as_ref().expect("a result")["gates"]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_every_member_wants_is_on_when_the_rollout_is_done() {
    let nodes = Nodes::start("3.5", [true; 3]).await;
    assert_eq!(nodes.is_on().await, [false; 3], "3.5 has none");
    let playbooks = nodes.playbooks(&upgrade("3.6.0"), &expecting(true, ""));
    let agents = nodes.run("run", &playbooks).await;
    all_must_be(&agents, 0, "done");
    assert_eq!(nodes.is_on().await, [true; 3]);
    let is_on = |gates: &Value| {
        let on = json!({ "name": GATE, "enabled": true, "kept_off_by": [] });
        (&gates["decided"], &gates["awaited"], row(&gates["features"])) == (&json!(true), &json!([]), &on)
    };
    let last = |at| nodes.told(at).last().map(|event| (event["event"].clone(), event["gates"].clone()));
    for (at, agent) in agents.iter().enumerate() {
        // Those that waited for another one's word heard of the end without a last look of their own.
        assert!(is_on(gates(agent)) || last(at).is_none(), "{agent}");
    }
    let settled = (0..3).filter_map(last).find(|(event, _)| event == "gates_settled");
    assert!(settled.as_ref().is_some_and(|(_, gates)| is_on(gates)), "{settled:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_member_that_keeps_a_gate_off_is_named_and_another_flag_mends_it() {
    let mut nodes = Nodes::start("3.5", [true, false, true]).await;
    let playbooks = nodes.playbooks(&upgrade("3.6.0"), &expecting(true, ""));
    let agents = nodes.run("run", &playbooks).await;
    for agent in &agents {
        agent.must_be(5, "not_settled");
        let cause = format!("gate {GATE} is off, kept off by m2; start m2 with --cluster-feature-gates={GATE}=true");
        assert!(agent.message().ends_with(&cause), "{agent}");
        assert_eq!(agent.said("next"), agent.command, "{agent}");
        assert_eq!(row(&gates(agent)["features"])["kept_off_by"], json!(["m2"]), "{agent}");
        assert!(agent.said("waiting_for").ends_with(&cause), "{agent}");
    }
    let told = nodes.told(0).pop().expect("told");
    assert_eq!((&told["event"], &told["gates"]), (&json!("unsettled"), gates(&agents[0])));
    assert_eq!(nodes.is_on().await, [false; 3]);
    let again = nodes.run_one("run", &playbooks[0]).await;
    again.must_be(5, "not_settled");

    nodes.configure(1, true);
    nodes.restart(1, "3.6").await;
    let agents = nodes.run("run", &playbooks).await;
    agents.iter().for_each(Ended::must_succeed);
    // No host has a member to restart, so one that comes when another has ended the run finds nothing to do.
    assert!(agents.iter().any(|agent| agent.reason() == "done"), "{agents:?}");
    assert_eq!(nodes.is_on().await, [true; 3]);
    nodes.run_one("run", &playbooks[0]).await.must_be(0, "nothing_to_do");

    nodes.configure(2, false);
    nodes.restart(2, "3.6").await;
    let later = nodes.run_one("run", &playbooks[0]).await;
    later.must_be(5, "not_settled");
    assert!(later.message().contains("kept off by m3"), "{later}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_on_while_one_member_is_old() {
    let nodes = Nodes::start("3.5", [true; 3]).await;
    let playbooks = nodes.playbooks(&upgrade("3.6.0"), &expecting(true, ", finalize: manual"));
    all_must_be(&nodes.run("run", &playbooks).await, 0, "held");
    assert_eq!(nodes.is_on().await, [false; 3], "two members of 3.6 want it, one of 3.5 does not know it");
    let status = nodes.run_one("status", &playbooks[0]).await;
    assert_eq!(gates(&status), &json!({ "decided": false, "awaited": [], "features": [] }), "{status}");
    let last = held(&status);
    let shown = nodes.run_one("gates", &playbooks[0]).await;
    shown.must_be(0, "looked");
    let feature = row(&shown.result.as_ref().expect("a result")["features"]);
    let old = format!("m{} runs 3.5.0", last + 1);
    assert_eq!((&feature["reason"], &feature["needs"]), (&json!("version_too_low"), &json!("3.6")), "{shown}");
    assert!(
        feature["why"].as_str().is_some_and(|why| why.ends_with(&old)),
        "the one that keeps it down is named: {shown}"
    );
    nodes.run_one("finalize", &playbooks[last]).await.must_succeed();
    assert_eq!(nodes.is_on().await, [true; 3]);
    let status = nodes.run_one("status", &playbooks[0]).await;
    assert_eq!(row(&gates(&status)["features"])["enabled"], json!(true), "{status}");
}

/// The member that is still old.
fn held(status: &Ended) -> usize {
    let members = status.result.as_ref().and_then(|result| result["members"].as_array()).expect("members");
    let old = members.iter().find(|member| member["version"] == "3.5.0").expect("an old one");
    ["m1", "m2", "m3"].iter().position(|name| old["name"] == *name).expect("one of three")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_with_other_flags_is_judged_by_what_each_member_wants_now() {
    let nodes = Nodes::start("3.6", [false; 3]).await;
    assert_eq!(nodes.is_on().await, [false; 3]);
    // On and off again: what the last member wanted before it was restarted is contrary each time.
    for (id, is_on) in [("on", true), ("off", false), ("on again", true)] {
        (0..3).for_each(|at| nodes.configure(at, is_on));
        let restart = format!("kind: Restart\nrestart: {{ id: {id} }}");
        let playbooks = nodes.playbooks(&restart, &expecting(is_on, ""));
        all_must_be(&nodes.run("run", &playbooks).await, 0, "done");
        assert_eq!(nodes.is_on().await, [is_on; 3]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_that_no_member_knows_are_refused_or_named() {
    let nodes = Nodes::start("3.5", [true; 3]).await;
    let same = "kind: Restart\nrestart: { id: again }";
    let refused = nodes.run_one("plan", &nodes.playbooks(same, &expecting(true, ""))[0]).await;
    refused.must_be(3, "gates_unsupported");
    assert!(refused.message().contains("has no cluster feature gates on 3.5.0"), "{refused}");

    let unknown = format!("strategy: {{ {PATIENT} }}\ngates: {{ expect: {{ NoSuch: true }} }}");
    for agent in nodes.run("run", &nodes.playbooks(&upgrade("3.6.0"), &unknown)).await {
        agent.must_be(5, "not_settled");
        assert!(
            agent.message().contains(&format!("no member knows a gate NoSuch; there are: ClusterCounters, {GATE}")),
            "{agent}"
        );
    }
}
