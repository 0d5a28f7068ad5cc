//! A real Prometheus that scrapes what it is given, and what it says then.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use serde_json::Value;
use tests::{
    fetched,
    ports::Ports,
    skip::skip,
    wait::{self, GENEROUS},
};
use tokio::process::Child;

/// Where what is shipped lies.
pub fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/monitoring").join(file)
}

/// The folder with the programs; `None` is a skip.
pub fn programs_or_skip() -> Option<PathBuf> {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    if let Ok(reason) = env::var("BATON_NO_PROMETHEUS") {
        skip(&reason);
        return None;
    }
    let fetch = || fetched::by_script("fetch-prometheus", &[]).expect("Prometheus can be had");
    Some(PROGRAMS.get_or_init(|| env::var_os("BATON_PROMETHEUS").map_or_else(fetch, PathBuf::from)).clone())
}

/// What a program says of a file, or of what it is given.
#[track_caller]
pub fn is_fine(program: &Path, arguments: &[&str], input: Option<&Path>) {
    let stdin = input.map_or_else(Stdio::null, |path| fs::File::open(path).expect("it is there").into());
    let Output { status, stdout, stderr } =
        Command::new(program).args(arguments).stdin(stdin).output().expect("it runs");
    let said = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(status.success(), "{} {arguments:?}: {said}", program.display());
}

/// A client without TLS; reqwest wants a provider for that all the same.
pub fn http() -> reqwest::Client {
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// A program of theirs at work; it ends with the value.
pub fn start(program: &Path, arguments: &[String], log: &Path) -> Child {
    let log = fs::File::create(log).expect("a log");
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
    command.kill_on_drop(true).spawn().expect("it starts")
}

/// Series by their labels, each with its value.
pub type Series = Vec<(BTreeMap<String, String>, String)>;

pub struct Prometheus {
    http: reqwest::Client,
    url: String,
    targets: PathBuf,
    folder: tempfile::TempDir,
    _ports: Ports,
    _process: Child,
}

impl Prometheus {
    /// Scrapes every second what [`Prometheus::scrape`] names, by these rules.
    pub async fn up(programs: &Path, rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = Ports::lease(1).expect("a port");
        let (address, at) = (format!("127.0.0.1:{}", ports.numbers[0]), folder.path());
        let targets = at.join("targets.json");
        fs::write(&targets, "[]").expect("written");
        fs::write(at.join("rules.yml"), rules).expect("written");
        let config = "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\nscrape_configs:\n\
                      - {job_name: unnamed, file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]}\n";
        fs::write(at.join("prometheus.yml"), config).expect("written");
        let arguments = [
            format!("--config.file={}", at.join("prometheus.yml").display()),
            format!("--storage.tsdb.path={}", at.join("data").display()),
            format!("--web.listen-address={address}"),
        ];
        let process = start(&programs.join("prometheus"), &arguments, &at.join("log"));
        let url = format!("http://{address}");
        let up = Self { http: http(), url, targets, folder, _ports: ports, _process: process };
        wait::until("Prometheus to be ready", GENEROUS, || async {
            let asked = up.http.get(format!("{}/-/ready", up.url)).send().await;
            asked
                .and_then(reqwest::Response::error_for_status)
                .map(drop)
                .map_err(|error| format!("{error}: {}", up.log()))
        })
        .await
        .expect("it is");
        up
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// From now on these are its targets: a job each, and the cluster that they are of.
    pub fn scrape(&self, jobs: &[(&str, &str, Vec<String>)]) {
        let group = |(job, cluster, targets): &(&str, &str, Vec<String>)| serde_json::json!({ "targets": targets, "labels": { "job": job, "cluster": cluster } });
        let groups: Vec<Value> = jobs.iter().map(group).collect();
        let fresh = self.targets.with_extension("new");
        fs::write(&fresh, Value::from(groups).to_string()).expect("written");
        fs::rename(fresh, &self.targets).expect("replaced");
    }

    /// What a query answers; a query that it does not take is an error.
    pub async fn query(&self, query: &str) -> Result<Series, String> {
        let url =
            reqwest::Url::parse_with_params(&format!("{}/api/v1/query", self.url), [("query", query)]).expect("a URL");
        let text = async { self.http.get(url).send().await?.text().await }.await.map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        if answer["status"] != "success" {
            return Err(text);
        }
        let series = |one: &Value| {
            let labels = serde_json::from_value(one["metric"].clone()).expect("texts");
            (labels, one["value"][1].as_str().unwrap_or_default().to_owned())
        };
        Ok(answer["data"]["result"].as_array().map(|all| all.iter().map(series).collect()).unwrap_or_default())
    }

    /// The names of the alerts that fire.
    pub async fn firing(&self) -> Result<BTreeSet<String>, String> {
        let alerts = self.query("ALERTS{alertstate=\"firing\"}").await?;
        Ok(alerts.into_iter().filter_map(|(mut labels, _)| labels.remove("alertname")).collect())
    }

    /// Waits until these fire, and none of the others.
    pub async fn wait_for(&self, firing: &[&str], silent: &[&str]) {
        wait::until(&format!("{firing:?} to fire, and not {silent:?}"), GENEROUS, || async {
            let found = self.firing().await?;
            let holds =
                firing.iter().all(|name| found.contains(*name)) && !silent.iter().any(|name| found.contains(*name));
            if holds { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await
        .expect("they do");
    }
}
