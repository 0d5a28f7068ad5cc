//! What members still have of the v2 API, on which 3.6 does not start. Of etcd alone.

use tests::{
    case::Case,
    ended::all_must_be,
    member::Member,
    playbook::started_by_the_agent,
    rollout::Rollout,
    system::System,
    wait::{self, GENEROUS},
};

use crate::is_refused;

pub(crate) const ON: &str = "--enable-v2";

/// Three members of 3.5 with the v2 API, and with these flags. The playbook leaves it out from 3.6 on, which does not know it.
async fn with_v2(flags: &'static [&'static str]) -> Option<Case> {
    let case = Case::path(System::Etcd, ("3.5", "3.6"), |spec| {
        spec.flags.extend(flags.iter().chain(&[ON]).map(ToString::to_string));
    });
    let mut case = case.await?.strategy(&["join_window: 2s"]);
    case.upgrade.runtime = |member| started(member, &format!("{{ for: \"<3.6\", add: [{ON}] }}"));
    Some(case)
}

/// As the agent starts it: with these arguments for some releases.
fn started(member: &Member, some: &str) -> Vec<String> {
    let mut lines = started_by_the_agent(member);
    lines.retain(|line| !line.contains(ON));
    lines.push(format!("args: [{some}]"));
    lines
}

/// One request of the v2 API, by the first member.
pub(crate) async fn ask(case: &Case, method: reqwest::Method, key: &str) {
    let url = format!("{}/v2/keys/{key}", case.member(0).client_url);
    let form = "application/x-www-form-urlencoded";
    let request = reqwest::Client::new().request(method, url).header("Content-Type", form).body("value=x");
    request.send().await.and_then(reqwest::Response::error_for_status).expect("it is done");
}

/// Writes until each member has a snapshot that it took after this.
pub(crate) async fn snapshots(case: &Case) {
    let mut clients = Vec::new();
    for index in 0..case.layout().members.len() {
        clients.push((case.client(index), case.member(index).data().join("member/snap")));
    }
    let begun = clients[0].0.status().await.expect("a status").raft_index;
    wait::until("all to have taken a snapshot", GENEROUS, || async {
        clients[0].0.put("more", "of it").await.map_err(|status| status.to_string())?;
        for (_, folder) in &clients {
            let newest = newest(folder).unwrap_or_default();
            // The log has its record a moment later.
            if newest <= begun + 2 {
                return Err(format!("{} has one of {newest}, and {begun} is wanted", folder.display()));
            }
        }
        Ok(())
    })
    .await
    .expect("snapshots");
}

/// The index of the newest snapshot.
fn newest(folder: &std::path::Path) -> Option<u64> {
    let names =
        std::fs::read_dir(folder).expect("a folder").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let index = |name: String| u64::from_str_radix(name.strip_suffix(".snap")?.split_once('-')?.1, 16).ok();
    names.filter_map(index).max()
}

/// Starts each member again with these flags besides its own, and without the v2 API.
async fn turned_off(case: &mut Case, more: &[&str]) {
    for index in 0..case.layout().members.len() {
        let member = &mut case.cluster.layout.members[index];
        let own = member.flags.iter().filter(|flag| *flag != ON).cloned();
        let flags = own.chain(more.iter().map(ToString::to_string)).collect();
        member.start_anew(flags).expect("started again");
        case.cluster.ready().await.expect("ready again");
    }
}

async fn refused_by_each(rollout: &Rollout, words: &str) {
    for index in 0..3 {
        let plan = rollout.one("plan", index).await;
        plan.must_be(3, "hazard");
        assert!(plan.message().contains(words), "{plan}");
    }
    for agent in is_refused(rollout, [0, 1, 2], (3, "hazard"), &[words]).await {
        assert!(agent.said("next").contains("agent hazards --explain v2-"), "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_have_in_the_v2_store_is_refused_until_it_is_emptied() {
    let Some(case) = with_v2(&["--snapshot-count=10"]).await else { return };
    ask(&case, reqwest::Method::PUT, "old").await;
    snapshots(&case).await;
    let mut rollout = case.begin().await;
    refused_by_each(&rollout, ", whose newest snapshot shows it: the start fails").await;

    // As the remedy says. That the API is still on is another matter, and nobody writes by it.
    ask(&rollout, reqwest::Method::DELETE, "old").await;
    snapshots(&rollout).await;
    refused_by_each(&rollout, ", which is given `--enable-v2`: while a 3.5").await;
    rollout.upgrade.strategy.push("accept_hazards: [v2-still-on]".into());
    all_must_be(&rollout.together().await, 0, "done");
    rollout.done().await;
}

/// Where nothing more comes the agent has each member take a snapshot, behind which it is not read any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_users_asked_behind_the_snapshot_is_refused_while_more_may_come() {
    let Some(case) = with_v2(&["--snapshot-count=3000"]).await else { return };
    ask(&case, reqwest::Method::PUT, "old").await;
    ask(&case, reqwest::Method::DELETE, "old").await;
    let mut rollout = case.begin().await;
    refused_by_each(&rollout, "v2-still-on, of m").await;
    turned_off(&mut rollout, &[]).await;
    rollout.upgrade.runtime = started_by_the_agent;
    rollout.write();
    let plan = rollout.one("plan", 0).await;
    plan.must_be(0, "planned");
    assert!(plan.warnings().contains("has it take a snapshot first"), "{plan}");
    all_must_be(&rollout.together().await, 0, "done");
    rollout.done().await;
}

/// More entries than anybody would wait for.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_takes_no_snapshot_in_time_is_not_written_full() {
    let Some(mut case) = with_v2(&["--snapshot-count=4000000000"]).await else { return };
    ask(&case, reqwest::Method::PUT, "old").await;
    turned_off(&mut case, &[]).await;
    case.upgrade.runtime = started_by_the_agent;
    let rollout = case.begin().await;
    is_refused(&rollout, [0, 1, 2], (3, "unprepared"), &["takes one after 4000000000 entries"]).await;
    rollout.end(0).await;
}

/// 3.4 writes a request of the v2 API into its log whenever it is asked for its health, as a probe does.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_3_4_that_was_asked_for_its_health_goes_to_3_6() {
    let flags = |spec: &mut tests::cluster::Spec| spec.flags.push("--snapshot-count=3000".into());
    let case = Case::path(System::Etcd, ("3.4", "3.6"), flags).await.and_then(|case| case.over(&["3.5"]));
    let Some(case) = case else { return };
    let url = format!("{}/health", case.member(0).client_url);
    reqwest::get(url).await.and_then(reqwest::Response::error_for_status).expect("it is well");
    let mut rollout = case.begin().await;
    let agents = rollout.together().await;
    all_must_be(&agents, 0, "done");
    let took = agents.iter().flat_map(|agent| &agent.events).filter_map(|event| event.waiting_for.as_deref());
    assert!(took.filter(|what| what.contains("take a snapshot")).count() > 0, "{agents:?}");
    rollout.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_new_release_is_told_to_pass_over_is_not_refused() {
    let Some(mut case) = with_v2(&["--snapshot-count=10"]).await else { return };
    ask(&case, reqwest::Method::PUT, "old").await;
    snapshots(&case).await;
    turned_off(&mut case, &[]).await;
    case.upgrade.runtime =
        |member| started(member, "{ for: \">=3.6\", add: [--v2-deprecation=write-only-skip-check] }");
    let mut rollout = case.begin().await;
    all_must_be(&rollout.together().await, 0, "done");
    rollout.done().await;
}
