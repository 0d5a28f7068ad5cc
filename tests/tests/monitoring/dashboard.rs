//! The dashboard, as data: what Grafana reads of it. There is no Grafana here: what its queries answer is live.rs' affair.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::prometheus::shipped;

fn dashboard() -> Value {
    serde_json::from_slice(&fs::read(shipped("dashboard.json")).expect("it is there")).expect("JSON")
}

fn texts<'a>(value: &'a Value, name: &str) -> Vec<&'a Value> {
    value[name].as_array().map(|all| all.iter().collect()).unwrap_or_default()
}

/// Each query with the panel that makes it, as Grafana sends it where everything is chosen.
pub fn queries() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let made = |panel: &Value| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let sent = |target: &&Value| (title.clone(), sent(target["expr"].as_str().expect("a query")));
        texts(panel, "targets").iter().map(sent).collect::<Vec<_>>()
    };
    let notes = texts(&dashboard["annotations"], "list");
    let notes = notes.iter().map(|note| ("a note".to_owned(), sent(note["expr"].as_str().expect("a query"))));
    texts(&dashboard, "panels").into_iter().flat_map(made).chain(notes).collect()
}

fn sent(query: &str) -> String {
    let sent = query.replace("$__rate_interval", "30s").replace("$cluster", ".*").replace("$job", ".*");
    assert!(!sent.contains('$'), "{query}: a variable that nobody sets");
    sent
}

#[test]
fn it_has_what_grafana_wants_of_a_dashboard() {
    let dashboard = dashboard();
    for field in ["title", "uid"] {
        assert!(dashboard[field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
    }
    // Grafana's own number is given at the import.
    assert!(dashboard["id"].is_null() && dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 36));
    let variables = texts(&dashboard["templating"], "list");
    let named: BTreeSet<_> = variables.iter().map(|variable| variable["name"].as_str().expect("a name")).collect();
    assert_eq!(named, ["cluster", "datasource", "job"].into());
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in texts(&dashboard, "panels") {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{title}: its number is another's");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("a place"));
        assert!(x + w <= 24 && w > 0 && h > 0, "{title} is beside the grid");
        let cells = (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y)));
        assert!(cells.into_iter().all(|cell| taken.insert(cell)), "{title} lies on another");
        if panel["type"] == "row" {
            continue;
        }
        assert!(
            ["state-timeline", "timeseries", "table"].contains(&panel["type"].as_str().expect("a kind")),
            "{title}"
        );
        assert!(!texts(panel, "targets").is_empty(), "{title} asks nothing");
        for target in texts(panel, "targets").into_iter().chain([panel]) {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}: bound to one Grafana");
        }
    }
    let asked: String = queries().into_iter().map(|(_, query)| query).collect();
    for metric in ["etcd_server_is_leader", "etcd_server_is_learner", "etcd_server_has_leader", "etcd_cluster_version"]
    {
        assert!(asked.contains(metric), "{metric} is shown nowhere");
    }
}
