//! Real `etcdctl`, as a person runs it.

use std::{
    path::PathBuf,
    process::{Output, Stdio},
};

use tokio::{process::Command, time::timeout};

use crate::{certificates::Certificates, system::Build, wait::GENEROUS};

/// That of one release, and what it is told each time.
pub struct Etcdctl {
    program: PathBuf,
    flags: Vec<String>,
}

impl Etcdctl {
    /// It shows the client's certificate, where there is one.
    pub fn new(etcd: &Build, certificates: Option<&Certificates>) -> Self {
        let shown = |files: &Certificates| {
            [("cacert", &files.ca), ("cert", &files.client.cert), ("key", &files.client.key)]
                .map(|(flag, path)| format!("--{flag}={}", path.display()))
        };
        // Of itself it gives up after 5 s, which is little on a busy machine.
        let patient = "--command-timeout=30s".to_owned();
        Self {
            program: etcd.bin.join("etcdctl"),
            flags: certificates.into_iter().flat_map(shown).chain([patient]).collect(),
        }
    }

    /// For one that goes on; it is killed when its process is dropped.
    pub fn command(&self, endpoints: &[String], arguments: &[&str]) -> Command {
        // A shell that puts a test behind has it ignore Ctrl-C, and so would what the test starts.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(&self.program);
        command.arg(format!("--endpoints={}", endpoints.join(","))).args(&self.flags).args(arguments);
        command.kill_on_drop(true).stdin(Stdio::null());
        command
    }

    /// How it ends.
    ///
    /// # Panics
    /// It cannot be run, or does not end.
    pub async fn output(&self, endpoints: &[String], arguments: &[&str]) -> Output {
        timeout(GENEROUS, self.command(endpoints, arguments).output()).await.expect("it ends").expect("it runs")
    }

    /// What it prints.
    ///
    /// # Panics
    /// It fails.
    pub async fn run(&self, endpoints: &[String], arguments: &[&str]) -> String {
        let output = self.output(endpoints, arguments).await;
        assert!(output.status.success(), "etcdctl {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
