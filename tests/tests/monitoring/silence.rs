//! What a run silences, by a real Alertmanager with the file that is shipped.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::{
    ports::Ports,
    wait::{self, GENEROUS},
};

use crate::prometheus::{http, programs_or_skip, shipped, start};

/// Of etcd-mixin (3.5 to 3.7), what a rollout sets off by itself.
const OF_A_MEMBER: [&str; 3] = ["etcdMembersDown", "etcdInsufficientMembers", "etcdNoLeader"];
const OF_RATES: [&str; 5] = [
    "etcdHighNumberOfLeaderChanges",
    "etcdHighNumberOfFailedGRPCRequests",
    "etcdHighNumberOfFailedProposals",
    "etcdGRPCRequestsSlow",
    "etcdMemberCommunicationSlow",
];
const OURS: [&str; 2] = ["BatonQuorumOneFailureAway", "BatonMemberNotSeen"];
/// What no run sets off.
const NEVER: [&str; 4] =
    ["etcdDatabaseQuotaLowSpace", "etcdHighFsyncDurations", "BatonLearnerNotPromoted", "BatonRunFailed"];

#[tokio::test]
async fn a_run_silences_what_it_sets_off_in_its_own_cluster() {
    let Some(programs) = programs_or_skip() else { return };
    let (folder, ports) = (tempfile::tempdir().expect("a folder"), Ports::lease(1).expect("a port"));
    let address = format!("127.0.0.1:{}", ports.numbers[0]);
    let arguments = [
        format!("--config.file={}", shipped("alertmanager.yml").display()),
        format!("--storage.path={}", folder.path().join("data").display()),
        format!("--web.listen-address={address}"),
        // Alone: it listens for no others.
        "--cluster.listen-address=".into(),
    ];
    let _process = start(&programs.join("alertmanager"), &arguments, &folder.path().join("log"));
    let all = || OF_A_MEMBER.into_iter().chain(OF_RATES).chain(OURS).chain(NEVER);
    let alert = |cluster: &str, name: &str| json!({ "labels": { "alertname": name, "cluster": cluster, "severity": "critical" } });
    let sources = [("orders", "BatonRunInProgress"), ("orders", "BatonRunLately"), ("over", "BatonRunLately")];
    let mut alerts: Vec<Value> = sources.iter().map(|(cluster, name)| alert(cluster, name)).collect();
    alerts.extend(["orders", "over", "other"].iter().flat_map(|cluster| all().map(|name| alert(cluster, name))));
    let expected: BTreeMap<(String, String), bool> = all()
        .flat_map(|name| {
            let silenced = [("orders", !NEVER.contains(&name)), ("over", OF_RATES.contains(&name)), ("other", false)];
            silenced.map(|(cluster, silenced)| ((cluster.to_owned(), name.to_owned()), silenced))
        })
        .collect();
    let (url, body) = (format!("http://{address}/api/v2/alerts"), Value::from(alerts).to_string());
    let client = http();
    let send = || client.post(&url).header("content-type", "application/json").body(body.clone()).send();
    let silenced = wait::until("the alerts to be taken", GENEROUS, || async {
        let sent = send().await.and_then(reqwest::Response::error_for_status);
        sent.map_err(|error| error.to_string())?;
        let text = async { client.get(&url).send().await?.text().await }.await.map_err(|error| error.to_string())?;
        let listed: Vec<Value> = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        let name = |alert: &Value| {
            let label = |label: &str| alert["labels"][label].as_str().unwrap_or_default().to_owned();
            (label("cluster"), label("alertname"))
        };
        let is_silenced = |alert: &Value| alert["status"]["state"] == "suppressed";
        let found: BTreeMap<_, _> = listed.iter().map(|alert| (name(alert), is_silenced(alert))).collect();
        let is_whole = listed.len() == sources.len() + 3 * all().count();
        // Its inhibitor may learn of a source later than its list.
        let is_decided = expected.iter().all(|(alert, expected)| !expected || found.get(alert) == Some(&true));
        if is_whole && is_decided { Ok(found) } else { Err(text) }
    });
    let silenced = silenced.await.expect("they are");
    for (alert, expected) in &expected {
        assert_eq!(silenced[alert], *expected, "{alert:?}");
    }
}
