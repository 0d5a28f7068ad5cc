//! Real `etcdctl`, of the releases that are there.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use tokio::process::{Child, Command};

use crate::real::{self, PATIENCE};

/// The releases whose etcdctl is tried.
const RELEASES: [&str; 2] = ["3_5", "3_6"];

/// An `etcdctl` that talks to one member.
pub struct Etcdctl {
    executable: PathBuf,
    url: String,
}

/// The folders of the releases that are there; for the others it is said why they are not.
pub fn folders() -> impl Iterator<Item = PathBuf> {
    RELEASES.into_iter().filter_map(real::folder)
}

impl Etcdctl {
    pub fn new(folder: &Path, url: &str) -> Self {
        Self { executable: folder.join("etcdctl"), url: url.to_owned() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.executable);
        command.args(["--endpoints", &self.url]).args(arguments).env("ETCDCTL_API", "3").kill_on_drop(true);
        command
    }

    async fn call(&self, arguments: &[&str]) -> Output {
        let called = tokio::time::timeout(PATIENCE, self.command(arguments).output());
        called.await.unwrap_or_else(|_| panic!("etcdctl {arguments:?} does not end")).unwrap()
    }

    /// What it prints; it must succeed.
    pub async fn run(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments).await;
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success(), "etcdctl {arguments:?}: {stdout}{stderr}");
        stdout
    }

    /// What it complains of; it must fail.
    pub async fn fail(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments).await;
        assert!(!output.status.success(), "etcdctl {arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// What it prints when it is told this on its standard input.
    pub async fn tell(&self, arguments: &[&str], input: &str) -> String {
        let mut child = self.start(arguments);
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
        assert!(output.status.success(), "etcdctl {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// One that goes on until it is dropped.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}
