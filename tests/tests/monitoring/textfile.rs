//! The agent's own metrics: the page of `agent status`, and the file that `agent run` keeps; each as node_exporter would serve it.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
    sync::Arc,
};

use tests::{agent, case::Case, system::System};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use crate::prometheus::{is_fine, programs_or_skip};

/// Serves a page that is made anew for whoever asks; it ends with the value.
pub struct Exporter {
    pub address: String,
    task: AbortHandle,
}

impl Exporter {
    pub async fn serve(page: impl Fn() -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let page = Arc::new(page);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let page = page.clone();
                tokio::spawn(async move {
                    let made = tokio::task::spawn_blocking(move || page()).await.unwrap_or_default();
                    // Who hangs up asks again.
                    let _ = answer(client, &made).await;
                });
            }
        });
        Self { address, task: task.abort_handle() }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut client: TcpStream, page: &str) -> std::io::Result<()> {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") && client.read_buf(&mut asked).await? > 0 {}
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n";
    client.write_all(format!("{head}Content-Length: {}\r\n\r\n{page}", page.len()).as_bytes()).await
}

pub fn agent(arguments: &[&str]) -> Output {
    Command::new(agent::executable().expect("an agent")).args(arguments).output().expect("it runs")
}

/// The page of `agent status`.
pub fn status(playbook: &Path) -> String {
    let told = agent(&["status", &playbook.to_string_lossy(), "--output", "prometheus"]);
    String::from_utf8(told.stdout).expect("text")
}

#[tokio::test]
async fn nobody_answers_and_the_page_says_so() {
    let Some(programs) = programs_or_skip() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page");
    // Port 1 has nobody.
    let endpoints = ["status", "--endpoints", "http://127.0.0.1:1"];
    let told = agent(&[&endpoints[..], &["--output", "prometheus"]].concat());
    fs::write(&page, &told.stdout).expect("written");
    is_fine(&programs.join("promtool"), &["check", "metrics"], Some(&page));
    let (page, why) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(page.contains("\nbaton_look_success 0\n"), "{page}");
    assert_eq!(told.status.code(), agent(&endpoints).status.code(), "the exit code is that of any status");
    assert!(why.starts_with("error: "), "{why}");
}

#[test]
fn other_verbs_have_no_metrics() {
    for (line, why) in [
        (&["plan", "p.yaml", "--output", "prometheus"][..], "--output prometheus is for agent status alone"),
        (&["status", "p.yaml", "--watch", "--output", "prometheus"], "leave out --watch"),
    ] {
        let told = agent(line);
        assert!(String::from_utf8_lossy(&told.stderr).contains(why), "{told:?}");
        assert_eq!((told.status.code(), told.stdout.len()), (Some(2), 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_written_is_refused_before_anything_is_touched() {
    let Some(case) = Case::of(System::Node).await else { return };
    let playbook = case.write().swap_remove(0);
    let before = case.raft_status().await;
    let missing = case.layout().dir.join("missing/baton.prom");
    let missing = missing.to_string_lossy();
    let told = agent(&["run", &playbook.to_string_lossy(), "--metrics-file", &missing, "--yes"]);
    let why = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{why}");
    assert!(why.contains(&format!("--metrics-file {missing}: No such file or directory")), "{why}");
    assert_eq!(case.raft_status().await, before);
    assert!(!case.member(0).state_dir().join("journal").exists());
}

/// What a run leaves in its file.
pub fn is_left_for_everybody(programs: &Path, file: &Path, lines: &[&str]) {
    is_fine(&programs.join("promtool"), &["check", "metrics"], Some(file));
    let page = fs::read_to_string(file).expect("it is there");
    for line in lines {
        assert!(page.lines().any(|said| said == *line), "{line}: {page}");
    }
    assert_eq!(fs::metadata(file).expect("it is there").permissions().mode() & 0o7777, 0o644);
}
